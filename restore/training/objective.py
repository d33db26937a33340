"""What a training step minimises: the weighted sum of the losses, in two phases."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from restore.align import Motion
from restore.align.warp import resize_flow
from restore.hyperframe import reference_index
from restore.losses import (
    alignment_weights,
    charbonnier,
    edge_loss,
    perceptual_loss,
    temporal_loss,
)
from restore.training.config import TrainConfig
from restore.training.windows import Window

MIDDLE = 0.08
"""Error plus `noise_floor` of a clip that counts once in the pixel loss."""


class Objective:
    """The loss of one restored window.

    In the pixel phase only the Charbonnier and the temporal term count; the edge loss and LPIPS
    join after it: from scratch they teach regular texture patterns.
    """

    def __init__(self, config: TrainConfig, device: torch.device) -> None:
        """Load LPIPS if its weight is not zero.

        Raises:
            RestoreError: If LPIPS is wanted and its backbone is not to be had.
        """
        self.config = config
        self.network = None
        if config.lpips > 0 and config.pixel_phase < 1:
            from restore.metrics.perceptual import load_lpips

            self.network = copy.deepcopy(load_lpips(config.lpips_net)).to(device)
            vars(self.network)["spatial"] = True  # a map, to be weighted per pixel

    def __call__(
        self,
        output: Tensor,
        clean: Tensor,
        window: Window,
        before: tuple[Tensor, Tensor] | None,
        step: int,
    ) -> dict[str, Tensor]:
        """Return the terms and their weighted sum under "loss".

        Args:
            output: Restored pictures, shape of `window.clean`.
            clean: Clean pictures, same shape.
            window: What the model saw.
            before: Restored and clean pictures of the frame before, if there is one.
            step: Number of the step, which decides the phase.
        """
        config = self.config
        slots = torch.from_numpy(window.slots)
        neighbours = slots[:, slots[0, :, 3, 0, 0] != 0]
        weights = alignment_weights(neighbours[:, :, 4].to(output.device))
        strong, soft = (_to_size(weight, output) for weight in weights)
        share = self._share(window)
        terms = {"pixel": charbonnier(output, clean, strong * share.to(output.device))}
        loss = config.pixel * terms["pixel"]
        if config.temporal > 0 and before is not None and window.links:
            flow = torch.from_numpy(
                np.stack([_full_flow(link.reference.to_previous, output) for link in window.links])
            ).to(output.device)
            trust = _to_size(torch.from_numpy(window.trust).to(output.device), output)
            terms["temporal"] = temporal_loss(output, before[0], clean, before[1], flow, trust)
            loss = loss + config.temporal * terms["temporal"]
        if step >= config.pixel_phase * config.steps:
            if config.edge > 0:
                terms["edge"] = edge_loss(output, clean, strong)
                loss = loss + config.edge * terms["edge"]
            if self.network is not None:
                terms["lpips"] = perceptual_loss(self.network, output, clean, soft)
                loss = loss + config.lpips * terms["lpips"]
        return terms | {"loss": loss}

    def _share(self, window: Window) -> Tensor:
        """Return the weight (B, 1, 1, 1) of each clip: what is lost in dB counts, not in levels.

        The error of a good answer grows with that of the input; weighted alike, strong noise would
        be all that is learned. What the network is told of the noise is no measure: where an
        encoder hid it, a clip that can hardly be mended would count most.
        """
        error = enlarged_reference(window) - torch.from_numpy(window.clean)
        size = error.square().mean((1, 2, 3), keepdim=True).sqrt()
        return MIDDLE / (size + self.config.noise_floor)


def enlarged_reference(window: Window) -> Tensor:
    """Return what would stand there without a model: the reference, enlarged where need be."""
    image = torch.from_numpy(window.slots[:, reference_index(window.slots[0]), :3])
    if window.scale == 1:
        return image
    size = window.clean.shape[-2:]
    return functional.interpolate(image, size, mode="bicubic", align_corners=False)


def _to_size(weight: Tensor, like: Tensor) -> Tensor:
    """Return a map (B, 1, h, w) at the size of the output."""
    if weight.shape[-2:] == like.shape[-2:]:
        return weight
    return functional.interpolate(weight, like.shape[-2:], mode="bilinear", align_corners=False)


def _full_flow(motion: Motion | None, like: Tensor) -> np.ndarray:
    assert motion is not None, "windows with feedback are linked"
    flow = resize_flow(motion.flow, *like.shape[-2:])
    return np.ascontiguousarray(np.moveaxis(flow, 2, 0))
