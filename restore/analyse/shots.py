"""Find hard cuts while frames stream by."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from restore.analyse.noise import FloatArray

Item = TypeVar("Item")

# A frame is compared as a thumbnail of 48 × 27, in 18 tiles of 8 × 9, each looked for within ±4 by
# ±3 of its place: a twelfth of the width, faster than any pan that can still be watched.
_WIDTH, _HEIGHT = 48, 27
_TILE_X, _TILE_Y = 8, 9
_REACH_X, _REACH_Y = 4, 3

_LOST = 0.25  # a tile differing by this share of the contrast of both frames is a stranger
_NEAR = 0.05  # a tile this like its own place need not be looked for elsewhere
_BLANK = 1e-4  # variance of a frame without a picture: black, or white in a flash
_LEAST = 0.5  # no cut below this share of strange tiles
_ABOVE_MOTION = 0.45  # how far it must stand above the steps before and after it
_CERTAIN = 0.92  # a step this large needs no comparison with them
_NEVER_MOTION = 0.85  # a step this large is a cut or a flash itself, not fast motion
_RETURNED = 0.6  # the old picture is back if the step to it is below this share of the first


class _Thumbnail(NamedTuple):
    image: FloatArray  # (27, 48, 3)
    noise: float  # variance of the noise left in it

    @property
    def contrast(self) -> float:
        """Variance of the picture itself, all channels together."""
        return max(float((self.image - self.image.mean((0, 1))).var()) - self.noise, 0.0)


class CutDetector:
    """Decide for each frame of a stream whether a new shot starts with it.

    A cut is a frame of which little is found in the frame before it, while the steps before and
    after are smaller: fast motion, shaking and noise raise those as well. A change of brightness
    is taken out first, so that fades and flicker are not cuts; a picture that is back after one or
    two frames was interrupted by a flash or a damaged frame. To see that, the answer for a frame
    comes `LOOK_AHEAD` frames late. Blank frames belong to the shot before them; the first picture
    after them is compared with the last before.
    """

    LOOK_AHEAD = 2

    def __init__(self) -> None:
        self._thumbnails: deque[_Thumbnail | None] = deque(maxlen=2 * self.LOOK_AHEAD + 2)
        self._picture: _Thumbnail | None = None  # the last that was not blank
        self._steps: deque[float] = deque(maxlen=2 * self.LOOK_AHEAD + 2)
        self._seen = 0
        self._answered = 0

    def push(self, frame: npt.NDArray[Any]) -> bool | None:
        """Take the next frame and answer for the one that came `LOOK_AHEAD` frames before it.

        Args:
            frame: Array of shape (H, W, 3) or (H, W), float in [0, 1] or integers of full range.

        Returns:
            True if that earlier frame is the first of a shot (as the first of all is), False if
            it goes on with the shot, None while there is no such frame yet.

        Raises:
            ValueError: If the frame has another shape.
        """
        thumbnail = _thumbnail(frame)
        blank = thumbnail.contrast < _BLANK
        last = self._picture
        self._steps.append(0.0 if blank or last is None else _difference(last, thumbnail))
        self._thumbnails.append(None if blank else thumbnail)
        self._picture = last if blank else thumbnail
        self._seen += 1
        if self._seen <= self.LOOK_AHEAD:
            return None
        return self._answer()

    def finish(self) -> list[bool]:
        """Answer for the last frames, for which no more look-ahead will come, in order."""
        return [self._answer() for _ in range(self._seen - self._answered)]

    @property
    def pending(self) -> int:
        """Number of frames seen that have not been answered for."""
        return self._seen - self._answered

    def copy(self) -> CutDetector:
        """Return a detector that goes on from here by itself."""
        other = CutDetector()
        other.__dict__.update(self.__dict__)
        other._thumbnails, other._steps = self._thumbnails.copy(), self._steps.copy()
        return other

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that is remembered, as arrays; the inverse of `from_state`."""
        kept = [*self._thumbnails, self._picture]
        shown = [thumbnail for thumbnail in kept if thumbnail is not None]
        images = [thumbnail.image for thumbnail in shown]
        return {
            "images": np.array(images, np.float32).reshape(-1, _HEIGHT, _WIDTH, 3),
            "noise": np.array([thumbnail.noise for thumbnail in shown], np.float64),
            "blank": np.array([thumbnail is None for thumbnail in kept]),
            "steps": np.array(self._steps, np.float64),
            "counts": np.array([self._seen, self._answered]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> CutDetector:
        """Return the detector whose `state` this is."""
        detector = cls()
        pairs = zip(state["images"], state["noise"], strict=True)
        shown = (_Thumbnail(image, float(noise)) for image, noise in pairs)
        kept = [None if blank else next(shown) for blank in state["blank"]]
        detector._picture = kept.pop()
        detector._thumbnails.extend(kept)
        detector._steps.extend(float(step) for step in state["steps"])
        detector._seen, detector._answered = (int(count) for count in state["counts"])
        return detector

    def _answer(self) -> bool:
        number = self._answered
        self._answered += 1
        if number == 0:
            return True
        here = len(self._steps) - (self._seen - number)
        step = self._steps[here]
        around = [self._steps[i] for i in (here - 1, here + 1) if self._is_step(i, number - here)]
        motion = max((s for s in around if s < _NEVER_MOTION), default=0.0)
        if step < max(_LEAST, min(motion + _ABOVE_MOTION, _CERTAIN)):
            return False
        return not self._interrupted(here, step)

    def _is_step(self, index: int, first_number: int) -> bool:
        # The very first frame of all has no step before it.
        return 0 <= index < len(self._steps) and first_number + index > 0

    def _interrupted(self, here: int, step: float) -> bool:
        """Tell whether the pictures before and after this step show the same thing after all."""
        pairs = [(here - 1, here + 1 + k) for k in range(self.LOOK_AHEAD)]
        pairs += [(here - 2 - k, here) for k in range(self.LOOK_AHEAD)]
        for a, b in pairs:
            if a < 0 or b >= len(self._thumbnails):
                continue
            before, after = self._thumbnails[a], self._thumbnails[b]
            if before and after and _difference(before, after) < _RETURNED * step:
                return True
        return False


def find_cuts(
    frames: Iterable[Item], picture: Callable[[Item], npt.NDArray[Any]] = np.asarray
) -> Iterator[tuple[Item, bool]]:
    """Yield each frame with whether a new shot starts with it, at most two frames late.

    Args:
        frames: Frames in order, of any kind.
        picture: Returns the picture of a frame, see `CutDetector.push`; by default, frames are
            arrays.

    Yields:
        (frame, starts_new_shot); the first frame starts one.
    """
    detector = CutDetector()
    waiting: deque[Item] = deque()
    for frame in frames:
        answer = detector.push(picture(frame))
        waiting.append(frame)
        if answer is not None:
            yield waiting.popleft(), answer
    for answer in detector.finish():
        yield waiting.popleft(), answer


def _thumbnail(frame: npt.NDArray[Any]) -> _Thumbnail:
    """Shrink two interleaved samplings of the frame; where they differ is noise."""
    if frame.ndim not in (2, 3) or (frame.ndim == 3 and frame.shape[2] != 3) or not frame.size:
        raise ValueError(f"frame must have shape (H, W, 3) or (H, W), not {frame.shape}")
    step = max(1, min(frame.shape[0] // 135, frame.shape[1] // 240))
    first = _shrink(frame, step)
    if step == 1:
        return _Thumbnail(first, 0.0)
    second = _shrink(frame[step // 2 :, step // 2 :], step)
    noise = float(np.square(first - second).mean()) / 4
    return _Thumbnail((first + second) * np.float32(0.5), noise)


def _shrink(frame: npt.NDArray[Any], step: int) -> FloatArray:
    size = (frame.shape[1] // step, frame.shape[0] // step)
    sampled = frame if step == 1 else cv2.resize(frame, size, interpolation=cv2.INTER_NEAREST)
    small = cv2.resize(sampled, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA)
    image = np.asarray(small, np.float32)
    if np.issubdtype(frame.dtype, np.integer):
        image = image / np.float32(np.iinfo(frame.dtype).max)
    return image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)


def _difference(before: _Thumbnail, after: _Thumbnail) -> float:
    """Return which share of a thumbnail (0 to 1) is not found in the one before it."""
    old, new = before.image, after.image
    gain = float(np.clip((old.std() + 0.02) / (new.std() + 0.02), 0.5, 2))
    new = np.asarray((new - new.mean()) * gain + old.mean(), np.float32)
    noise = before.noise + gain**2 * after.noise
    unit = _LOST * (before.contrast + gain**2 * after.contrast + _BLANK)
    padded = cv2.copyMakeBorder(
        old, _REACH_Y, _REACH_Y, _REACH_X, _REACH_X, borderType=cv2.BORDER_REPLICATE
    )
    tiles = np.square(new - old).reshape(_HEIGHT // _TILE_Y, _TILE_Y, _WIDTH // _TILE_X, _TILE_X, 3)
    strange = (tiles.mean((1, 3, 4)) - noise) / unit  # each tile against its own place
    for row, column in np.argwhere(strange > _NEAR):
        y, x = row * _TILE_Y, column * _TILE_X
        tile = new[y : y + _TILE_Y, x : x + _TILE_X]
        area = padded[y : y + _TILE_Y + 2 * _REACH_Y, x : x + _TILE_X + 2 * _REACH_X]
        error = float(cv2.matchTemplate(area, tile, cv2.TM_SQDIFF).min()) / tile.size
        strange[row, column] = (error - noise) / unit
    return float(np.clip(strange, 0, 1).mean())
