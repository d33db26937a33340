import math

import cv2
import numpy as np
import pytest
from moving_scene import as_float, scene

from restore.metrics.blind import BlindFlicker, NoReference, Removed


@pytest.fixture(scope="module")
def clips():
    clean = as_float(scene())
    rng = np.random.default_rng(0)
    noisy = [x + rng.normal(0, 10 / 255, x.shape).astype(np.float32) for x in clean]
    blurred = [cv2.GaussianBlur(x, (0, 0), 1.2) for x in noisy]
    return {"clean": clean, "noisy": noisy, "blurred": blurred}


def test_removed_noise_has_its_level_and_nothing_of_the_picture():
    rng = np.random.default_rng(1)
    clean = as_float(scene(1))[0]
    noise = rng.normal(0, 8 / 255, clean.shape).astype(np.float32)
    removed = Removed(*clean.shape[:2])
    level, structure = removed.add(clean + noise, clean)
    assert level == removed.level == pytest.approx(8, rel=0.02)
    assert structure == removed.structure == pytest.approx(0, abs=0.02)
    assert removed.whiteness > 0.9


def test_blur_removes_structure_and_sharpening_adds_it():
    clean = as_float(scene(1))[0]
    blurred = cv2.GaussianBlur(clean, (0, 0), 1.2)
    for after, low, high in ((blurred, 0.2, 1.0), (clean + 2 * (clean - blurred), -1.0, -0.2)):
        removed = Removed(*clean.shape[:2])
        removed.add(clean, after)
        assert low < removed.structure < high
    assert removed.whiteness < 0.8


def test_flicker_of_independent_noise():
    rng = np.random.default_rng(2)
    flicker = BlindFlicker(2)
    before = rng.normal(0, 10 / 255, (9, 160, 160, 3)).astype(np.float32)
    after = before / 4
    for i in range(1, 9):
        flicker.add([before[i] - before[i - 1], after[i] - after[i - 1]])
    # The calmest quarter of 8x8 blocks of white noise lies a little under the mean.
    assert 8 < flicker.values[0] < 10
    assert flicker.values[1] == pytest.approx(flicker.values[0] / 4, rel=1e-3)
    assert math.isnan(BlindFlicker(1).values[0])


def test_a_good_restoration_and_a_blurred_one_are_told_apart(clips):
    height, width = clips["clean"][0].shape[:2]
    meter = NoReference(height, width, 2)
    for noisy, clean, blurred in zip(*(clips[k] for k in ("noisy", "clean", "blurred")),
                                     strict=True):  # fmt: skip
        meter.add(noisy, [clean, blurred])
    good, bad = meter.mean(0), meter.mean(1)
    assert good["noise_before"] == pytest.approx(10, rel=0.2)
    assert good["noise_after"] < 2.5
    assert abs(good["structure"]) < 0.03 < bad["structure"]
    assert good["flicker_after"] < 0.5 < bad["flicker_after"] < bad["flicker_before"]
    assert good["whiteness"] > bad["whiteness"]
    assert len(meter.frames[0]) == len(clips["clean"])
    assert meter.moving.best is not None


def test_an_untouched_clip_removes_nothing(clips):
    height, width = clips["noisy"][0].shape[:2]
    meter = NoReference(height, width, 1)
    for noisy in clips["noisy"][:3]:
        meter.add(noisy, [noisy])
    found = meter.mean(0)
    assert found["removed"] == 0
    assert found["structure"] == 0
    assert math.isnan(found["whiteness"])
    assert found["flicker_after"] == found["flicker_before"]
