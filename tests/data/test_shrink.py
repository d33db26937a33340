import cv2
import numpy as np
import pytest
from PIL import Image

from restore.analyse import NoiseCurve
from restore.data import Consecutive, MixedRecipe, builtin_source
from restore.data.shrink import (
    SHRINKS,
    CleanRecipe,
    SmallDataset,
    mistaken,
    shrink_area,
    shrink_bicubic,
    shrink_gaussian,
)


def ramp(height: int, width: int) -> np.ndarray:
    """A plane whose value is linear in x and y: every filter keeps it but for the border."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    plane = 0.1 + 0.4 * x / width + 0.4 * y / height
    return np.repeat(plane[None, ..., None], 3, axis=3)


@pytest.mark.parametrize("scale", [2, 3, 4])
@pytest.mark.parametrize("way", sorted(SHRINKS))
def test_centres_lie_where_they_should(way: str, scale: int) -> None:
    height, width = 24 * scale, 20 * scale
    small = SHRINKS[way](ramp(height, width), scale, np.random.default_rng(0))
    assert small.shape == (1, 24, 20, 3)
    assert small.dtype == np.float32
    y, x = ((np.arange(n) + 0.5) * scale - 0.5 for n in (24, 20))
    expected = 0.1 + 0.4 * x / width + 0.4 * y[:, None] / height
    inner = (slice(6, -6), slice(6, -6))
    np.testing.assert_allclose(small[0, ..., 1][inner], expected[inner], atol=1.1 / 255)
    # Rounding averages out; half a pixel of the large picture would be 1.2 levels at least.
    assert abs(float((small[0, ..., 1] - expected)[inner].mean())) < 0.4 / 255


def test_bicubic_is_pillows() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)
    theirs = np.asarray(Image.fromarray(picture).resize((12, 8), Image.Resampling.BICUBIC))
    ours = shrink_bicubic(picture[None].astype(np.float32) / 255, 4)
    np.testing.assert_array_equal(np.rint(ours[0] * 255).astype(np.uint8), theirs)


@pytest.mark.parametrize(("scale", "sigma"), [(2, 0.8), (3, 1.2), (4, 1.6)])
def test_gaussian_is_as_wide_as_the_benchmarks(scale: int, sigma: float) -> None:
    """A wave is damped by exp(-2 (π σ / period)²)."""
    period, x = 6 * scale, np.arange(48 * scale)
    wave = np.cos(2 * np.pi * x / period)
    clip = np.broadcast_to((0.5 + 0.45 * wave)[None, None, :, None], (1, 8 * scale, len(x), 3))
    small = shrink_gaussian(np.ascontiguousarray(clip, np.float32), scale)[0, 4, 12:-12, 0]
    at = (np.arange(48) + 0.5) * scale - 0.5
    seen = np.cos(2 * np.pi * at / period)[12:-12]
    amplitude = ((small - 0.5) * seen).sum() / (seen * seen).sum()
    assert amplitude == pytest.approx(0.45 * np.exp(-2 * (np.pi * sigma / period) ** 2), rel=0.02)


def test_area_is_the_mean_of_squares() -> None:
    clip = np.random.default_rng(1).random((1, 12, 16, 3), np.float32)
    mean = clip[0].reshape(3, 4, 4, 4, 3).mean((1, 3))
    np.testing.assert_allclose(shrink_area(clip, 4)[0], mean, atol=0.51 / 255)


def make(recipe, scale: int = 4, **options) -> SmallDataset:
    return SmallDataset(
        [builtin_source()], Consecutive(), recipe, frames=3, patch=(64, 96), scale=scale,
        shrinks=("bi", "bd"), **options,
    )  # fmt: skip


def test_samples_are_pairs_of_two_sizes_keyed_by_number() -> None:
    data = make(CleanRecipe())
    sample, again = data.sample(2, 1), data.sample(2, 1)
    assert sample.clean.shape == (3, 64, 96, 3)
    assert sample.noisy.shape == (3, 16, 24, 3)
    np.testing.assert_array_equal(sample.noisy, again.noisy)
    assert sample.meta["shrink"] in ("bi", "bd")
    assert sample.meta["degradations"] == []
    large = cv2.resize(sample.noisy[0], (96, 64), interpolation=cv2.INTER_CUBIC)
    assert np.abs(large - sample.clean[0]).mean() < 0.08
    ways = {data.sample(step, 0).meta["shrink"] for step in range(12)}
    assert ways == {"bi", "bd"}
    assert data.describe()["scale"] == 4
    assert data.describe()["recipe"]["name"] == "CleanRecipe"


def test_noise_is_that_of_the_small_picture() -> None:
    sample = make(MixedRecipe(), scale=2).sample(0, 0)
    assert sample.noisy.shape == (3, 32, 48, 3)
    assert sample.meta["curve"] in ("known", "measured", "oracle")


def test_some_are_told_noise_that_is_texture() -> None:
    rng, told = np.random.default_rng(0), NoiseCurve((0.001, 0.0, 0.0), (0.0, 0.0, 0.0))
    curves = [mistaken(told, rng) for _ in range(300)]
    more = [c.mean_sigma - told.mean_sigma for c in curves]
    assert 0.3 < np.mean(np.array(more) > 0) < 0.5
    assert 8 / 255 < max(c.sigma(np.zeros(3))[1] for c in curves) <= 12 / 255
    assert all(c.slope == told.slope for c in curves)


def test_a_patch_has_to_divide() -> None:
    with pytest.raises(ValueError, match="multiple of the scale 5"):
        make(CleanRecipe(), scale=5)
