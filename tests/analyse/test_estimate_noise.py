"""estimate_noise on clips of known noise: a moving crop of a photograph, noise added here."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import data

from restore.analyse import NoiseCurve, estimate_noise, noise_map
from restore.analyse.bands import block_statistics, clipped_variance_ratio


def pan(picture, frames=5, height=192, width=192):
    """A pan by (2, 1) pixels a frame over a photograph, shrunk so that it is free of noise."""
    small = cv2.resize(picture, None, fx=0.7, fy=0.7, interpolation=cv2.INTER_AREA)
    small = small.astype(np.float32) / 255
    return [small[t : t + height, 2 * t : 2 * t + width] for t in range(frames)]


@pytest.fixture(scope="module")
def astronaut():
    return pan(data.astronaut())


@pytest.fixture(scope="module")
def cup():
    return pan(data.coffee())


def add_white(clip, sigma, seed=0):
    rng = np.random.default_rng(seed)
    return [f + np.float32(sigma / 255) * rng.standard_normal(f.shape, np.float32) for f in clip]


def to8(clip):
    return [np.rint(np.clip(f, 0, 1) * 255).astype(np.float32) / 255 for f in clip]


def measured(curve, clip):
    """Root mean square of the σ map, 0 to 255."""
    return 255 * float(np.sqrt((noise_map(curve, clip[len(clip) // 2]) ** 2).mean()))


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("sigma", [5, 10, 20, 30, 50])
@pytest.mark.parametrize("name", ["astronaut", "cup"])
def test_white_noise(name, sigma, clipped, request):
    clip = request.getfixturevalue(name)
    noisy = add_white(clip, sigma)
    curve = estimate_noise(to8(noisy) if clipped else noisy)
    assert measured(curve, clip) == pytest.approx(sigma, rel=0.12 if sigma == 5 else 0.07)


@pytest.mark.parametrize("repeats", [1, 4])
def test_one_frame_is_enough(cup, repeats):
    noisy = add_white(cup[:1], 20) * repeats
    assert measured(estimate_noise(noisy), cup[:1]) == pytest.approx(20, rel=0.1)


def test_each_channel_is_measured_on_its_own(cup):
    rng = np.random.default_rng(3)
    sigma = np.float32([8, 16, 32]) / 255
    curve = estimate_noise([f + sigma * rng.standard_normal(f.shape, np.float32) for f in cup])
    found = noise_map(curve, cup[2]).mean((0, 1))
    np.testing.assert_allclose(found, sigma, rtol=0.1)


def test_curve_of_a_camera(astronaut):
    rng = np.random.default_rng(4)
    true = NoiseCurve((0.02, 0.02, 0.02), (0.0004, 0.0004, 0.0004))
    noisy = [f + true.sigma(f) * rng.standard_normal(f.shape, np.float32) for f in astronaut]
    curve = estimate_noise(noisy)
    for level in (0.1, 0.4, 0.7):
        np.testing.assert_allclose(
            curve.sigma(np.full(3, level)), true.sigma(np.full(3, level)), rtol=0.15
        )


def test_filtered_noise_is_not_lost(cup):
    """A high-pass estimate sees less than half of noise blurred by 0.6 px."""
    rng = np.random.default_rng(5)
    noisy = []
    for frame in cup:
        noise = cv2.GaussianBlur(rng.standard_normal(frame.shape).astype(np.float32), (0, 0), 0.6)
        noisy.append(frame + noise * np.float32(20 / 255 / noise.std()))
    assert measured(estimate_noise(noisy), cup) == pytest.approx(20, rel=0.15)


def synthetic_ramp(shape):
    ramp = np.linspace(0.1, 0.9, shape[1], dtype=np.float32)
    return np.ascontiguousarray(np.broadcast_to(ramp[None, :, None], shape))


def drawing(shape):
    picture = np.full(shape, 64, np.uint8)
    cv2.circle(picture, (60, 80), 40, (200, 80, 30), -1)
    cv2.putText(picture, "title", (20, 170), cv2.FONT_HERSHEY_SIMPLEX, 2, (230,) * 3, 3)
    return picture.astype(np.float32) / 255


@pytest.mark.parametrize("make", [synthetic_ramp, drawing])
def test_synthetic_clips_have_no_noise(make):
    clip = to8([make((192, 256, 3))] * 5)
    assert measured(estimate_noise(clip), clip) < 0.5


@pytest.mark.parametrize("level", [0.0, 0.06])
@pytest.mark.parametrize("sides", [(40, 0), (0, 32)])
def test_bars_change_nothing(cup, level, sides):
    noisy = to8(add_white(cup, 15))
    rows, columns = sides
    barred = [
        cv2.copyMakeBorder(f, rows, rows, columns, columns, cv2.BORDER_CONSTANT, value=(level,) * 3)
        for f in noisy
    ]
    assert measured(estimate_noise(barred), cup) == pytest.approx(15, rel=0.07)


def test_overlay_changes_nothing(cup):
    noisy = [f.copy() for f in to8(add_white(cup, 15))]
    for frame in noisy:
        frame[8:56, 100:180] = 0.7  # a logo laid over the noise
    assert measured(estimate_noise(noisy), cup) == pytest.approx(15, rel=0.07)


def test_white_sky_changes_nothing(cup):
    sky = [f.copy() for f in cup]
    for frame in sky:
        frame[:90] = 1.2
    assert measured(estimate_noise(to8(add_white(sky, 15))), cup) == pytest.approx(15, rel=0.08)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 3), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_any_size_gives_a_valid_curve(height, width, frames, seed):
    rng = np.random.default_rng(seed)
    curve = estimate_noise(list(rng.random((frames, height, width, 3), np.float32)))
    assert np.isfinite(noise_map(curve, np.zeros((4, 4, 3), np.float32))).all()


def test_same_frames_same_curve(cup):
    noisy = add_white(cup, 12)
    assert estimate_noise(noisy) == estimate_noise([f.copy() for f in noisy])


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        estimate_noise([])
    with pytest.raises(ValueError, match="one shape"):
        estimate_noise([np.zeros((32, 32, 3), np.float32), np.zeros((32, 40, 3), np.float32)])
    with pytest.raises(ValueError, match="one shape"):
        estimate_noise([np.zeros((32, 32), np.float32)])


def test_bands_of_white_noise_agree():
    noise = np.random.default_rng(0).normal(0.5, 0.05, (1, 256, 256, 3)).astype(np.float32)
    blocks = block_statistics(noise, 10_000)
    for band in (blocks.full, blocks.high, blocks.highest):
        assert band.shape == (1, 1024, 3)
        np.testing.assert_allclose(np.sqrt(band.mean((0, 1))), 0.05, rtol=0.02)


def test_plane_is_not_noise():
    assert block_statistics(synthetic_ramp((64, 800, 3))[None], 10_000).full.max() < 2e-7


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5])
def test_clipping_ratio_against_drawn_samples(share):
    samples = np.sort(np.random.default_rng(0).standard_normal(400_000))
    clipped = np.maximum(samples, samples[int(share * len(samples))])
    assert clipped_variance_ratio(np.float32(share)) == pytest.approx(clipped.var(), rel=0.01)
