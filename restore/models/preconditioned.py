"""What the denoisers share: a trunk that sees and corrects unit quantities at any noise level."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from restore.models.blocks import Trunk, enter

VARIANCE_FLOOR = 1e-5
"""Added to σ² before it divides: (0.8/255)², what rounding leaves in a clean picture."""
DETAIL = 0.05
"""Typical deviation of a clean picture from the mean of 4x4 pixels."""
LOGITS = 2.5
"""Bound of what a trunk adds to the logits of a mix: they stay where a softmax has a gradient."""


class Preconditioned(nn.Module):
    """A 2D trunk that makes a clean picture out of noisy ones whose variance is known.

    The trunk works at half size. It sees what the pictures have above their coarse version, each
    brought to the same variance at every noise level.

    The answer is a mix of the pictures and the coarse one, plus a correction. The mix starts from
    the precision of each: 1 / σ² of the noise left in a picture, 1 / `DETAIL`² of the coarse one;
    the trunk votes on top. The correction is scaled by the error that such a mix is expected to
    have, so that the trunk predicts a unit quantity whether the noise is weak or strong: noise
    where it is weak, detail where it is strong.

    References:
        Karras et al., Elucidating the Design Space of Diffusion-Based Generative Models,
        NeurIPS 2022, section 5: the same preconditioning for one picture and one noise level.
    """

    def _make_trunk(
        self, features: int, pictures: int, channels: tuple[int, ...], blocks: tuple[int, ...]
    ) -> None:
        """Make the layers.

        Args:
            features: Channels of what `_answer` is told beside the pictures.
            pictures: How many pictures it is given.
            channels: Channels of the trunk at 1/2, 1/4, … of the size.
            blocks: Residual blocks of each level of the trunk.
        """
        # Of each picture 4 sub-pixels of 3 channels; the coarse picture; the noise left in each.
        seen = features + 4 * 3 * pictures + 3 + pictures
        self.enter = nn.Conv2d(seen, channels[0], 3, padding=1)
        self.trunk = Trunk(tuple(channels), tuple(blocks))
        # For 4 sub-pixels: a correction of 3 channels, and votes for the pictures and the coarse.
        self.answer = nn.Conv2d(channels[0], 4 * (3 + pictures + 1), 3, padding=1)
        with torch.no_grad():
            self.answer.weight.mul_(0.1)

    @property
    def margin(self) -> int:
        """Pixels to each side that a pixel of the answer can depend on: overlap of tiles."""
        return 2 * self.trunk.reach + 7  # 7: the first and last layer, and the coarse picture

    def _answer(self, folded: Tensor, *pictures: tuple[Tensor, Tensor]) -> Tensor:
        """Mix and correct.

        Args:
            folded: Features, shape (B, C, h, w), at half size.
            pictures: Each (B, 3, H, W) with the variance of its noise (B, 1, h, w); the best
                first, whose blurred version is the coarse picture.

        Returns:
            The clean picture, shape (B, 3, H, W).
        """
        best, left = pictures[0]
        small = functional.avg_pool2d(best, 4)
        coarse = _enlarge(small, 4.0)
        above = (
            functional.pixel_unshuffle(picture - coarse, 2) * torch.rsqrt(variance + DETAIL**2)
            for picture, variance in pictures
        )
        variances = torch.cat([variance for _, variance in pictures], 1)
        precision = -torch.log(variances / DETAIL**2)
        told = torch.cat((folded, *above, _enlarge(small, 2.0), precision / 4), 1)
        correction, votes = self.answer(self.trunk(enter(self.enter, told))).tensor_split((12,), 1)

        # (B, N + 1, 4, h, w): the pictures, then the coarse one, whose precision is 1.
        # Bounded, so a softmax needs no maximum taken off; runtimes are slow at it on this axis.
        prior = functional.pad(precision, (0, 0, 0, 0, 0, 1))[:, :, None]
        votes = LOGITS * torch.tanh(votes.unflatten(1, (-1, 4)) / LOGITS)
        shares = torch.exp(prior + votes)
        shares = shares / shares.sum(1, keepdim=True)
        mix = functional.pixel_shuffle(shares.flatten(1, 2), 2)
        expected = DETAIL * torch.sqrt(left / (left + DETAIL**2))
        clean = functional.pixel_shuffle(correction * expected, 2)
        for number, picture in enumerate((*(picture for picture, _ in pictures), coarse)):
            clean = clean + picture * mix[:, number : number + 1]
        return clean


def _enlarge(x: Tensor, factor: float) -> Tensor:
    return functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)
