"""Noise statistics against closed forms."""

import numpy as np
import pytest
from scipy.special import erf
from skimage.color import rgb2ycbcr

from restore.data.noise import (
    Camera,
    ChromaNoise,
    ChromaSubsampling,
    Grain,
    White,
    demosaiced,
    from_linear,
    noise_field,
    quantize,
    to_linear,
)


def flat(value, frames=3, size=96):
    return np.full((frames, size, size, 3), value, np.float32)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("sigma", [1 / 255, 10 / 255, 50 / 255])
def test_white_has_its_sigma_in_every_channel_and_is_white(sigma):
    noise = White(sigma, clipped=False)(flat(0.5), rng()) - np.float32(0.5)
    assert noise.std((0, 1, 2)) == pytest.approx([sigma] * 3, rel=0.02)
    for axis in (0, 1, 2, 3):
        a, b = np.moveaxis(noise, axis, 0)[:-1], np.moveaxis(noise, axis, 0)[1:]
        assert abs((a * b).mean()) < 0.02 * sigma**2


def test_clipped_white_has_the_moments_of_a_clipped_normal():
    sigma = 50 / 255
    noisy = White(sigma, clipped=True)(flat(0.0), rng())
    # max(0, N(0, σ²)): mean σ/√(2π), mean square σ²/2.
    assert noisy.mean() == pytest.approx(sigma / np.sqrt(2 * np.pi), rel=0.02)
    assert (noisy**2).mean() == pytest.approx(sigma**2 / 2, rel=0.03)
    assert np.abs(noisy * 255 - np.rint(noisy * 255)).max() < 1e-4
    assert noisy.min() == 0
    assert noisy.max() <= 1


def test_small_white_noise_survives_rounding_as_often_as_it_should():
    noisy = White(0.5 / 255, clipped=True)(flat(128 / 255), rng())
    changed = np.mean(np.abs(noisy - np.float32(128 / 255)) > 1e-4)
    assert changed == pytest.approx(1 - erf(1 / np.sqrt(2)), abs=0.01)  # |N| > half a level = 1 σ


def test_degradations_leave_their_input_alone():
    clip = rng(5).random((2, 32, 32, 3), dtype=np.float32)
    before = clip.copy()
    steps = [White(0.1), Camera(0.01, 0.001), ChromaNoise(0.1), ChromaSubsampling(), Grain(0.1)]
    for step in steps:
        out = step(clip, rng())
        assert out.shape == clip.shape
        assert out.dtype == np.float32
        np.testing.assert_array_equal(clip, before)
        np.testing.assert_array_equal(out, step(clip, rng()))  # the same seed, the same bytes


@pytest.mark.parametrize("gamma", [0.0, 2.2])
def test_camera_variance_is_a_line_in_linear_light(gamma):
    shot, read, gains = 0.004, 0.0002, (1.0, 1.5, 2.0)
    step = Camera(shot, read, gains=gains, gamma=gamma)
    tones = np.linspace(0.25, 0.75, 6)
    variance = []
    for tone in tones:
        value = float(from_linear(np.full((1, 1), tone, np.float32), gamma)[0, 0])
        variance.append(to_linear(step(flat(value), rng()), gamma).var((0, 1, 2)))
    for channel, gain in enumerate(gains):
        slope, intercept = np.polyfit(tones, np.array(variance)[:, channel], 1)
        assert slope == pytest.approx(gain * shot, rel=0.06)
        assert intercept == pytest.approx(gain**2 * read, abs=0.06 * gain * shot)


