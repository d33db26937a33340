import math
from itertools import pairwise

import cv2
import numpy as np
import pytest
from moving_scene import as_float, scene, with_noise
from scipy.ndimage import map_coordinates

from restore.metrics import PairMotion, gray8, pair_motion, warping_error
from restore.metrics.temporal import Flicker, FlowDifference, Ghosting, static_mask


def gray(image):
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)


@pytest.fixture(scope="module")
def motions():
    grays = [gray8(frame) for frame in as_float(scene())]
    return [pair_motion(a, b) for a, b in pairwise(grays)]


def test_warping_error_of_a_known_shift_is_that_of_the_noise():
    rng = np.random.default_rng(0)
    previous = rng.normal(0.5, 0.1, (80, 96, 3)).astype(np.float32)
    current = np.roll(previous, 3, axis=1)
    flow = np.zeros((80, 96, 2), np.float32)
    flow[..., 0] = -3
    visible = np.ones((80, 96), bool)
    visible[:, :3] = False
    motion = PairMotion(flow, visible, visible)
    assert warping_error(motion, previous, current) == pytest.approx(0, abs=1e-6)
    noisy = current + rng.normal(0, 0.02, current.shape).astype(np.float32)
    # The mean of |x| under a normal law is σ sqrt(2 / π).
    expected = 0.02 * math.sqrt(2 / math.pi)
    assert warping_error(motion, previous, noisy) == pytest.approx(expected, rel=0.02)


def test_warping_error_agrees_with_scipy(motions):
    clean = as_float(scene())
    y, x = np.mgrid[: clean[0].shape[0], : clean[0].shape[1]].astype(np.float64)
    motion = motions[2]
    flow = motion.flow.astype(np.float64)
    where = np.stack([y + flow[..., 1], x + flow[..., 0]])
    warped = np.stack(
        [map_coordinates(clean[2][..., c], where, order=1, mode="nearest") for c in range(3)], -1
    )
    expected = np.abs(clean[3] - warped)[motion.visible].mean()
    # Bilinear there, bicubic here: alike where the picture is at rest, and nearly so elsewhere.
    assert warping_error(motion, clean[2], clean[3]) == pytest.approx(expected, rel=0.1)


def test_uncovered_places_lie_behind_the_foreground(motions):
    hidden = ~motions[3].visible
    front = (slice(48, 112), slice(8 + 6 * 4, 8 + 6 * 4 + 85))
    behind = (slice(52, 108), slice(8 + 6 * 3, 8 + 6 * 4))
    assert hidden[behind].mean() > 0.6
    assert hidden[front].mean() < 0.3
    assert hidden.mean() < 0.1


def test_no_visible_pixel_means_no_figure():
    nothing = np.zeros((20, 20), bool)
    motion = PairMotion(np.zeros((20, 20, 2), np.float32), nothing, nothing)
    assert math.isnan(warping_error(motion, np.zeros((20, 20, 3), np.float32),
                                    np.zeros((20, 20, 3), np.float32)))  # fmt: skip


@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_flicker_is_the_deviation_of_independent_noise(sigma):
    clean = as_float(scene())
    rng = np.random.default_rng(1)
    noisy = [x + rng.normal(0, sigma / 255, x.shape).astype(np.float32) for x in clean]
    flicker = Flicker()
    for i in range(1, len(clean)):
        static = static_mask(gray8(clean[i - 1]), gray8(clean[i]))
        flicker.add(static, noisy[i] - noisy[i - 1], clean[i] - clean[i - 1])
    assert flicker.value == pytest.approx(sigma, rel=0.02)


def test_an_error_that_stays_does_not_flicker():
    clean = as_float(scene())
    fixed = np.random.default_rng(2).normal(0, 0.05, clean[0].shape).astype(np.float32)
    flicker = Flicker()
    static = static_mask(gray8(clean[0]), gray8(clean[1]))
    flicker.add(static, (clean[1] + fixed) - (clean[0] + fixed), clean[1] - clean[0])
    assert flicker.value == pytest.approx(0, abs=1e-3)
    assert 0.3 < static.mean() < 0.95


def test_flicker_without_static_pixels_is_unknown():
    flicker = Flicker()
    change = np.zeros((16, 16, 3), np.float32)
    assert math.isnan(flicker.add(np.zeros((16, 16), bool), change, change))
    assert math.isnan(flicker.value)


def test_flow_difference_is_the_speed_that_was_lost():
    plane = cv2.GaussianBlur(np.random.default_rng(3).random((128, 160, 3), np.float32), (0, 0), 2)
    plane = (plane - plane.min()) / (plane.max() - plane.min())
    moved = np.roll(plane, 4, axis=1)
    measure = FlowDifference()
    moving, resting = measure.flow(plane, moved), measure.flow(plane, plane)
    assert measure.distance(moving, moving) == 0
    assert measure.distance(resting, moving) == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("side", [-1, 1])
def test_ghosting_is_the_share_of_the_neighbour(motions, share, side):
    grays = [gray(frame) for frame in as_float(scene())]
    out = [
        (1 - share) * frame + share * grays[min(max(i + side, 0), len(grays) - 1)]
        for i, frame in enumerate(grays)
    ]
    measure = Ghosting()
    for i, motion in enumerate(motions):
        # The ends of the clip have no neighbour on one side.
        if 0 < i < len(motions) - 1:
            measure.add(motion, (grays[i], grays[i + 1]), (out[i], out[i + 1]))
    assert measure.value == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.0])
def test_blur_and_noise_are_no_ghosts(motions, sigma):
    grays = [gray(frame) for frame in as_float(scene())]
    noisy = [gray(frame) for frame in as_float(with_noise(scene(), 10))]
    blurred = [cv2.GaussianBlur(frame, (0, 0), sigma) for frame in noisy]
    measure = Ghosting()
    for i, motion in enumerate(motions):
        measure.add(motion, (grays[i], grays[i + 1]), (blurred[i], blurred[i + 1]))
    assert abs(measure.value) < 0.03
