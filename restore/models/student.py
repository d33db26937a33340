"""The single-frame student: plain 2D convolutions on one noisy picture and its noise."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from restore.hyperframe import SLOT, TIME_UNIT
from restore.models.blocks import crop, pad_to_multiple
from restore.models.preconditioned import VARIANCE_FLOOR, Preconditioned

INPUTS = 6
"""Channels of the input: RGB, and σ of the noise in R, G, B."""


class Student(Preconditioned):
    """Restore one picture: the trunk of the denoiser alone, told what the noise of the colours is.

    Only operations that every runtime has: convolution, pixel (un)shuffle, mean, bilinear
    enlargement, softmax.
    """

    def __init__(
        self, *, channels: tuple[int, ...] = (24, 48, 64), blocks: tuple[int, ...] = (1, 1, 1)
    ) -> None:
        """Set the widths.

        Args:
            channels: Channels of the trunk at 1/2, 1/4, … of the size.
            blocks: Residual blocks of each level of the trunk.
        """
        super().__init__()
        self.multiple = max(2 ** len(channels), 4)
        self._make_trunk(3, 1, channels, blocks)

    def forward(self, noisy: Tensor) -> Tensor:
        """Restore.

        Args:
            noisy: Shape (B, 6, H, W): RGB, nominal [0, 1], and σ of R, G, B in the same units.

        Returns:
            The clean picture, shape (B, 3, H, W), not clipped.
        """
        height, width = noisy.shape[-2:]
        x = pad_to_multiple(noisy, self.multiple)
        sigma = functional.avg_pool2d(x[:, 3:], 1, stride=2)  # `::2`, which runtimes are slow at
        variances = sigma * sigma + VARIANCE_FLOOR
        variance = variances.mean(1, keepdim=True)
        clean = self._answer(torch.log(variances / variance), (x[:, :3], variance))
        return crop(clean, height, width)


class OnHyperframes(nn.Module):
    """Let a student take hyperframes, of which it sees the reference."""

    def __init__(self, student: Student) -> None:
        """Wrap a student."""
        super().__init__()
        self.student = student

    def forward(self, hyperframe: Tensor) -> Tensor:
        """Map (B, T*8, H, W) to the clean reference (B, 3, H, W)."""
        return self.student(single_frame(hyperframe))


def single_frame(hyperframe: Tensor) -> Tensor:
    """Take the reference and its σ out of a hyperframe.

    Args:
        hyperframe: Shape (B, T*8, H, W).

    Returns:
        Shape (B, 6, H, W): what `Student` sees.
    """
    slots = hyperframe.unflatten(1, (-1, SLOT))
    is_reference = (slots[:, :, 3:4].abs() < 0.5 / TIME_UNIT).to(hyperframe.dtype)
    reference = (slots * is_reference).sum(1)
    return torch.cat((reference[:, :3], reference[:, 5:]), 1)


def operations(model: nn.Module, inputs: Tensor) -> float:
    """Count the multiply-adds of a network's convolutions for each pixel of its input.

    Args:
        model: The network.
        inputs: Something to run it on, shape (B, C, H, W).
    """
    from torch.utils.flop_counter import FlopCounterMode

    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(inputs)
    return counter.get_total_flops() / 2 / (inputs.shape[0] * inputs.shape[-2] * inputs.shape[-1])