def test_transfer_curves_are_inverse_and_srgb_is_the_standard_one():
    x = np.linspace(0, 1, 1001, dtype=np.float32).reshape(1, -1)
    for gamma in (0.0, 1.8, 2.2):
        np.testing.assert_allclose(from_linear(to_linear(x, gamma), gamma), x, atol=1e-5)
    expected = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(to_linear(x, 0.0), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "width"),
    [("none", 0.0), ("blur", 0.6), ("blur", 1.0), ("resample", 1.7), ("demosaic", 0)],
)
@pytest.mark.parametrize("shared", [0.0, 0.4])
def test_noise_fields_have_unit_power(kind, width, shared):
    field = noise_field((4, 96, 96, 3), rng(), kind, width, shared)
    assert field.std((0, 1, 2)) == pytest.approx([1.0] * 3, rel=0.03)
    if kind in ("none", "blur"):
        both = (field[..., 0] * field[..., 2]).mean()
        assert both == pytest.approx(shared, abs=0.03)
    near = (field[:, :, 1:] * field[:, :, :-1]).mean()
    assert (abs(near) < 0.02) if kind == "none" else (near > 0.05)


def test_blur_correlates_as_a_gaussian_does():
    field = noise_field((4, 128, 128, 3), rng(), "blur", 1.2, 0.0)
    for lag in (1, 2):
        found = (field[:, :, lag:] * field[:, :, :-lag]).mean()
        assert found == pytest.approx(np.exp(-(lag**2) / (4 * 1.2**2)), abs=0.03)


def test_demosaicing_spreads_red_further_than_green():
    field = demosaiced(rng().standard_normal((256, 256, 3), dtype=np.float32))
    near = [(field[1:, :, c] * field[:-1, :, c]).mean() for c in range(3)]
    assert near[0] > near[1] > 0.2


def test_chroma_noise_leaves_luma_alone():
    sigma = 0.05
    noise = (ChromaNoise(sigma, 1.0)(flat(0.5), rng()) - np.float32(0.5)).astype(np.float64)
    ycc = rgb2ycbcr(noise + 0.5) - rgb2ycbcr(np.full((1, 1, 3), 0.5))
    assert ycc[..., 0].std() < 0.02 * 219 * sigma  # scikit-image: studio range, Y spans 219
    assert ycc[..., 1].std() == pytest.approx(224 * sigma, rel=0.03)
    assert ycc[..., 2].std() == pytest.approx(224 * sigma, rel=0.03)


def test_chroma_subsampling_keeps_grey_and_softens_colour():
    grey = np.repeat(rng().random((1, 33, 35, 1), dtype=np.float32), 3, -1)
    np.testing.assert_allclose(ChromaSubsampling()(grey, rng()), grey, atol=1e-5)
    blocks = np.kron(rng().random((16, 16, 3)), np.ones((2, 2, 1))).astype(np.float32)[None]
    np.testing.assert_allclose(ChromaSubsampling(smooth=False)(blocks, rng()), blocks, atol=1e-5)
    noise = rng().random((1, 64, 64, 3), dtype=np.float32)
    assert ChromaSubsampling()(noise, rng()).var() < 0.8 * noise.var()


def test_grain_is_strongest_in_mid_tones_and_band_passed():
    step = Grain(0.05, size=0.8, colour=0.0, bend=0.5)
    mid, dark = [step(flat(v), rng()) - np.float32(v) for v in (0.5, 0.1)]
    assert mid.std() == pytest.approx(0.05, rel=0.03)
    assert dark.std() == pytest.approx(0.05 * np.sqrt(4 * 0.1 * 0.9), rel=0.03)
    spectrum = np.abs(np.fft.fft2(mid[0, ..., 0])) ** 2
    radius = np.hypot(*np.meshgrid(np.fft.fftfreq(96), np.fft.fftfreq(96)))
    low, middle, high = (
        spectrum[(radius > a) & (radius < b)].mean() for a, b in ((0, 0.03), (0.1, 0.2), (0.4, 0.5))
    )
    assert middle > 2 * low
    assert middle > 2 * high


def test_quantize_gives_levels():
    out = quantize(np.array([-0.1, 0.4999 / 255, 0.5001 / 255, 1.2], np.float32))
    np.testing.assert_allclose(out, [0, 0, 1 / 255, 1], atol=1e-7)
