"""Figures of a whole clip, streamed: frames go in one by one and are forgotten."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.metrics.fidelity import Image, luma, mse, psnr_of_mse, ssim, ssim_and_ms_ssim
from restore.metrics.motion import PairMotion, gray8, pair_motion, warping_error
from restore.metrics.perceptual import lpips_distance
from restore.metrics.regions import RegionFinder
from restore.metrics.spectral import RadialSpectrum
from restore.metrics.temporal import Flicker, FlowDifference, Ghosting, static_mask

_MIN_VISIBLE = 0.1
"""Pairs whose frames share less than this part of the picture are cuts, not motion."""
_MIN_SSIM_SIDE = 11
_MIN_LPIPS_SIDE = 64

FrameFigures = dict[str, float]


@dataclass(frozen=True)
class Sampling:
    """How often the costly figures are taken; fidelity is measured on every frame."""

    pair_step: int = 1
    """Every how many frames a pair of consecutive frames is examined for motion and spectrum."""
    lpips_step: int = 0
    """Every how many frames LPIPS is taken; 0 for never."""

    def __post_init__(self) -> None:
        if self.pair_step < 1 or self.lpips_step < 0:
            raise ValueError(f"steps must be positive, got {self.pair_step} and {self.lpips_step}")


class Picture:
    """A frame with the forms that the figures need, each made when first asked for."""

    def __init__(self, image: Image) -> None:
        self.image = image

    @cached_property
    def gray8(self) -> NDArray[np.uint8]:
        """(H, W) 8-bit grey for flow."""
        return gray8(self.image)

    @cached_property
    def gray(self) -> Image:
        """(H, W) grey in [0, 1]."""
        return cv2.cvtColor(self.image, cv2.COLOR_RGB2GRAY)

    @cached_property
    def luma(self) -> Image:
        """(H, W) BT.601 studio-range luma."""
        return luma(self.image)


class ReferencePair:
    """Two consecutive frames of the reference and what is shared by all clips compared to it."""

    def __init__(self, previous: Picture, current: Picture, flow: FlowDifference) -> None:
        self.previous, self.current, self.flows = previous, current, flow

    @cached_property
    def motion(self) -> PairMotion:
        """Flow and visibility."""
        return pair_motion(self.previous.gray8, self.current.gray8)

    @cached_property
    def is_cut(self) -> bool:
        """Whether the frames have nearly nothing in common."""
        return bool(self.motion.visible.mean() < _MIN_VISIBLE)

    @cached_property
    def static(self) -> NDArray[np.bool_]:
        """Where nothing moves."""
        return static_mask(self.previous.gray8, self.current.gray8)

    @cached_property
    def change(self) -> Image:
        """Current minus previous frame."""
        return self.current.image - self.previous.image

    @cached_property
    def warp(self) -> float:
        """The reference's own warping error."""
        return warping_error(self.motion, self.previous.image, self.current.image)

    @cached_property
    def flow(self) -> NDArray[np.float32]:
        """Flow as tOF compares it."""
        return self.flows.flow(self.previous.image, self.current.image)

    @cached_property
    def lpips(self) -> float:
        """Distance of the two frames."""
        return lpips_distance(self.previous.image, self.current.image)


