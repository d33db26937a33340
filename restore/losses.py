"""Training losses, each a function of output and clean picture, weighted per pixel.

Where nothing could be aligned, the perceptual and the temporal term are weighted down: there the
target is a guess. The pixel and the edge term never fall below half: the reference is always
there, and those are the places where ghosts and smears are seen.
"""

from __future__ import annotations

import torch
from kornia.filters import spatial_gradient
from torch import Tensor, nn

from restore.align.warp import warp_torch

FLOOR = 0.5
"""Least weight of the pixel and the edge term."""


def weighted_mean(x: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean of x (B, C, H, W) under weights (B, 1, H, W); None weighs all alike.

    The divisor is the pixel count, not the sum of the weights, so that batches split over
    processes add up to the whole.
    """
    return x.mean() if weight is None else (x * weight).mean()


def charbonnier(
    output: Tensor, clean: Tensor, weight: Tensor | None = None, epsilon: float = 1e-3
) -> Tensor:
    """Return the Charbonnier loss, sqrt(d² + ε²): L1 that is smooth at zero.

    Args:
        output: Shape (B, 3, H, W), range [0, 1].
        clean: Same shape.
        weight: Shape (B, 1, H, W) or None.
        epsilon: Where it turns from quadratic to linear, in the same units.

    References:
        Charbonnier et al., Two deterministic half-quadratic regularization algorithms for
        computed imaging, ICIP 1994; Lai et al., Deep Laplacian Pyramid Networks, CVPR 2017, eq. 2.
    """
    difference = output - clean
    return weighted_mean(torch.sqrt(difference * difference + epsilon * epsilon), weight)


def edge_loss(output: Tensor, clean: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the mean absolute difference of the Sobel gradients, shapes as in `charbonnier`."""
    difference = spatial_gradient(output - clean)  # (B, 3, 2, H, W)
    return weighted_mean(difference.abs().mean(2), weight)


def perceptual_loss(
    network: nn.Module, output: Tensor, clean: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Return LPIPS, computed in float32.

    Args:
        network: `restore.metrics.perceptual.load_lpips(net, spatial=True)`.
        output: Shape (B, 3, H, W), range [0, 1].
        clean: Same shape.
        weight: Shape (B, 1, H, W) or None.

    References:
        Zhang et al., The Unreasonable Effectiveness of Deep Features as a Perceptual Metric,
        CVPR 2018.
    """
    with torch.autocast(output.device.type, enabled=False):
        distance = network(output.float(), clean.float(), normalize=True)
    return weighted_mean(distance, weight)


def temporal_loss(
    output: Tensor,
    before: Tensor,
    clean: Tensor,
    clean_before: Tensor,
    flow: Tensor,
    weight: Tensor | None = None,
) -> Tensor:
    """Return how much the change from frame to frame differs from the clean clip's.

    Args:
        output: Restored frame t, shape (B, 3, H, W).
        before: Restored frame t-1.
        clean: Clean frame t.
        clean_before: Clean frame t-1.
        flow: Flow t -> t-1, shape (B, 2, H, W), pixels.
        weight: Confidence of that flow, shape (B, 1, H, W), or None.

    References:
        Lai et al., Learning Blind Video Temporal Consistency, ECCV 2018, eq. 3 (short-term loss),
        here relative to the clean clip's own change.
    """
    change = output - warp_torch(before, flow)
    wanted = clean - warp_torch(clean_before, flow)
    return weighted_mean((change - wanted).abs(), weight)


def alignment_weights(confidence: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights (pixel and edge term, perceptual and temporal term).

    Args:
        confidence: Of all neighbours, shape (B, T-1, H, W); T = 1 has none to lose: all ones.
    """
    if confidence.shape[1] == 0:
        trust = confidence.new_ones(confidence.shape[0], 1, *confidence.shape[2:])
    else:
        trust = confidence.amax(1, keepdim=True)
    return FLOOR + (1 - FLOOR) * trust, trust
