from itertools import pairwise

import cv2
import numpy as np
import pytest
from motion_scenes import noisy, panning, textured
from skimage import data

from restore.align import Aligner, View, half_variance, warp_full
from restore.align.refine import chain


def linked(clip: list[np.ndarray], sigma: float) -> list[View]:
    views = [View.of(frame) for frame in clip]
    for a, b in pairwise(views):
        Aligner().link(a, b, sigma / 255)
    return views


def swaying(frames: int, sigma: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return noisy frames of a rotating, zooming camera, and the flow from frame 0 to each."""
    large = data.astronaut().astype(np.float32) / 255
    clip, flows = [], []
    y, x = np.mgrid[0:192, 0:256].astype(np.float32)
    grid = np.stack([x, y, np.ones_like(x)], -1)
    first = None
    for number in range(frames):
        move = cv2.getRotationMatrix2D((128, 96), 2.0 * number, 1 + 0.015 * number)
        move[:, 2] += (120 + 2 * number, 120)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        frame = cv2.warpAffine(large, move, (256, 192), flags=flags)
        clip.append(noisy(frame, sigma, number))
        whole = np.vstack([move, [0, 0, 1]])
        first = whole if first is None else first
        there = grid @ (np.linalg.inv(whole) @ first).T
        flows.append((there - grid)[..., :2])
    return clip, flows


@pytest.mark.parametrize("sigma", [10, 25])
def test_refinement_lowers_the_end_point_error(sigma: float) -> None:
    """Compare with the exact flow of a rotating, zooming camera, three frames away."""
    clip, flows = swaying(4, sigma)
    views = linked(clip, sigma)
    exact = flows[3][::2, ::2] / 2
    errors = [
        float(np.linalg.norm(flow - exact, axis=-1)[16:-16, 16:-16].mean())
        for flow in (chain(views, 0, 3).flow, Aligner().motion(views, 0, 3).flow)
    ]
    print(f"sigma {sigma}: chained {errors[0]:.3f}, refined {errors[1]:.3f} pixels at half size")
    assert errors[1] < 0.95 * errors[0], f"chained {errors[0]:.3f}, refined {errors[1]:.3f}"


def occluded(sigma: float) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return two noisy frames, the clean ones, and where the second hides what the first shows."""
    front = cv2.flip(cv2.rotate(textured(72, 72), cv2.ROTATE_180), 1)
    back, lefts = textured(192, 256), (60, 84)
    clip, cleans, masks = [], [], []
    for number, left in enumerate(lefts):
        frame, mask = back.copy(), np.zeros((192, 256), bool)
        frame[60:132, left : left + 72] = front
        mask[60:132, left : left + 72] = True
        clip.append(noisy(frame, sigma, number))
        cleans.append(frame)
        masks.append(mask)
    return clip, cleans, masks[1] & ~masks[0]


@pytest.mark.parametrize("sigma", [10, 25])
def test_confidence_finds_what_an_occluder_hides(sigma: float) -> None:
    """Low trust must cover what is hidden, and pixels that were aligned wrongly, and few others.

    Around the occluder the flow itself errs, far beyond what is hidden: whether a pixel was
    aligned is seen on the clean pictures, warped alike (differences of 20/255, 4 pixels around).
    """
    clip, cleans, hidden = occluded(sigma)
    views = linked(clip, sigma)
    variance = half_variance(np.full((192, 256, 3), sigma / 255, np.float32))
    aligned = Aligner().align(views, 0, 1, variance)
    doubted = aligned.confidence < 0.5
    wrong = np.abs(warp_full(cleans[1], aligned.motion) - cleans[0]).mean(-1) > 20 / 255
    near = cv2.dilate((wrong | hidden).astype(np.uint8), np.ones((9, 9))) > 0
    recall = (doubted & hidden).sum() / hidden.sum()
    precision = (doubted & near).sum() / doubted.sum()
    print(f"sigma {sigma}: precision {precision:.3f}, recall {recall:.3f}")
    assert recall > 0.8, f"recall {recall:.3f}, precision {precision:.3f}"
    assert precision > 0.8, f"recall {recall:.3f}, precision {precision:.3f}"


@pytest.mark.parametrize("sigma", [2, 10, 25, 50])
def test_noise_alone_is_trusted(sigma: float) -> None:
    clip = [noisy(f, sigma, n) for n, f in enumerate(panning(2, (3, 1), 192, 256))]
    variance = half_variance(np.full((192, 256, 3), sigma / 255, np.float32))
    trust = Aligner().align(linked(clip, sigma), 0, 1, variance).confidence[16:-16, 16:-16]
    assert np.median(trust) > 0.8
    assert np.mean(trust > 0.5) > 0.85


def test_frames_that_are_not_linked_cannot_be_aligned() -> None:
    views = [View.of(textured(40, 40)) for _ in range(3)]
    with pytest.raises(ValueError, match="frame 0 has not been linked"):
        chain(views, 0, 2)
    with pytest.raises(ValueError, match="itself"):
        chain(views, 1, 1)


def test_the_same_picture_is_not_copied() -> None:
    views = linked([textured(192, 256)] * 2, 0)
    assert views[0].to_next is not None
    assert views[0].to_next.uniform
    variance = np.zeros((96, 128), np.float32)
    aligned = Aligner().align(views, 0, 1, variance)
    assert aligned.image is views[1].image
    np.testing.assert_array_equal(aligned.confidence, 1)
