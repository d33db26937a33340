"""NoiseCurve and noise_map: closed forms, properties, refusals."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import data

from restore.analyse import NoiseCurve, noise_map

CAMERA = NoiseCurve((0.01, 0.006, 0.02), (0.0004, 0.0002, 0.0003))
variances = st.tuples(*[st.floats(0, 0.1)] * 3)


def curve_between(black, white):
    return NoiseCurve(tuple(w - b for b, w in zip(black, white, strict=True)), black)


@pytest.fixture(scope="module")
def picture():
    return data.astronaut()[:301, :405].astype(np.float32) / 255


def test_white_is_the_same_everywhere(picture):
    sigma = noise_map(NoiseCurve.white(30 / 255), picture)
    assert sigma.dtype == np.float32
    assert sigma.shape == picture.shape
    np.testing.assert_allclose(sigma, 30 / 255, rtol=1e-6)


@pytest.mark.parametrize("level", [0.0, 0.25, 1.0])
def test_flat_image_gives_the_closed_form(level):
    sigma = noise_map(CAMERA, np.full((37, 52, 3), level, np.float32))
    expected = np.sqrt(np.array(CAMERA.slope) * level + CAMERA.intercept)
    np.testing.assert_allclose(sigma, np.broadcast_to(expected, sigma.shape), atol=1e-6)


def test_noise_hardly_moves_its_own_map(picture):
    noise = np.random.default_rng(0).standard_normal(picture.shape, np.float32) * 50 / 255
    clean_map, noisy_map = noise_map(CAMERA, picture), noise_map(CAMERA, picture + noise)
    assert np.abs(noisy_map / clean_map - 1).mean() < 0.06
    assert noisy_map.mean() == pytest.approx(clean_map.mean(), rel=0.02)


def test_each_channel_has_its_own_curve(picture):
    red_only = NoiseCurve((0.01, 0, 0), (0, 0, 0))
    sigma = noise_map(red_only, picture)
    assert sigma[..., 0].mean() > 0.03
    assert not sigma[..., 1:].any()


def test_map_follows_the_picture_without_shift():
    ramp = np.linspace(0, 1, 400, dtype=np.float32)
    image = np.broadcast_to(ramp[None, :, None], (60, 400, 3))
    sigma = noise_map(CAMERA, image)
    expected = CAMERA.sigma(image)
    np.testing.assert_allclose(sigma[:, 20:-20], expected[:, 20:-20], rtol=0.01)


def test_image_beyond_the_range_counts_as_its_end():
    dark, bright = np.full((16, 16, 3), -0.4, np.float32), np.full((16, 16, 3), 1.7, np.float32)
    np.testing.assert_allclose(noise_map(CAMERA, dark)[0, 0], CAMERA.sigma(np.zeros(3)), rtol=1e-5)
    np.testing.assert_allclose(noise_map(CAMERA, bright)[0, 0], CAMERA.sigma(np.ones(3)), rtol=1e-5)


def test_local_mean_agrees_with_a_plain_box_filter(picture):
    even = picture[:300, :404]
    mean = cv2.blur(even, (12, 12), borderType=cv2.BORDER_REFLECT)
    difference = noise_map(CAMERA, even) / CAMERA.sigma(mean) - 1
    assert np.sqrt((difference**2).mean()) < 0.05


@given(st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_tiny_images(height, width):
    sigma = noise_map(CAMERA, np.full((height, width, 3), 0.5, np.float32))
    assert sigma.shape == (height, width, 3)
    np.testing.assert_allclose(sigma, CAMERA.sigma(np.full(3, 0.5)) + 0 * sigma, rtol=1e-5)


@given(variances, variances, st.floats(0, 3))
@settings(deadline=None)
def test_scaling_multiplies_sigma(black, white, factor):
    curve = curve_between(black, white)
    x = np.random.default_rng(0).random((5, 3))
    np.testing.assert_allclose(curve.scaled(factor).sigma(x), factor * curve.sigma(x), atol=1e-4)


@given(variances, variances, variances, variances, st.floats(0, 1))
@settings(deadline=None)
def test_blend_is_linear_in_variance_and_always_valid(a, b, c, d, weight):
    old, new = curve_between(a, b), curve_between(c, d)
    x = np.random.default_rng(1).random((5, 3))
    expected = (1 - weight) * old.sigma(x) ** 2 + weight * new.sigma(x) ** 2
    np.testing.assert_allclose(old.blend(new, weight).sigma(x) ** 2, expected, atol=1e-6)


def test_mean_sigma():
    assert NoiseCurve.white(0.1).mean_sigma == pytest.approx(0.1)
    assert NoiseCurve((0.02,) * 3, (0.01,) * 3).mean_sigma == pytest.approx(math.sqrt(0.02))


@pytest.mark.parametrize(
    ("slope", "intercept"),
    [
        ((0, 0, 0), (-0.01, 0, 0)),
        ((-0.02, 0, 0), (0.01, 0, 0)),
        ((0, 0), (0, 0, 0)),
        ((0, math.nan, 0), (0, 0, 0)),
        ((0, 0, 0), (0, 0, math.inf)),
    ],
)
def test_impossible_curves_are_refused(slope, intercept):
    with pytest.raises(ValueError, match=r"variance|three finite"):
        NoiseCurve(slope, intercept)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf])
def test_impossible_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="sigma"):
        NoiseCurve.white(bad)
    with pytest.raises(ValueError, match="factor"):
        CAMERA.scaled(bad)
    with pytest.raises(ValueError, match="weight"):
        CAMERA.blend(CAMERA, bad)


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 4), (1, 8, 8, 3)])
def test_wrong_image_shape_is_refused(shape):
    with pytest.raises(ValueError, match="shape"):
        noise_map(CAMERA, np.zeros(shape, np.float32))


def test_variances_of_independent_noises_add_up():
    sigma = CAMERA.plus(0.04).sigma([[0.3, 0.5, 0.7]])
    np.testing.assert_allclose(sigma, np.hypot(CAMERA.sigma([[0.3, 0.5, 0.7]]), 0.04), rtol=1e-6)
    for wrong in (-0.1, math.nan):
        with pytest.raises(ValueError, match="sigma"):
            CAMERA.plus(wrong)
