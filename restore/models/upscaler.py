"""The multi-frame upscaler: 3D stem, learned temporal fusion, 2D trunk, pixel-shuffle head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from restore.hyperframe import SLOT, TIME_UNIT
from restore.memory import memory_slots
from restore.models.blocks import AlongTime, Trunk, crop, enter, pad_to_multiple
from restore.models.preconditioned import LOGITS, VARIANCE_FLOOR

REACH = 2
"""Pixels to each side that the bicubic kernel reads."""
NEAR = 3
"""Pixels to each side over which mean and contrast are taken."""
FAINT = 0.01
"""Contrast below which detail is no longer brought to the same size: 2.5 levels of 255."""
FAR = 60.0
"""Bound of the votes in time: beyond it float32 may leave nothing to divide by."""
ALIAS = (2.0 / 255.0) ** 2
"""Variance of what a warped neighbour shows beyond the pixel grid: a fused picture is no better
than this."""


class Upscaler(nn.Module):
    """Enlarge the reference of a hyperframe by a whole factor.

    The stem looks at all slots with factorised 3D convolutions at the input's size; every slot
    sees the reference beside itself. It yields, for each slot and each of its features, a weight
    in time, which starts from confidence / σ², and the features are folded under these weights.
    The trunk sees them with the reference, the fused picture, the noise left in both, and the
    previous output, folded to the input's size (`restore.memory`).

    All pictures are shown above the local mean of the reference and in units of its local
    contrast, and the trunk answers in the same units: what it has to learn is the same for faint
    and for strong detail.

    The answer is the bicubic enlargement of the reference (mixed with the fused picture where
    there is noise), plus learned detail, plus a share of what the previous output has beyond the
    bicubic one. So nothing has to be learned to equal bicubic, and detail that was found once need
    not pass the trunk again.

    Works for any number of slots.
    """

    def __init__(
        self,
        *,
        scale: int = 4,
        stem: int = 16,
        channels: tuple[int, ...] = (32,),
        blocks: tuple[int, ...] = (3,),
    ) -> None:
        """Set factor and widths.

        Args:
            scale: Enlargement: 2, 3 or 4.
            stem: Channels of the 3D stem.
            channels: Channels of the trunk at 1/1, 1/2, … of the input's size.
            blocks: Residual blocks of each level of the trunk.

        Raises:
            ValueError: If the scale is below 2.
        """
        super().__init__()
        if scale < 2:
            raise ValueError(f"scale must be 2 or more, got {scale}")
        self.scale = scale
        self.multiple = 2 ** (len(channels) - 1)
        self.memory = SLOT * memory_slots(scale)
        detail = 3 * scale * scale
        # Picture, time, confidence, σ.
        self.look = nn.Conv2d(3 + 3, stem, 3, padding=1)
        self.look_reference = nn.Conv2d(3, stem, 3, padding=1, bias=False)
        self.compare = AlongTime(stem, stem)
        self.vote = nn.Conv3d(stem, stem + 1, 1)  # one for each feature, one for the picture
        nn.init.zeros_(self.vote.weight)
        nn.init.zeros_(self.vote.bias)  # type: ignore[arg-type]
        # Folded features; the memory's luma and its confidence; reference and fused picture above
        # the local mean, and that mean; noise and contrast.
        self.enter = nn.Conv2d(stem + scale * scale + 1 + 3 * 3 + 2, channels[0], 3, padding=1)
        self.trunk = Trunk(tuple(channels), tuple(blocks))
        self.answer = nn.Conv2d(channels[0], detail + 2, 3, padding=1)
        with torch.no_grad():
            self.answer.weight.mul_(0.1)  # start from the bicubic picture
            self.answer.bias.zero_()  # type: ignore[union-attr]
        self.register_buffer("kernel", bicubic_kernel(scale), persistent=False)

    @property
    def margin(self) -> int:
        """Pixels of the input, to each side, that the answer can depend on: overlap of tiles."""
        return self.trunk.reach + 9  # 9: first and last layers, and the local contrast

    def forward(self, hyperframe: Tensor) -> Tensor:
        """Enlarge.

        Args:
            hyperframe: Shape (B, C, H, W), laid out by `restore.memory.pack_with_memory`.

        Returns:
            The clean picture, shape (B, 3, scale * H, scale * W), not clipped.

        Raises:
            ValueError: If the channels are not those of at least one slot and the memory.
        """
        slots_at = hyperframe.shape[1] - self.memory
        if hyperframe.ndim != 4 or slots_at % SLOT or slots_at < SLOT:
            raise ValueError(
                f"a hyperframe for scale {self.scale} is (B, T*{SLOT} + {self.memory}, H, W), "
                f"got {tuple(hyperframe.shape)}"
            )
        height, width = hyperframe.shape[-2:]
        x = pad_to_multiple(hyperframe, self.multiple)
        memory = x[:, -self.memory :]
        slots = x[:, : -self.memory].reshape(len(x), -1, SLOT, *x.shape[-2:])  # (B, T, 8, H, W)
        image, time, confidence, sigma = slots.split((3, 1, 1, 3), dim=2)
        variance = (sigma * sigma).mean(2, keepdim=True) + VARIANCE_FLOOR  # (B, T, 1, H, W)
        is_reference = (time[..., :1, :1].abs() < 0.5 / TIME_UNIT).to(x.dtype)
        reference, noise = (image * is_reference).sum(1), (variance * is_reference).sum(1)
        mean, contrast = local_statistics(reference)

        above = (reference - mean) / contrast
        shown = (image - mean[:, None]) / contrast[:, None]
        seen = torch.cat((shown, time, confidence, _level(variance)), 2)
        prior = torch.log(confidence.clamp_min(1e-4) * (VARIANCE_FLOOR / variance))
        folded, share = self._fold(seen, above, prior)
        fused, left = (image * share).sum(1), (share * share * variance).sum(1)

        trust, recalled = memory[:, :1], memory[:, 1 : 1 + 3 * self.scale**2]
        extra = (recalled - self.enlarge(reference)) * trust
        luma = extra.unflatten(1, (3, -1)).mean(1) / contrast
        above_fused = (fused - mean) / contrast
        levels = torch.cat((_level(noise), _level(contrast * contrast)), 1)
        told = torch.cat((folded, luma, trust, above, above_fused, mean, levels), 1)
        out = self.answer(self.trunk(enter(self.enter, told)))

        # Bounded, so that neither share can vanish for good (see the denoiser).
        votes = LOGITS * torch.tanh(out[:, -2:] / LOGITS)
        calm = torch.sigmoid(torch.log(noise / (left + ALIAS)) + votes[:, 1:])
        base = self.enlarge(reference + calm * (fused - reference))
        kept = torch.sigmoid(votes[:, :1]) * extra
        clean = functional.pixel_shuffle(base + out[:, :-2] * contrast + kept, self.scale)
        return crop(clean, self.scale * height, self.scale * width)

    def _fold(self, seen: Tensor, above: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Look at the slots.

        Args:
            seen: Shape (B, T, 6, H, W).
            above: The reference as it is shown in them, shape (B, 3, H, W).
            prior: Logarithm of the weights to start from, at most 0, shape (B, T, 1, H, W).

        Returns:
            Features folded over time, shape (B, C, H, W), and the weights of the pictures, shape
            of `prior`, adding up to 1 over time.
        """
        features = self.look(seen.flatten(0, 1))
        features = features.reshape(*seen.shape[:2], *features.shape[1:])
        features = torch.relu(features + self.look_reference(above)[:, None])
        features = torch.relu(self.compare(features.transpose(1, 2)))
        # Bounded, so a softmax needs no maximum taken off: a third of this network's time.
        votes = self.vote(features).clamp(-FAR, FAR)  # (B, C + 1, T, H, W)
        shares = torch.exp(prior.transpose(1, 2) + votes)
        weights = shares / shares.sum(2, keepdim=True)
        return (features * weights[:, :-1]).sum(2), weights[:, -1:].transpose(1, 2)

    def enlarge(self, image: Tensor) -> Tensor:
        """Enlarge (B, 3, H, W) bicubically, folded: (B, 3 * scale², H, W)."""
        padded = functional.pad(image, (REACH,) * 4, mode="replicate")
        return functional.conv2d(padded, self.kernel, groups=3)  # type: ignore[arg-type]


