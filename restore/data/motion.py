"""Photographs in synthetic camera motion: rotation, zoom, sub-pixel pan, and things in front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float32]
MatrixArray = npt.NDArray[np.float64]

_MARGIN = 4


@dataclass(frozen=True)
class CameraPath:
    """Describe how a camera moves over a picture, frame by frame."""

    offset: MatrixArray
    """(N, 2) position (x, y) in output pixels, zero on average."""
    angle: MatrixArray
    """(N,) radians."""
    zoom: MatrixArray
    """(N,) factor around 1; above 1 shows more of the picture."""

    def matrices(
        self, centre: tuple[float, float], patch: tuple[int, int], scale: float
    ) -> MatrixArray:
        """Return (N, 2, 3) maps from output pixels to pixels of the picture.

        Args:
            centre: Where the middle of the patch looks to, (x, y) in the picture.
            patch: (h, w) of the output.
            scale: Pixels of the picture per output pixel at zoom 1.
        """
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        turn = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
        linear = scale * self.zoom[:, None, None] * turn
        middle = np.array([(patch[1] - 1) / 2, (patch[0] - 1) / 2])
        shift = np.asarray(centre) + scale * self.offset - linear @ middle
        return np.concatenate([linear, shift[..., None]], -1)


def draw_path(rng: np.random.Generator, frames: int, *, fastest: float = 8.0) -> CameraPath:
    """Draw a path: one in fifteen stands still, one in five only pans.

    Args:
        rng: Source of randomness.
        frames: Number of frames.
        fastest: Greatest pan in pixels a frame; speeds are log-uniform from 1/20 pixel up.
    """
    t = np.arange(frames) - (frames - 1) / 2
    kind = rng.random()
    if kind < 1 / 15:
        return CameraPath(
            np.zeros((frames, 2)), np.full(frames, rng.normal(0, 0.1)), np.ones(frames)
        )
    heading = rng.uniform(0, 2 * np.pi)
    speed = np.exp(rng.uniform(np.log(0.05), np.log(fastest)))
    velocity = speed * np.array([np.cos(heading), np.sin(heading)])
    bend = rng.normal(0, 0.15 * speed, 2)
    offset = t[:, None] * velocity + 0.5 * (t**2)[:, None] * bend
    offset -= offset.mean(0)
    if rng.random() < 0.5:
        offset += rng.normal(0, rng.uniform(0.05, 0.8), offset.shape)
    if kind < 1 / 15 + 1 / 5:
        return CameraPath(offset, np.zeros(frames), np.ones(frames))
    angle = rng.normal(0, 0.15) + t * rng.normal(0, 0.012) + rng.normal(0, 0.001, frames)
    zoom = np.exp(t * rng.normal(0, 0.01) + rng.normal(0, 0.0005, frames))
    return CameraPath(offset, angle, zoom)


def render(picture: ByteArray, matrices: MatrixArray, patch: tuple[int, int]) -> ByteArray:
    """Render a moving view of a picture.

    The part that is looked at is first reduced by area averaging, so that sampling it below its
    own resolution does not alias.

    Args:
        picture: (H, W, 3) uint8, or (H, W) for a mask.
        matrices: (N, 2, 3) maps from output pixels to picture pixels.
        patch: (h, w) of the output.

    Returns:
        (N, h, w, 3) or (N, h, w) uint8.
    """
    h, w = patch
    corners = np.array([[0, 0, 1], [w - 1, 0, 1], [0, h - 1, 1], [w - 1, h - 1, 1]], np.float64)
    seen = (matrices @ corners.T).transpose(0, 2, 1).reshape(-1, 2)
    density = float(np.sqrt(np.abs(np.linalg.det(matrices[:, :, :2]))).mean())
    border = _MARGIN * max(density, 1.0)
    size = np.array([picture.shape[1], picture.shape[0]])
    low = np.clip(np.floor(seen.min(0) - border), 0, size - 1).astype(int)
    high = np.clip(np.ceil(seen.max(0) + border) + 1, low + 1, size).astype(int)
    part = picture[low[1] : high[1], low[0] : high[0]]
    reduced = part
    if density > 1.05:
        to = np.maximum(np.round((high - low) / density), 1).astype(int)
        area = cv2.resize(part, (int(to[0]), int(to[1])), interpolation=cv2.INTER_AREA)
        reduced = np.asarray(area, np.uint8)
    ratio = np.array([reduced.shape[1] / part.shape[1], reduced.shape[0] / part.shape[0]])
    local = matrices.copy()
    local[:, :, 2] -= low
    local *= ratio[None, :, None]
    local[:, :, 2] += 0.5 * ratio - 0.5  # pixel centres lie at half-integers of either grid
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    border_mode = cv2.BORDER_REFLECT_101 if picture.ndim == 3 else cv2.BORDER_REPLICATE
    return np.stack(
        [cv2.warpAffine(reduced, m, (w, h), flags=flags, borderMode=border_mode) for m in local]
    )


def photograph_clip(
    pictures: list[ByteArray],
    frames: int,
    patch: tuple[int, int],
    rng: np.random.Generator,
    *,
    occluder_chance: float = 0.35,
    fastest: float = 8.0,
    sharp_chance: float = 0.4,
) -> tuple[ByteArray, dict[str, Any]]:
    """Make a clip out of one photograph, sometimes with a second one moving in front of it.

    Resampling leaves no picture as sharp as a camera's: some clips only pan, by whole pixels.

    Args:
        pictures: One or two (H, W, 3) uint8 photographs; the second may become the occluder.
        frames: Number of frames.
        patch: (h, w) of the clip.
        rng: Source of randomness.
        occluder_chance: How often the second photograph is used.
        fastest: Greatest pan in pixels a frame.
        sharp_chance: How often the photograph's own pixels are taken.

    Returns:
        The clip (N, h, w, 3) uint8, and its numbers for the record.
    """
    path = draw_path(rng, frames, fastest=fastest)
    sharp = bool(rng.random() < sharp_chance)
    if sharp:
        path = CameraPath(np.rint(path.offset), np.zeros(frames), np.ones(frames))
    matrices = _place(pictures[0].shape[:2], path, patch, rng, 1.0 if sharp else None)
    if sharp:
        matrices = np.rint(matrices)
    clip = render(pictures[0], matrices, patch)
    occluded = len(pictures) > 1 and bool(rng.random() < occluder_chance)
    if occluded:
        clip = _put_in_front(clip, pictures[1], path, rng, fastest)
    step = np.diff(path.offset, axis=0)
    speed = float(np.hypot(step[:, 0], step[:, 1]).mean()) if frames > 1 else 0.0
    return clip, {"speed": round(speed, 3), "occluder": occluded, "sharp": sharp}


def _place(
    size: tuple[int, int],
    path: CameraPath,
    patch: tuple[int, int],
    rng: np.random.Generator,
    scale: float | None = None,
) -> MatrixArray:
    """Draw place, and scale if it is None, so that the view stays in the picture where it can."""
    unit = path.matrices((0.0, 0.0), patch, 1.0)
    h, w = patch
    corners = np.array([[0, 0, 1], [w - 1, 0, 1], [0, h - 1, 1], [w - 1, h - 1, 1]], np.float64)
    seen = (unit @ corners.T).transpose(0, 2, 1).reshape(-1, 2)
    low, high = seen.min(0), seen.max(0)
    room = np.array([size[1] - 1, size[0] - 1])
    largest = float((room / np.maximum(high - low, 1)).min())
    if scale is None:
        scale = min(float(np.exp(rng.uniform(np.log(0.9), np.log(2.2)))), max(largest, 0.8))
    free = np.maximum(room - scale * (high - low), 0)
    centre = -scale * low + rng.uniform(0, 1, 2) * free
    return path.matrices((float(centre[0]), float(centre[1])), patch, scale)


def _put_in_front(
    clip: ByteArray,
    picture: ByteArray,
    background: CameraPath,
    rng: np.random.Generator,
    fastest: float,
) -> ByteArray:
    frames, h, w = clip.shape[:3]
    own = draw_path(rng, frames, fastest=fastest)
    # Parallax: what is nearer moves with the camera, and faster.
    nearer = rng.uniform(0.5, 2.0)
    path = CameraPath(own.offset + nearer * background.offset, own.angle, own.zoom)
    front = render(picture, _place(picture.shape[:2], path, (h, w), rng), (h, w))
    shape = soft_shape(rng, max(h, w))
    centre = shape.shape[0] / 2 + rng.uniform(-0.4, 0.4, 2) * np.array([w, h])
    masks = render(shape, path.matrices((float(centre[0]), float(centre[1])), (h, w), 1.0), (h, w))
    alpha = masks.astype(np.float32)[..., None] * np.float32(1 / 255)
    mixed = clip.astype(np.float32)
    mixed += alpha * (front.astype(np.float32) - mixed)
    return np.rint(mixed).astype(np.uint8)


def soft_shape(rng: np.random.Generator, size: int) -> ByteArray:
    """Draw a mask (size, size) uint8: blobs with an edge between sharp and very soft."""
    coarse = rng.standard_normal((6, 6)).astype(np.float32)
    large = cv2.resize(coarse, (size, size), interpolation=cv2.INTER_CUBIC)
    field = np.asarray(large, np.float32)
    axis = np.linspace(-1, 1, size, dtype=np.float32)
    field -= np.float32(2.0) * (axis[None] ** 2 + axis[:, None] ** 2)
    field += np.float32(rng.uniform(0.3, 1.2))
    softness = np.exp(rng.uniform(np.log(0.02), np.log(1.5)))
    return np.asarray(np.clip(field / softness + 0.5, 0, 1) * 255, np.uint8)
