"""The light multi-frame denoiser: groups of neighbouring slots, mixed once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from restore.hyperframe import SLOT
from restore.models.denoiser import Denoiser


class Lite(Denoiser):
    """Restore the reference of a hyperframe at about the cost of a single-frame student.

    The stem looks at groups of two or three neighbouring slots, every second slot the middle of
    one, at half size. What the groups see is weighed against each other once and handed to the
    trunk; the slots themselves are fused by confidence / σ² alone. The rest is the denoiser's, in
    the widths of the student.

    References:
        The grouping is that of Tassano et al., FastDVDnet, CVPR 2020, section 3 (denoising blocks
        on triplets of frames), in one convolution.
    """

    def __init__(
        self,
        *,
        stem: int = 8,
        channels: tuple[int, ...] = (24, 48, 64),
        blocks: tuple[int, ...] = (1, 1, 1),
    ) -> None:
        """Set the widths, as those of `Denoiser`."""
        super().__init__(stem=stem, channels=channels, blocks=blocks)

    def _make_stem(self, stem: int) -> None:
        self.group = nn.Conv3d(SLOT, stem, (3, 4, 4), stride=2, padding=1)
        self.weigh = nn.Conv3d(stem, 1, 1)
        nn.init.zeros_(self.weigh.weight)
        nn.init.zeros_(self.weigh.bias)  # type: ignore[arg-type]

    def _stem(self, slots: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        groups = torch.relu(self.group(slots.transpose(1, 2)))  # (B, C, (T + 1) // 2, h, w)
        shares = torch.softmax(self.weigh(groups), dim=2)
        return torch.softmax(prior, dim=1), (groups * shares).sum(2)