@dataclass
class Clip:
    """Figures of one clip against the reference, accumulated."""

    height: int
    width: int
    frames: list[FrameFigures] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spectrum = RadialSpectrum(self.height, self.width)
        self.worst = RegionFinder(self.height, self.width)
        self._flicker, self._ghosting = Flicker(), Ghosting()
        self._errors: list[float] = []
        self._warp: list[tuple[float, float]] = []

    def add(
        self, number: int, reference: Picture, picture: Picture, *, examine: bool, lpips: bool
    ) -> FrameFigures:
        """Measure frame `number`; returns its figures, which `add_pair` completes.

        Args:
            number: Counted in frames of the reference.
            reference: The clean frame.
            picture: The frame to measure.
            examine: Whether to take MS-SSIM beside the fidelity that every frame gets.
            lpips: Whether to take LPIPS.
        """
        error = mse(reference.image, picture.image)
        self._errors.append(error)
        figures = {"psnr": psnr_of_mse(error)}
        figures["psnr_y"] = psnr_of_mse(mse(reference.luma, picture.luma))
        if min(self.height, self.width) >= _MIN_SSIM_SIDE:
            if examine:
                both = ssim_and_ms_ssim(reference.image, picture.image)
                figures["ssim"], figures["ms_ssim"] = both
            else:
                figures["ssim"] = ssim(reference.image, picture.image)
        if lpips and min(self.height, self.width) >= _MIN_LPIPS_SIDE:
            figures["lpips"] = lpips_distance(reference.image, picture.image)
        difference = picture.gray - reference.gray
        self.worst.add(number, cv2.multiply(difference, difference))
        self.frames.append(figures)
        return figures

    def add_pair(self, pair: ReferencePair, previous: Picture, current: Picture) -> None:
        """Measure the step from one frame to the next; belongs to the frame added last."""
        figures = self.frames[-1]
        self.spectrum.add(pair.current.luma, current.luma)
        if pair.is_cut:
            return
        warp = warping_error(pair.motion, previous.image, current.image)
        if pair.warp > 0:
            self._warp.append((warp, pair.warp))
            figures["warp"] = warp / pair.warp
        change = current.image - previous.image
        figures["flicker"] = self._flicker.add(pair.static, change, pair.change)
        flow = pair.flows.flow(previous.image, current.image)
        figures["tof"] = pair.flows.distance(flow, pair.flow)
        self._ghosting.add(
            pair.motion,
            (pair.previous.gray, pair.current.gray),
            (previous.gray, current.gray),
        )
        if "lpips" in figures:
            own = lpips_distance(previous.image, current.image)
            figures["tlp"] = abs(own - pair.lpips)

    def mean(self) -> FrameFigures:
        """Return the clip's figures; NaN where nothing could be measured."""
        names = ("psnr", "psnr_y", "ssim", "ms_ssim", "lpips", "tof", "tlp")
        figures = {
            name: mean_of(frame.get(name, math.nan) for frame in self.frames) for name in names
        }
        figures["psnr_sequence"] = psnr_of_mse(mean_of(self._errors))
        ratio = np.array(self._warp).reshape(-1, 2).mean(axis=0) if self._warp else None
        figures["warp"] = math.nan if ratio is None else float(ratio[0] / ratio[1])
        figures["flicker"] = self._flicker.value
        figures["ghosting"] = self._ghosting.value
        spectra = self.spectrum.spectra
        figures["detail_lost"] = math.nan if spectra is None else spectra.detail_lost
        figures["high_gain_db"] = math.nan if spectra is None else spectra.high_gain_db
        return figures


def _is_due(number: int, step: int) -> bool:
    """Say whether a costly figure is taken on a frame: on the second one and every `step` on."""
    return step > 0 and number % step == min(1, step - 1)


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values that are numbers; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


class FullReference:
    """Compares clips with a reference, frame by frame, in memory that does not grow with them.

    Args:
        height: Lines of every picture.
        width: Columns.
        clips: How many clips are compared to the reference.
        sampling: How often the costly figures are taken.
    """

    def __init__(
        self, height: int, width: int, clips: int, sampling: Sampling | None = None
    ) -> None:
        self._sampling = sampling or Sampling()
        self.clips = [Clip(height, width) for _ in range(clips)]
        self.moving = RegionFinder(height, width)
        self._flow = FlowDifference()
        self._previous: tuple[Picture, list[Picture | None]] | None = None
        self._count = 0

    def add(self, reference: Image, images: Sequence[Image | None]) -> list[FrameFigures | None]:
        """Add a frame of the reference and of each clip, None where a clip has none.

        Args:
            reference: (H, W, 3) float32 RGB in [0, 1].
            images: One of the same shape per clip.

        Returns:
            The figures of this frame for each clip, None where it has none.

        Raises:
            ValueError: If the shapes differ.
        """
        current = Picture(reference)
        pictures = [None if image is None else Picture(image) for image in images]
        lpips = _is_due(self._count, self._sampling.lpips_step)
        examine = lpips or _is_due(self._count, self._sampling.pair_step)
        results = [
            None
            if picture is None
            else clip.add(self._count, current, picture, examine=examine, lpips=lpips)
            for clip, picture in zip(self.clips, pictures, strict=True)
        ]
        if self._previous is not None:
            self._add_pairs(*self._previous, current, pictures, examine=examine)
        self._previous = current, pictures
        self._count += 1
        return results

    def _add_pairs(
        self,
        before: Picture,
        old: Sequence[Picture | None],
        current: Picture,
        pictures: Sequence[Picture | None],
        *,
        examine: bool,
    ) -> None:
        self.moving.add(self._count, cv2.absdiff(current.gray, before.gray))
        if not examine:
            return
        pair = ReferencePair(before, current, self._flow)
        for clip, previous, picture in zip(self.clips, old, pictures, strict=True):
            if previous is not None and picture is not None:
                clip.add_pair(pair, previous, picture)
