"""Steadiness of a restored clip against its reference: flicker, motion and ghosts."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.align.flow import DISFlow, search_image
from restore.metrics.fidelity import Image
from restore.metrics.motion import PairMotion

_STATIC_LEVEL = 1.5
"""Mean absolute difference, in steps of 1/255, up to which a neighbourhood counts as static."""
_STATIC_WINDOW = 7
_MIN_PIXELS = 64
"""Fewer pixels than this say nothing."""


def static_mask(previous: NDArray[np.uint8], current: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return where nothing moved between two grey frames of the reference, (H, W)."""
    difference = cv2.absdiff(previous, current)
    window = (_STATIC_WINDOW, _STATIC_WINDOW)
    return cv2.boxFilter(difference, cv2.CV_32F, window) <= _STATIC_LEVEL


class Flicker:
    """Temporal noise that the reference does not have, in its static regions.

    The value is the standard deviation of a pixel around its own mean over time, 0-255 units:
    σ for independent noise of σ, 0 for any error that stays where it is.
    """

    def __init__(self) -> None:
        self._energy, self._pixels = 0.0, 0

    def add(self, static: NDArray[np.bool_], change: Image, reference_change: Image) -> float:
        """Add a pair of frames; return the pair's own value, NaN without static pixels.

        Args:
            static: (H, W), from `static_mask`.
            change: (H, W, 3), current minus previous frame of the clip under test.
            reference_change: The same of the reference.
        """
        mask = static.astype(np.uint8)
        count = cv2.countNonZero(mask)
        if count < _MIN_PIXELS:
            return math.nan
        energy = cv2.norm(change, reference_change, cv2.NORM_L2SQR, mask) / (2 * change.shape[2])
        self._energy += energy
        self._pixels += count
        return 255 * math.sqrt(energy / count)

    @property
    def value(self) -> float:
        """The clip's flicker, 0-255 units; NaN if nothing was static."""
        return 255 * math.sqrt(self._energy / self._pixels) if self._pixels else math.nan


BLUR = 0.7
"""Smoothing of the pictures in which the motion is compared, in pixels at half size."""


class FlowDifference:
    """tOF: how far the motion seen in a clip is from the motion seen in its reference.

    Mean distance in pixels between the two flows, both estimated at half size.

    References:
        Chu et al., Learning temporal coherence via self-supervision for GAN-based video
        generation, ACM TOG 2020, section 5.
    """

    def __init__(self) -> None:
        self._flow = DISFlow()

    def flow(self, previous: Image, current: Image) -> NDArray[np.float32]:
        """Return the flow (h, w, 2) from the current to the previous frame, half-size pixels."""
        return self._flow(search_image(current, BLUR), search_image(previous, BLUR))

    def distance(self, flow: NDArray[np.float32], reference_flow: NDArray[np.float32]) -> float:
        """Return the mean distance of two results of `flow` in full-size pixels."""
        gap = flow - reference_flow
        return 2 * float(cv2.mean(cv2.magnitude(gap[..., 0], gap[..., 1]))[0])


class Ghosting:
    """Share of a neighbouring frame that is left in the output where that frame cannot help.

    In regions that the neighbour does not show (uncovered or about to be covered), the error of
    the output is explained, by least squares, as `share · (neighbour - frame)` plus a part of the
    frame's own detail, so that blur is not taken for a ghost. 0: no ghosts; 0.5: the average of two
    frames. The neighbour is taken both as it stands and warped along the flow.
    """

    def __init__(self) -> None:
        self._normal = np.zeros((3, 3, 3))
        self._right = np.zeros((3, 3))
        self._pixels = 0

    def add(
        self, motion: PairMotion, reference: tuple[Image, Image], out: tuple[Image, Image]
    ) -> None:
        """Add (previous, current) grey pictures (H, W) in [0, 1] of reference and output."""
        uncovered, leaving = ~motion.visible, ~motion.visible_next
        self._pixels += int(np.count_nonzero(uncovered)) + int(np.count_nonzero(leaving))
        self._explain(0, uncovered, reference[1], out[1], reference[0])
        self._explain(1, uncovered, reference[1], out[1], motion.warp(reference[0]))
        self._explain(2, leaving, reference[0], out[0], reference[1])

    def _explain(
        self, case: int, where: NDArray[np.bool_], frame: Image, out: Image, neighbour: Image
    ) -> None:
        detail = [cv2.GaussianBlur(frame, (0, 0), scale) - frame for scale in (0.8, 2.5)]
        causes = np.stack([x[where] for x in (neighbour - frame, *detail)]).astype(np.float64)
        self._normal[case] += causes @ causes.T
        self._right[case] += causes @ (out - frame)[where]

    @property
    def value(self) -> float:
        """The largest of the shares found; NaN if hardly anything was uncovered."""
        if self._pixels < _MIN_PIXELS:
            return math.nan
        shares = [
            np.linalg.lstsq(normal, right, rcond=1e-9)[0][0]
            for normal, right in zip(self._normal, self._right, strict=True)
        ]
        return float(max(shares))
