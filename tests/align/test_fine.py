import cv2
import numpy as np
import pytest
from motion_scenes import panning, textured

from restore.align import Aligner, FineAligner, aligner_for, half_variance
from restore.align.warp import warp


def small_clip(step: tuple[float, float]) -> list[np.ndarray]:
    """A camera that moves by a fraction of a pixel of the small pictures."""
    large = panning(3, (4 * step[0], 4 * step[1]), 256, 320)
    return [cv2.resize(f, (80, 64), interpolation=cv2.INTER_AREA) for f in large]


@pytest.mark.parametrize("step", [(1.3, 0.4), (-0.6, 2.7)])
def test_motion_to_a_fraction_of_a_pixel(step: tuple[float, float]) -> None:
    clip, errors = small_clip(step), {}
    for scale in (1, 4):
        aligner = aligner_for(scale)
        views = [aligner.view(frame) for frame in clip]
        for a, b in ((0, 1), (1, 2)):
            aligner.link(views[a], views[b], 0.0)
        aligned = aligner.align(views, 0, 2, half_variance(np.zeros_like(clip[0])))
        inner = (slice(8, -8), slice(8, -8))
        errors[scale] = float(np.abs(aligned.image - clip[0])[inner].mean())
        if scale == 4:
            assert aligned.confidence[inner].mean() > 0.8
            assert aligned.confidence.shape == clip[0].shape[:2]
            assert aligned.motion.flow.shape == (64, 80, 2)
    assert errors[4] < 0.8 * errors[1]


def test_another_picture_is_not_trusted() -> None:
    aligner = FineAligner()
    pictures = [textured(64, 80), np.ascontiguousarray(textured(64, 80)[:, ::-1])]
    views = [aligner.view(picture) for picture in pictures]
    aligner.link(*views, 0.0)
    aligned = aligner.align(views, 0, 1, half_variance(np.zeros_like(pictures[0])))
    assert aligned.confidence.mean() < 0.4


def test_kind_by_scale() -> None:
    assert type(aligner_for(1)) is Aligner
    assert type(aligner_for(2)) is FineAligner


def test_cubic_warp_keeps_more_detail() -> None:
    clip = small_clip((0.5, 0.5))
    flow = np.full((*clip[0].shape[:2], 2), -0.5, np.float32)
    errors = [
        np.abs(warp(clip[0], flow, cubic=cubic) - clip[1])[4:-4, 4:-4].mean()
        for cubic in (False, True)
    ]
    # the camera moves by +0.5: what is at p in frame 1 was at p + 0.5 in frame 0
    there = np.full_like(flow, 0.5)
    right = [
        np.abs(warp(clip[0], there, cubic=cubic) - clip[1])[4:-4, 4:-4].mean()
        for cubic in (False, True)
    ]
    assert right[1] < right[0] < min(errors)
