"""The multi-frame denoiser: 3D stem, learned temporal fusion, 2D residual trunk, gate."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from restore.hyperframe import RESIDUAL_NOISE, SLOT, TIME_UNIT
from restore.models.blocks import crop, pad_to_multiple
from restore.models.preconditioned import DETAIL, VARIANCE_FLOOR, Preconditioned

FED_BACK = 1.5 * RESIDUAL_NOISE**2
"""Share of the reference's variance below which a slot is a previous output: a warp alone leaves at
least a quarter."""


class Denoiser(Preconditioned):
    """Restore the reference of a hyperframe.

    The stem looks at all slots with factorised 3D convolutions (1x4x4 in space, 3x1x1 in time) at
    half size. It yields, for each slot and 2x2 pixels, a weight of the temporal fusion, which
    starts from confidence / σ², and features that are folded over time under the same weights.
    The 2D trunk, told of these features, mixes and corrects the fused picture and the reference.

    Works for any number of slots.
    """

    def __init__(
        self,
        *,
        stem: int = 16,
        channels: tuple[int, ...] = (32, 64, 128),
        blocks: tuple[int, ...] = (1, 1, 2),
        memory: bool = False,
    ) -> None:
        """Set the widths.

        Args:
            stem: Channels of the 3D stem.
            channels: Channels of the trunk at 1/2, 1/4, 1/8 of the size.
            blocks: Residual blocks of each level of the trunk.
            memory: Show the trunk what the previous output, where it was fed back and is trusted,
                has beyond the fused picture: detail that many earlier frames agree on.
        """
        super().__init__()
        self.multiple = 2 ** len(channels)
        self.memory = memory
        self._make_stem(stem)
        self._make_trunk(stem + (13 if memory else 0), 2, channels, blocks)

    def _make_stem(self, stem: int) -> None:
        """Make the layers that look at the slots."""
        self.look = nn.Conv2d(SLOT, stem, 4, stride=2, padding=1)
        self.compare = nn.Conv3d(stem, stem, (3, 1, 1), padding=(1, 0, 0))
        self.vote = nn.Conv3d(stem, 1, 1)
        nn.init.zeros_(self.vote.weight)
        nn.init.zeros_(self.vote.bias)  # type: ignore[arg-type]

    def _stem(self, slots: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Look at the slots.

        Args:
            slots: Shape (B, T, 8, H, W).
            prior: Logarithm of confidence / σ², shape (B, T, 1, H/2, W/2).

        Returns:
            Weights of the slots, shape of `prior`, adding up to 1 over time; and features, shape
            (B, C, H/2, W/2).
        """
        features = torch.relu(self.look(slots.flatten(0, 1)))
        features = features.reshape(*slots.shape[:2], *features.shape[1:])
        features = torch.relu(self.compare(features.transpose(1, 2)))  # (B, C, T, h, w)
        votes = self.vote(features).transpose(1, 2)
        weights = torch.softmax(prior + votes, dim=1)
        return weights, (features * weights.transpose(1, 2)).sum(2)

    def forward(self, hyperframe: Tensor) -> Tensor:
        """Restore.

        Args:
            hyperframe: Shape (B, T*8, H, W), laid out by `restore.hyperframe.pack`.

        Returns:
            The clean picture, shape (B, 3, H, W), not clipped.

        Raises:
            ValueError: If the channels are not a multiple of 8.
        """
        if hyperframe.ndim != 4 or hyperframe.shape[1] % SLOT:
            raise ValueError(f"a hyperframe is (B, T*{SLOT}, H, W), got {tuple(hyperframe.shape)}")
        height, width = hyperframe.shape[-2:]
        x = pad_to_multiple(hyperframe, self.multiple)
        slots = x.reshape(len(x), -1, SLOT, *x.shape[-2:])  # (B, T, 8, H, W)
        image = slots[:, :, :3]
        # Time, confidence and σ vary slowly: every second pixel is enough for the fusion.
        # (Spelt as pooling: runtimes are slow at `::2`, and exporters cannot prove its size.)
        every_second = functional.avg_pool2d(slots[:, :, 3:].flatten(1, 2), 1, stride=2)
        time, trust, sigma = every_second.unflatten(1, (-1, 5)).split((1, 1, 3), dim=2)
        is_reference = (time[..., 0, 0, None, None].abs() < 0.5 / TIME_UNIT).to(x.dtype)
        variance = (sigma * sigma).mean(2, keepdim=True) + VARIANCE_FLOOR  # (B, T, 1, h, w)

        weights, folded = self._stem(slots, torch.log(trust.clamp_min(1e-4) / variance))
        spread = functional.interpolate(weights[:, :, 0], scale_factor=2.0, mode="nearest")
        fused = (image * spread[:, :, None]).sum(1)
        reference = (image * is_reference).sum(1)
        left = (weights * weights * variance).sum(1)
        noise = (variance * is_reference).sum(1)

        more: tuple[Tensor, ...] = ()
        if self.memory:
            # Without the floor, or a weak noise would be taken for a previous output.
            limit = FED_BACK * (noise[:, None] - VARIANCE_FLOOR)
            is_memory = (variance - VARIANCE_FLOOR < limit).to(x.dtype)
            more = _beyond(image, trust * is_memory, fused, left)
        clean = self._answer(folded, (fused, left), (reference, noise), more=more)
        return crop(clean, height, width)


def _beyond(image: Tensor, trust: Tensor, fused: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a trusted picture has beyond the fused one, and the trust in it.

    Args:
        image: Slots, shape (B, T, 3, H, W).
        trust: Trust in that picture, 0 for the other slots, shape (B, T, 1, H/2, W/2).
        fused: Shape (B, 3, H, W).
        left: Variance of the noise in it, shape (B, 1, H/2, W/2).

    Returns:
        Features of shapes (B, 1, H/2, W/2) and (B, 12, H/2, W/2), the second in unit quantities.
    """
    spread = functional.interpolate(trust[:, :, 0], scale_factor=2.0, mode="nearest")[:, :, None]
    beyond = (image * spread).sum(1) - fused * spread.sum(1)
    return trust.sum(1), functional.pixel_unshuffle(beyond, 2) * torch.rsqrt(left + DETAIL**2)
