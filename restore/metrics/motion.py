"""Motion of the reference clip between consecutive frames, computed once for all figures."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.align.flow import MIN_SIDE
from restore.align.warp import compose
from restore.metrics.fidelity import Image

_AGREEMENT = 1.0
"""Pixels by which forward and backward flow may disagree where both see the same point."""


@dataclass(frozen=True)
class PairMotion:
    """How the current frame of the reference follows from the previous one."""

    flow: NDArray[np.float32]
    """(H, W, 2) pixels, x first: where each pixel of the current frame lies in the previous."""
    visible: NDArray[np.bool_]
    """(H, W), true where the previous frame shows the same point; the rest is uncovered."""
    visible_next: NDArray[np.bool_]
    """(H, W) of the previous frame, true where the current one shows the same point."""

    def warp(self, previous: Image) -> Image:
        """Bring a previous frame (H, W) or (H, W, C) onto the current one.

        Bicubic, unlike `restore.align.warp`: a bilinear one would soften what is measured.
        """
        return cv2.remap(
            previous, _targets(self.flow), None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        )


def _targets(flow: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = flow.shape[:2]
    targets = flow.copy()
    targets[..., 0] += np.arange(width, dtype=np.float32)
    targets[..., 1] += np.arange(height, dtype=np.float32)[:, None]
    return targets


def gray8(image: Image) -> NDArray[np.uint8]:
    """Return the (H, W) 8-bit grey of an RGB picture in [0, 1], as flow estimators want it."""
    return cv2.cvtColor(cv2.convertScaleAbs(image, alpha=255), cv2.COLOR_RGB2GRAY)


def pair_motion(previous: NDArray[np.uint8], current: NDArray[np.uint8]) -> PairMotion:
    """Estimate the motion from two grey frames with DIS flow, medium preset, both ways.

    Args:
        previous: (H, W) uint8, as `gray8` makes it.
        current: The same, one frame later. Pictures too small for DIS are taken to be at rest.
    """
    if min(current.shape) < MIN_SIDE:
        still, seen = np.zeros((*current.shape, 2), np.float32), np.ones(current.shape, bool)
        return PairMotion(still, seen, seen)
    estimator = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    back = estimator.calc(current, previous, None)
    forth = estimator.calc(previous, current, None)
    return PairMotion(back, _agreement(back, forth), _agreement(forth, back))


def _agreement(flow: NDArray[np.float32], opposite: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return where following `flow` and then `opposite` leads back, inside the picture."""
    height, width = flow.shape[:2]
    targets, gap = _targets(flow), compose(flow, opposite)
    x, y = targets[..., 0], targets[..., 1]
    agree = cv2.magnitude(gap[..., 0], gap[..., 1]) < _AGREEMENT
    agree &= (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    return agree


def warping_error(motion: PairMotion, previous: Image, current: Image) -> float:
    """Return mean |current - warped previous| over visible pixels, in [0, 1]; NaN without any.

    Steadiness of a clip along the motion of its reference: divide the mean over its frames by
    the reference's own mean. 1 is as steady as the reference, above 1 flickers, below 1 is smoother
    than the reference (blur lowers it too).

    References:
        Lai et al., Learning blind video temporal consistency, ECCV 2018, section 4.2.
    """
    if not motion.visible.any():
        return float("nan")
    difference = cv2.absdiff(current, motion.warp(previous))
    mean = cv2.mean(difference, mask=motion.visible.astype(np.uint8))
    channels = difference.shape[2] if difference.ndim == 3 else 1
    return float(np.mean(mean[:channels]))
