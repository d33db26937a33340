"""Optical flow between two frames, behind one small interface.

A flow estimator is called with two half-size 8-bit luma pictures, as `search_image` makes them,
and returns where each pixel of the first is found in the second. Half size halves the noise and
quarters the cost; the refinement works at the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from restore.errors import UsageError

Array = np.ndarray

MIN_SIDE = 16
"""Below this side of the search image no flow is estimated: DIS needs a few patches of 8."""
ITERATIONS = 3
"""Of the variational refinement of DIS: two fewer than its preset, a sixth of the time, 0.01 dB."""


class FlowEstimator(Protocol):
    """Anything that finds the pixels of one picture in another."""

    def __call__(self, reference: Array, neighbour: Array) -> Array:
        """Return the flow (H, W, 2) in pixels from two uint8 pictures of shape (H, W)."""
        ...


def search_image(image: Array, blur: float = 0.5) -> Array:
    """Return the half-size, slightly smoothed luma in which motion is searched.

    Args:
        image: Shape (H, W, 3), float32 RGB, nominal [0, 1].
        blur: Standard deviation of the smoothing in pixels of the search image.

    Returns:
        Shape (ceil(H/2), ceil(W/2)), uint8.
    """
    height, width = image.shape[:2]
    luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    half = cv2.resize(luma, ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA)
    half = cv2.GaussianBlur(half, (5, 5), blur)
    return cv2.convertScaleAbs(cv2.max(half, 0.0), alpha=255.0)


class DISFlow:
    """Dense inverse search (OpenCV), no weights.

    References:
        Kroeger et al., Fast Optical Flow using Dense Inverse Search, ECCV 2016.
    """

    def __init__(self, finest_scale: int = 0, smoothness: float = 20.0) -> None:
        """Set up.

        Args:
            finest_scale: Finest pyramid level: 0 is the search image's own size, 1 half of it.
            smoothness: Weight of a smooth flow against one that follows the pictures, and their
                noise, closely (alpha of the variational refinement).
        """
        self.finest_scale, self.smoothness = finest_scale, smoothness
        self._dis = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
        self._dis.setFinestScale(finest_scale)
        self._dis.setVariationalRefinementAlpha(smoothness)
        self._dis.setVariationalRefinementIterations(ITERATIONS)

    def __reduce__(self) -> tuple[type[DISFlow], tuple[int, float]]:
        return DISFlow, (self.finest_scale, self.smoothness)

    def __call__(self, reference: Array, neighbour: Array) -> Array:
        """Return the flow (H, W, 2) float32 from two uint8 pictures of shape (H, W)."""
        if min(reference.shape) < MIN_SIDE:
            return np.zeros((*reference.shape, 2), np.float32)
        return self._dis.calc(reference, neighbour, None)


class RAFTFlow:
    """RAFT (torchvision), with weights that the user has on disk.

    References:
        Teed and Deng, RAFT: Recurrent All-Pairs Field Transforms for Optical Flow, ECCV 2020.
    """

    def __init__(self, weights: str | Path, device: str = "cpu") -> None:
        """Load a state dict of `torchvision.models.optical_flow.raft_small` or `raft_large`.

        Raises:
            UsageError: If the file is missing or holds neither of the two.
        """
        import torch
        from torchvision.models import optical_flow

        path = Path(weights)
        if not path.is_file():
            raise UsageError(f"{path}: no RAFT weights there; give a torchvision .pth file")
        try:
            state = torch.load(path, map_location=device, weights_only=True)
        except Exception as error:  # damaged files raise anything
            raise UsageError(f"{path}: not a .pth file of weights; download it again") from error
        large = any(key.startswith("feature_encoder.layer1.0.convnormrelu1") for key in state)
        builders = (optical_flow.raft_large, optical_flow.raft_small)
        for build in builders if large else builders[::-1]:
            model = build(weights=None)
            try:
                model.load_state_dict(state)
            except RuntimeError:
                continue
            self._model = model.to(device).eval()
            self._device = device
            return
        raise UsageError(f"{path}: these are not weights of torchvision's RAFT")

    def __call__(self, reference: Array, neighbour: Array) -> Array:
        """Return the flow (H, W, 2) float32 from two uint8 pictures of shape (H, W)."""
        import torch
        from torch.nn import functional

        height, width = reference.shape
        pair = torch.from_numpy(np.stack([reference, neighbour])).to(self._device)
        pair = pair[:, None].float() / 127.5 - 1
        # RAFT's correlation pyramid needs sides that are multiples of 8, at least 128.
        pad = (0, max(128, -(-width // 8) * 8) - width, 0, max(128, -(-height // 8) * 8) - height)
        pair = functional.pad(pair, pad, mode="replicate").expand(-1, 3, -1, -1)
        with torch.inference_mode():
            flow = self._model(pair[:1], pair[1:])[-1]
        return flow[0, :, :height, :width].permute(1, 2, 0).float().cpu().numpy()


FLOWS: dict[str, Callable[[], FlowEstimator]] = {
    "dis": DISFlow,
    "dis-coarse": lambda: DISFlow(finest_scale=1),
}
"""Flows that need no weights, by name; RAFT is built with the path of its weights."""


def global_shift(reference: Array, neighbour: Array, noise: float) -> tuple[float, float] | None:
    """Return the one vector that explains the motion between two pictures, if one does.

    A static shot and a pure camera shift need no dense flow. The shift (zero first, then by phase
    correlation) is accepted when what is left after it is noise in nearly every block and nothing
    drifts: strong noise hides slow motion from the first test.

    Args:
        reference: Search image, shape (H, W), uint8.
        neighbour: Search image, same shape.
        noise: Standard deviation of the noise of one search image, in its own units (0-255).

    Returns:
        (x, y) in pixels of the search image, or None.
    """
    if min(reference.shape) < 4 * MIN_SIDE:
        return None
    if _is_noise(reference, neighbour, noise) and not _drift(reference, neighbour, noise)[2]:
        return 0.0, 0.0
    small = reference[::2, ::2].astype(np.float32), neighbour[::2, ::2].astype(np.float32)
    (x, y), response = cv2.phaseCorrelate(*small, _window(*small[0].shape))
    farthest = min(reference.shape) / 4
    shift = 2 * x, 2 * y
    if response < 0.3 or max(map(abs, shift)) > farthest:
        return None
    left_x, left_y, _ = _drift(*_shifted(reference, neighbour, shift), noise)
    shift = shift[0] - left_x, shift[1] - left_y
    if max(map(abs, shift)) > farthest:
        return None
    pair = _shifted(reference, neighbour, shift)
    return shift if _is_noise(*pair, noise) and not _drift(*pair, noise)[2] else None


def _shifted(reference: Array, neighbour: Array, shift: tuple[float, float]) -> tuple[Array, Array]:
    """Return what both pictures show once the neighbour is moved onto the reference."""
    matrix = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], np.float32)
    mode = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    size = reference.shape[::-1]
    moved = cv2.warpAffine(neighbour, matrix, size, flags=mode, borderMode=cv2.BORDER_REPLICATE)
    margin = int(max(map(abs, shift))) + 1
    inner = (slice(margin, -margin), slice(margin, -margin))
    return reference[inner], moved[inner]


_HANNING: dict[tuple[int, int], Array] = {}


def _window(height: int, width: int) -> Array:
    if (height, width) not in _HANNING:
        _HANNING.clear()
        _HANNING[height, width] = cv2.createHanningWindow((width, height), cv2.CV_32F)
    return _HANNING[height, width]


def _is_noise(reference: Array, neighbour: Array, noise: float, block: int = 16) -> bool:
    """Say whether two pictures differ by noise alone, everywhere.

    The typical block must be at the known noise, and 99.5 % of the blocks near the typical one; a
    doubtful case is no shortcut.
    """
    difference = cv2.absdiff(reference, neighbour).astype(np.float32)
    height, width = difference.shape
    size = (max(width // block, 1), max(height // block, 1))
    level = cv2.resize(difference, size, interpolation=cv2.INTER_AREA)
    typical = float(np.median(level))
    # E|a - b| = 2 σ / sqrt(π) for two pictures with Gaussian noise of σ; half a step of rounding.
    expected = 2 * noise / np.pi**0.5
    return typical <= 1.15 * expected + 0.5 and bool(np.mean(level > 1.4 * typical + 0.5) < 0.005)


TILES = 4
"""Tiles to each side in which motion is looked for that the noise hides."""
DRIFT = 0.05
"""Motion in pixels of the search image that may be left."""
ROUNDING = 0.3
"""What 8 bits leave in a search image beside its noise."""


def _drift(reference: Array, neighbour: Array, noise: float) -> tuple[float, float, bool]:
    """Look for a slow motion between two pictures, on the whole and in tiles.

    Over many pixels the difference along the gradient shows motion far below the noise of one.

    Returns:
        x and y of the whole in pixels, and whether anything moves beyond doubt.

    References:
        Lucas and Kanade, An iterative image registration technique, IJCAI 1981, section 4.
    """
    height, width = reference.shape
    size = (width // 2, height // 2)
    pair = [cv2.resize(x, size, interpolation=cv2.INTER_AREA) for x in (reference, neighbour)]
    a, b = (cv2.GaussianBlur(x.astype(np.float32), (0, 0), 1.0) for x in pair)
    x, y = (cv2.Sobel(a + b, cv2.CV_32F, i, 1 - i, scale=1 / 16) for i in (1, 0))
    change = b - a
    products = (x * x, x * y, y * y, x * change, y * change)
    variance = (noise**2 + ROUNDING**2) / 2  # of the difference, at this size
    drifts = False
    for tiles in (TILES, 1):
        pixels = size[0] * size[1] / tiles**2
        xx, xy, yy, xt, yt = (
            pixels * cv2.resize(p, (tiles, tiles), interpolation=cv2.INTER_AREA) for p in products
        )
        # Without a gradient nothing is seen to move: the added term keeps it at zero.
        xx, yy = xx + variance / (DRIFT / 2) ** 2, yy + variance / (DRIFT / 2) ** 2
        right, down = (yy * xt - xy * yt, xx * yt - xy * xt) / (xx * yy - xy * xy)
        doubt = 6 * variance * (1 / xx + 1 / yy)
        drifts |= bool(np.any(right**2 + down**2 > (DRIFT / 2) ** 2 + doubt))
    return 2 * float(right[0, 0]), 2 * float(down[0, 0]), drifts
