"""The multi-frame denoiser: 3D stem, learned temporal fusion, 2D residual trunk, gate."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from restore.hyperframe import SLOT
from restore.models.blocks import AlongTime, crop, pad_to_multiple
from restore.models.preconditioned import VARIANCE_FLOOR, Preconditioned


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
    ) -> None:
        """Set the widths.

        Args:
            stem: Channels of the 3D stem.
            channels: Channels of the trunk at 1/2, 1/4, 1/8 of the size.
            blocks: Residual blocks of each level of the trunk.
        """
        super().__init__()
        self.multiple = 2 ** len(channels)
        self._make_stem(stem)
        self._make_trunk(stem, 2, channels, blocks)

    def _make_stem(self, stem: int) -> None:
        """Make the layers that look at the slots."""
        self.look = nn.Conv2d(SLOT, stem, 4, stride=2, padding=1)
        self.compare = AlongTime(stem, stem)
        self.vote = nn.Conv3d(stem, 1, 1)
        nn.init.zeros_(self.vote.weight)
        nn.init.zeros_(self.vote.bias)  # type: ignore[arg-type]

    def _stem(self, slots: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Look at the slots.

        Args:
            slots: Shape (B, T, 8, H, W).
            prior: Logarithm of confidence / σ², in units that keep it below 0, shape
                (B, T, 1, H/2, W/2).

        Returns:
            Weights of the slots, shape of `prior`, adding up to 1 over time; and features, shape
            (B, C, H/2, W/2).
        """
        features = torch.relu(self.look(slots.flatten(0, 1)))
        features = features.reshape(*slots.shape[:2], *features.shape[1:]).transpose(1, 2)
        features = torch.relu(self.compare(features))  # (B, C, T, h, w)
        votes = self.vote(features).transpose(1, 2)
        # A softmax, whose prior is at most 0: no maximum to take off, and runtimes are slow at it.
        shares = torch.exp(prior + votes)
        weights = shares / shares.sum(1, keepdim=True)
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
        which = torch.arange(len(x), device=x.device), time[:, :, 0, 0, 0].abs().argmin(1)
        variance = (sigma * sigma).mean(2, keepdim=True) + VARIANCE_FLOOR  # (B, T, 1, h, w)

        prior = torch.log(trust.clamp_min(1e-4) * (VARIANCE_FLOOR / variance))
        weights, folded = self._stem(slots, prior)
        spread = functional.interpolate(weights[:, :, 0], scale_factor=2.0, mode="nearest")
        fused = (image * spread[:, :, None]).sum(1)
        reference = image[which]
        left = (weights * weights * variance).sum(1)
        noise = variance[which]

        clean = self._answer(folded, (fused, left), (reference, noise))
        return crop(clean, height, width)
