import collections

import numpy as np
import pytest

from restore.analyse import UNSEEN, NoiseCurve
from restore.data.curves import oracle_curve, plausible, with_error
from restore.data.degrade import AwgnRecipe, MixedRecipe, degrade, draw_sigma


@pytest.fixture
def clip(texture):
    picture = texture(120, 160)
    return (
        np.stack([picture[i : i + 64, 2 * i : 2 * i + 64] for i in range(4)]).astype(np.float32)
        / 255
    )


def rng(seed=0):
    return np.random.default_rng(seed)


def test_oracle_finds_the_line():
    ramp = np.tile(np.linspace(0, 1, 512, dtype=np.float32)[None, None, :, None], (4, 128, 1, 3))
    true = NoiseCurve((0.004, 0.0, -0.001), (0.001, 0.002, 0.002))
    noisy = ramp + true.sigma(ramp) * rng().standard_normal(ramp.shape, dtype=np.float32)
    found = oracle_curve(ramp, noisy)
    assert found.slope == pytest.approx(true.slope, abs=2e-4)
    assert found.intercept == pytest.approx(true.intercept, abs=1e-4)


def test_oracle_of_hard_cases(clip):
    assert oracle_curve(clip, clip) == NoiseCurve.white(0)
    tone = np.full_like(clip, 0.3)
    noisy = tone + np.float32(0.1) * rng().standard_normal(clip.shape, dtype=np.float32)
    assert oracle_curve(tone, noisy).sigma([0, 0, 0]) == pytest.approx([0.1] * 3, rel=0.03)
    # Steeply falling noise: the line stays at or above zero at white.
    ramp = np.tile(np.linspace(0, 1, 64, dtype=np.float32)[None, None, :, None], (4, 64, 1, 3))
    noisy = ramp + np.where(ramp < 0.2, 0.2, 0.0) * rng().standard_normal(ramp.shape)
    found = oracle_curve(ramp, noisy.astype(np.float32))
    assert min(s + i for s, i in zip(found.slope, found.intercept, strict=True)) >= -1e-9


def test_simulated_error_is_log_normal():
    ratio = np.log(
        [with_error(NoiseCurve.white(0.1), rng(i)).mean_sigma / 0.1 for i in range(4000)]
    )
    assert ratio.mean() == pytest.approx(0, abs=0.01)
    assert ratio.std() == pytest.approx(np.sqrt(0.9 * 0.05**2 + 0.1 * 0.15**2), rel=0.08)


def test_a_patch_without_quiet_blocks_is_not_believed():
    truth, texture_taken_for_noise = NoiseCurve.white(0.02), NoiseCurve.white(0.1)
    for seed in range(20):
        found = plausible(texture_taken_for_noise, truth, rng(seed)).mean_sigma
        assert 0.028 - 1e-9 <= found <= 0.028 + 1 / 255
    near = NoiseCurve.white(0.015)
    assert plausible(near, truth, rng()).mean_sigma == pytest.approx(0.015)
    assert plausible(NoiseCurve.white(0.0001), truth, rng()).mean_sigma == pytest.approx(0.002)


def test_awgn_recipe(clip):
    stored = 0
    for seed in range(60):
        sample = degrade(clip, AwgnRecipe(sigma_max=50 / 255, sigma_min=5 / 255), rng(seed))
        (step,) = sample.meta["degradations"]
        assert 5 / 255 <= step["sigma"] <= 50 / 255
        assert sample.meta["curve"] == "known"
        assert abs(np.log(sample.curve.mean_sigma / step["sigma"])) < 0.7
        if step["clipped"]:
            stored += 1
            assert sample.noisy.min() >= 0
            assert sample.noisy.max() <= 1
            levels = sample.noisy * 255
            assert np.abs(levels - np.rint(levels)).max() < 1e-4
        else:
            assert np.std(sample.noisy - clip) == pytest.approx(step["sigma"], rel=0.05)
        assert sample.clean is clip
    assert 18 <= stored <= 42
    with pytest.raises(ValueError, match="sigma_min"):
        AwgnRecipe(sigma_max=0.1, sigma_min=0.2)
    with pytest.raises(ValueError, match="shares"):
        AwgnRecipe(clipped_share=1.5)


def test_sigma_is_drawn_over_the_whole_range():
    drawn = np.array([draw_sigma(rng(i), 0.0, 60 / 255) for i in range(4000)]) * 255
    assert drawn.max() <= 60
    assert drawn.min() >= 0
    assert np.mean(drawn < 5) == pytest.approx(
        0.5 * 5 / 60 + 0.5 * np.log(5) / np.log(60), abs=0.03
    )
    assert draw_sigma(rng(), 0.0, 0.0) == 0


def test_mixed_recipe_draws_its_families_in_their_shares():
    recipe = MixedRecipe()
    found = collections.Counter()
    for seed in range(3000):
        steps = recipe.draw(rng(seed)).steps
        names = [s.name for s in steps]
        found["white"] += names == ["white"]
        found["nothing"] += not names
        found["compressed"] += "compress" in names
        assert "compress" not in names[:-1]  # what a file went through comes last
        found[tuple(names)] += 1
    assert found["white"] / 3000 == pytest.approx(0.47, abs=0.03)
    assert found["nothing"] / 3000 == pytest.approx(0.03, abs=0.01)
    assert found["compressed"] / 3000 == pytest.approx(0.10 + 0.75 * 0.40, abs=0.03)
    assert found["camera", "grain", "compress"]
    assert found["grain", "camera", "compress"]


def test_mixed_samples_are_seeded_stored_and_told_a_usable_curve(clip):
    origins = set()
    for seed in range(40):
        sample = degrade(clip, MixedRecipe(clipped_share=1.0), rng(seed))
        again = degrade(clip, MixedRecipe(clipped_share=1.0), rng(seed))
        np.testing.assert_array_equal(sample.noisy, again.noisy)
        assert sample.curve == again.curve
        assert sample.meta == again.meta
        assert sample.noisy.dtype == np.float32
        assert sample.noisy.shape == clip.shape
        levels = sample.noisy * 255
        assert np.abs(levels - np.rint(levels)).max() < 1e-4
        error = np.sqrt(np.mean((sample.noisy - clip) ** 2))
        assert sample.curve.mean_sigma < 3 * error + 2 / 255 + UNSEEN
        origins.add(sample.meta["curve"])
    assert origins == {"known", "measured", "oracle"}


def test_identity_returns_a_copy(clip):
    only = MixedRecipe(white=0, camera=0, compression=0, grain=0, chroma=0, identity=1)
    sample = degrade(clip, only, rng())
    np.testing.assert_allclose(sample.noisy, clip, atol=1e-6)
    assert sample.noisy is not clip
    assert sample.curve.mean_sigma <= 1 / 255 + UNSEEN


def test_the_estimator_is_asked_about_the_noisy_clip(clip):
    seen = []

    def estimator(frames):
        seen.append(frames)
        return NoiseCurve.white(0.03)

    only = MixedRecipe(
        white=0, camera=1, compression=0, grain=0, chroma=0, identity=0, estimated_share=1.0
    )
    sample = degrade(clip, only, rng(), estimator=estimator)
    np.testing.assert_array_equal(np.stack(seen[0]), sample.noisy)
    assert sample.meta["curve"] == "measured"
    assert UNSEEN**2 < min(sample.curve.intercept) <= 0.03**2 + UNSEEN**2


def test_wrong_shape(clip):
    with pytest.raises(ValueError, match="float32"):
        degrade(clip[0], AwgnRecipe(), rng())
