"""Backward warping: look each reference pixel up in a neighbour, where the flow points.

Convention: `flow[p]` is in pixels, channel 0 is x; the warped picture at p is the neighbour at
p + flow[p], bilinear, the border repeated. The numpy and the torch form give the same picture
(tested equal).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Array = np.ndarray


@lru_cache(maxsize=8)
def _grid(height: int, width: int) -> Array:
    """Return pixel coordinates, shape (height, width, 2), x first; shared, never written to."""
    grid = np.empty((height, width, 2), np.float32)
    grid[..., 0] = np.arange(width, dtype=np.float32)
    grid[..., 1] = np.arange(height, dtype=np.float32)[:, None]
    grid.flags.writeable = False
    return grid


def warp(image: Array, flow: Array, *, cubic: bool = False) -> Array:
    """Warp a picture along a flow with `cv2.remap`.

    Args:
        image: Shape (H, W) or (H, W, C), C at most 4, float32 or uint8.
        flow: Shape (H, W, 2), float32, pixels, x first.
        cubic: Interpolate with OpenCV's bicubic kernel: sharper, twice as slow.

    Returns:
        The neighbour as seen from the reference: same shape and dtype as `image`.

    Raises:
        ValueError: If the spatial sizes differ.
    """
    if image.shape[:2] != flow.shape[:2]:
        raise ValueError(f"image {image.shape[:2]} and flow {flow.shape[:2]} differ in size")
    where = cv2.add(_grid(*flow.shape[:2]), flow)
    mode = cv2.INTER_CUBIC if cubic else cv2.INTER_LINEAR
    return cv2.remap(image, where, None, mode, borderMode=cv2.BORDER_REPLICATE)


def warp_torch(image: Tensor, flow: Tensor) -> Tensor:
    """Warp a batch of pictures along a flow, differentiably.

    Args:
        image: Shape (B, C, H, W), floating point.
        flow: Shape (B, 2, H, W), pixels, channel 0 is x.

    Returns:
        Shape (B, C, H, W), dtype of `image`; computed in float32.

    Raises:
        ValueError: If the spatial sizes differ.
    """
    import torch
    from torch.nn import functional

    if image.shape[-2:] != flow.shape[-2:]:
        raise ValueError(f"image {tuple(image.shape)} and flow {tuple(flow.shape)} differ in size")
    height, width = flow.shape[-2:]
    x = torch.arange(width, device=flow.device, dtype=torch.float32)
    y = torch.arange(height, device=flow.device, dtype=torch.float32)[:, None]
    where = torch.stack(
        (
            (flow[:, 0].float() + x) * (2 / max(width - 1, 1)) - 1,
            (flow[:, 1].float() + y) * (2 / max(height - 1, 1)) - 1,
        ),
        dim=-1,
    )
    out = functional.grid_sample(
        image.float(), where, mode="bilinear", padding_mode="border", align_corners=True
    )
    return out.to(image.dtype)


def compose(first: Array, then: Array) -> Array:
    """Chain two flows: where `first` arrives, `then` goes on.

    Args:
        first: Flow reference -> middle, shape (H, W, 2).
        then: Flow middle -> neighbour, shape (H, W, 2).

    Returns:
        Flow reference -> neighbour, shape (H, W, 2): first[p] + then[p + first[p]].
    """
    return cv2.add(first, warp(then, first))


def resize_flow(flow: Array, height: int, width: int) -> Array:
    """Resample a flow to another picture size, its vectors scaled along."""
    scale = (width / flow.shape[1], height / flow.shape[0])
    resized = cv2.resize(flow, (width, height), interpolation=cv2.INTER_LINEAR)
    return cv2.multiply(resized, (*scale, 0.0, 0.0))


def weight_energy(flow: Array) -> Array:
    """Return the sum of the squared bilinear weights, by which a warp shrinks white noise.

    The variance of a warped pixel is this factor times that of its four sources: 1 for whole-pixel
    vectors, 1/4 half-way between four pixels.

    Args:
        flow: Shape (H, W, 2), pixels.

    Returns:
        Shape (H, W), float32, range [1/4, 1].
    """
    part = flow - np.floor(flow)
    part *= part - 1  # (1-f)² + f² = 1 + 2 f (f-1)
    part *= 2
    part += 1
    return part[..., 0] * part[..., 1]
