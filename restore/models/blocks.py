"""Building blocks shared by the networks: plain convolutions, pixel (un)shuffle, padding."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions around a ReLU, added to the input.

    The second convolution starts small, so that a fresh block is nearly the identity and a deep
    trunk without normalisation learns from the first step.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        with torch.no_grad():
            self.second.weight.mul_(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, H, W) to the same shape."""
        return x + self.second(torch.relu(self.first(x)))

    @torch.no_grad()
    def become_identity(self) -> None:
        """Add nothing to the input; training can still change that."""
        self.second.weight.zero_()
        self.second.bias.zero_()  # type: ignore[union-attr]


class Trunk(nn.Module):
    """A U-shaped 2D trunk: residual blocks at falling resolution, added back on the way up.

    Resolution halves from level to level; the side of the input must be a multiple of
    `2 ** (levels - 1)`.
    """

    def __init__(self, channels: tuple[int, ...], blocks: tuple[int, ...]) -> None:
        """Set channels and blocks of each level, finest first; the last level is the bottom.

        Args:
            channels: Width of each level.
            blocks: Residual blocks of each level, on the way down and again on the way up; at
                the bottom once.

        Raises:
            ValueError: If the two differ in length.
        """
        super().__init__()
        if len(channels) != len(blocks):
            raise ValueError(f"{len(channels)} widths but {len(blocks)} block counts")
        pairs = list(pairwise(channels))
        self.down = nn.ModuleList(stage(c, n) for c, n in zip(channels, blocks, strict=True))
        self.up = nn.ModuleList(stage(c, n) for c, n in zip(channels[:-1], blocks, strict=False))
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 2, stride=2) for a, b in pairs)
        self.grow = nn.ModuleList(
            nn.Sequential(nn.Conv2d(b, 4 * a, 1), nn.PixelShuffle(2)) for a, b in pairs
        )

    @property
    def reach(self) -> int:
        """Pixels of its input, to each side, that a pixel of the answer can depend on."""
        stages = (*enumerate(self.down), *enumerate(self.up))
        blocks = sum(2 * len(blocks) * 2**level for level, blocks in stages)  # type: ignore[arg-type]
        return blocks + 2 ** (len(self.down) - 1) - 1

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, channels[0], H, W) to the same shape."""
        skips = []
        for blocks, shrink in zip(self.down[:-1], self.shrink, strict=True):
            x = blocks(x)
            skips.append(x)
            x = shrink(x)
        x = self.down[-1](x)
        for blocks, grow, skip in zip(self.up[::-1], self.grow[::-1], skips[::-1], strict=True):
            x = blocks(grow(x) + skip)
        return x


def stage(channels: int, count: int) -> nn.Sequential:
    """Return `count` residual blocks in a row."""
    return nn.Sequential(*(ResidualBlock(channels) for _ in range(count)))


def load_shallower(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Load the weights of the same network, which may have had fewer residual blocks.

    Blocks that the weights lack become the identity: the network answers as before and has more
    to learn with.

    Raises:
        RuntimeError: If anything else differs.
    """
    missing, unexpected = model.load_state_dict(state, strict=False)
    lacking = set(missing)
    for name, block in model.named_modules():
        keys = {f"{name}.{key}" for key in block.state_dict()}
        if isinstance(block, ResidualBlock) and keys <= lacking:
            block.become_identity()
            lacking -= keys
    if lacking or unexpected:
        raise RuntimeError(f"missing {sorted(lacking)}, unexpected {unexpected}")


class AlongTime(nn.Conv3d):
    """A 3D convolution that looks along time alone, done as a 2D one over T and H*W.

    It is the same; runtimes are slow at 3D convolutions.
    """

    def __init__(self, inputs: int, outputs: int, *, reach: int = 1) -> None:
        """Set the channels, and how many slots are looked at to each side."""
        super().__init__(inputs, outputs, (2 * reach + 1, 1, 1), padding=(reach, 0, 0))
        self.reach = reach

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, C, T, H, W) to the same shape with the outputs' channels."""
        weight = self.weight[..., 0]
        flat = functional.conv2d(x.flatten(3), weight, self.bias, padding=(self.reach, 0))
        return flat.unflatten(3, x.shape[3:])


def enter(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Apply a 3x3 convolution to (B, C, H, W) with empty channels that fill up to 8.

    It is the same; runtimes are quicker at whole blocks of 8 channels.
    """
    if x.shape[1] % 8 == 0:
        return layer(x)
    empty = (0, 0, 0, 0, 0, -x.shape[1] % 8)
    weight = functional.pad(layer.weight, empty)
    return functional.conv2d(functional.pad(x, empty), weight, layer.bias, padding=1)


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:
    """Repeat the right and bottom border until both sides are multiples; `crop` undoes it.

    Repeating works for pictures smaller than the padding, where reflecting does not.
    """
    height, width = x.shape[-2:]
    # Rounded up without negative numbers, which ONNX divides towards zero.
    below, right = ((s + multiple - 1) // multiple * multiple - s for s in (height, width))
    return functional.pad(x, (0, right, 0, below), mode="replicate")


def crop(x: Tensor, height: int, width: int) -> Tensor:
    """Cut (B, C, H, W) back to a size; the inverse of `pad_to_multiple`."""
    return x[..., :height, :width]