def local_statistics(image: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean around every pixel (B, 3, H, W) and the contrast above it (B, 1, H, W)."""
    mean = _around(image)
    above = image - mean
    energy = _around((above * above).mean(1, keepdim=True))
    return mean, torch.sqrt(energy + FAINT**2)


def _around(x: Tensor) -> Tensor:
    return functional.avg_pool2d(functional.pad(x, (NEAR,) * 4, mode="replicate"), 2 * NEAR + 1, 1)


def _level(variance: Tensor) -> Tensor:
    """Return a variance on a scale that a network can use: 0 at σ = 5, 1 at σ = 35 of 255."""
    return torch.log(variance) / 4 + 2


def bicubic_kernel(scale: int) -> Tensor:
    """Return bicubic enlargement as one convolution, shape (3 * scale², 1, 5, 5), a = -1/2.

    Pixel centres as everywhere: output pixel j looks at input (j + 1/2) / scale - 1/2.

    References:
        Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, eq. 15.
    """
    phase = (torch.arange(scale, dtype=torch.float64) + 0.5) / scale - 0.5
    x = (torch.arange(-REACH, REACH + 1, dtype=torch.float64) - phase[:, None]).abs()
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    taps = torch.where(x < 1, near, torch.where(x < 2, far, 0.0))  # (scale, 5)
    kernel = torch.einsum("iy,jx->ijyx", taps, taps).reshape(scale * scale, 1, *2 * [5])
    return kernel.repeat(3, 1, 1, 1).float()
