"""How far an aligned neighbour can be trusted, pixel by pixel.

Two tests: does the flow come back to where it started, and is what the warped neighbour and the
reference differ by more than their noise explains? The second compares the local mean of the
squared residual with σ_ref² + σ_nb² Σw², never with a constant, so that it means the same at
every noise level.
"""

from __future__ import annotations

import cv2
import numpy as np

from restore.align.warp import warp, weight_energy

Array = np.ndarray

RESIDUAL_WINDOW = 3
"""Side of the mean in pixels at half size: 6 pixels of the picture."""
QUANTISATION = (1.0 / 255.0) ** 2
"""Variance floor: rounding and compression leave this much even in a clean picture."""


def half_size(image: Array) -> Array:
    """Return the area mean over 2x2 pixels, shape (ceil(H/2), ceil(W/2), ...)."""
    height, width = image.shape[:2]
    return cv2.resize(image, ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA)


def residual_ratio(
    reference: Array, warped: Array, variance_reference: Array, energy: Array
) -> Array:
    """Return the squared residual over what noise alone would leave.

    Args:
        reference: Shape (H, W, 3), float32.
        warped: The aligned neighbour, same shape.
        variance_reference: Mean over the channels of σ², at half size (h, w).
        energy: Sum of the squared bilinear weights of the warp, at half size (h, w).

    Returns:
        Shape (h, w), float32: about 1 where the alignment is right, larger where it is not.
    """
    residual = cv2.subtract(reference, warped)
    squared = cv2.transform(cv2.multiply(residual, residual), np.full((1, 3), 1 / 3, np.float32))
    side = (RESIDUAL_WINDOW, RESIDUAL_WINDOW)
    measured = cv2.blur(half_size(squared), side, borderType=cv2.BORDER_REPLICATE)
    return measured / (variance_reference * (1 + energy) + QUANTISATION)


def confidence(ratio: Array, forward: Array, backward: Array | None) -> Array:
    """Turn the residual ratio and the round trip of the flow into a trust in [0, 1].

    Args:
        ratio: Output of `residual_ratio`, shape (h, w).
        forward: Flow reference -> neighbour at half size, shape (h, w, 2).
        backward: Flow neighbour -> reference, same shape; None leaves the round trip out.

    Returns:
        Shape (h, w), float32: 1 = trust; 0 where the flow leaves the picture.

    References:
        Sundaram et al., Dense point trajectories by GPU-accelerated large displacement optical
        flow, ECCV 2010, section 4 (forward-backward test with a tolerance that grows with motion).
    """
    trust = agreement(ratio)
    if backward is not None:
        miss = _squared_length(cv2.add(forward, warp(backward, forward)))
        travel = _squared_length(forward)
        trust /= 1 + miss / (1.0 + 0.02 * travel)
    height, width = ratio.shape
    x = forward[..., 0] + np.arange(width, dtype=np.float32)
    y = forward[..., 1] + np.arange(height, dtype=np.float32)[:, None]
    trust *= (x > -1) & (y > -1) & (x < width) & (y < height)
    return trust


def agreement(ratio: Array) -> Array:
    """Turn the residual ratio (h, w) alone into a trust in [0, 1]."""
    return np.exp(np.minimum(1.25 - ratio, 0))


def _squared_length(flow: Array) -> Array:
    # NumPy takes twice as long to sum over so short an axis.
    return cv2.transform(cv2.multiply(flow, flow), np.ones((1, 2), np.float32))


def warp_energy(flow: Array) -> Array:
    """Return Σw² of the full-size warp from the flow at half size (h, w, 2)."""
    return weight_energy(flow * np.float32(2))
