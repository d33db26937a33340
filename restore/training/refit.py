"""Solve the last layer of an upscaler: what many steps approach, least squares finds at once.

The answer of the trunk is linear in its last layer. Given all layers before it, the weights with
the least squared error come out of one set of normal equations, summed over a few hundred thousand
pixels. The outputs that are fed back change with them, so it is done several times in a row, each
time only as far as a ridge allows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from restore.models.upscaler import Upscaler, local_statistics
from restore.training.objective import enlarged_reference
from restore.training.windows import Window

BORDER = 2
"""Pixels of a patch's border that are left out: the picture goes on there, the network's does
not."""
STRIDE = 2
"""Every so many pixels in both directions are taken: neighbours say the same."""


@torch.inference_mode()
def refit(
    model: Upscaler, batches: Iterable[list[Window]], *, ridge: float, floor: float, seed: int = 0
) -> float:
    """Move the last layer to the least squared error.

    Clips count by the inverse of the squared error of bicubic enlargement, as in training.

    Args:
        model: The network, changed in place.
        batches: Windows as they are trained on.
        ridge: How strongly the weights are held where they are, as a share of the mean energy of
            what the layer sees.
        floor: Added to the error of bicubic enlargement before it divides, in [0, 1] units.
        seed: Decides which pixels are taken.

    Returns:
        The share of the squared error that is gone on these batches, as long as the memory is what
        it was.
    """
    model.eval()
    taps = model.answer.in_channels * 9 + 1
    detail = 3 * model.scale**2
    seen: dict[str, Tensor] = {}
    hook = model.trunk.register_forward_hook(lambda _, __, out: seen.update(features=out))
    energy = torch.zeros(taps, taps, dtype=torch.float64)
    product = torch.zeros(taps, detail, dtype=torch.float64)
    rng, total = np.random.default_rng(seed), 0.0
    for windows in batches:
        before: Tensor | None = None
        for window in windows:
            if window.links:
                assert before is not None, "the first frame of a clip has no frame before"
                window.fill(before.numpy())
            before = model(torch.from_numpy(window.hyperframe))
            rows, wanted = _equations(model, window, before, seen["features"], floor, rng)
            energy += (rows.T @ rows).double()
            product += (rows.T @ wanted).double()
            total += float(wanted.square().sum())
    hook.remove()
    held = ridge * energy.diagonal().mean() * torch.eye(taps, dtype=torch.float64)
    change = torch.linalg.solve(energy + held, product)
    weight, bias = model.answer.weight, model.answer.bias
    assert bias is not None
    weight[:detail] += change[:-1].T.reshape(detail, -1, 3, 3).float()
    bias[:detail] += change[-1].float()
    explained = 2 * (change * product).sum() - (change * (energy @ change)).sum()
    return float(explained) / max(total, 1e-12)


def _equations(
    model: Upscaler,
    window: Window,
    output: Tensor,
    features: Tensor,
    floor: float,
    rng: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """Return what the last layer sees (N, taps) and what it should add (N, 3 * scale²)."""
    slots = torch.from_numpy(window.slots)
    reference = (slots[:, :, :3] * (slots[:, :, 3:4] == 0)).sum(1)
    contrast = local_statistics(reference)[1]
    clean = torch.from_numpy(window.clean)
    bicubic = (enlarged_reference(window) - clean).square().mean((1, 2, 3), keepdim=True)
    weight = 1 / (bicubic.sqrt() + floor)
    missing = functional.pixel_unshuffle(clean - output, model.scale) * weight
    around = functional.unfold(features, 3, padding=1).unflatten(-1, features.shape[-2:])
    height, width = reference.shape[-2:]
    around = torch.cat((around[..., :height, :width], torch.ones_like(contrast)), 1)
    around = around * (contrast * weight)
    top, left = (BORDER + int(n) for n in rng.integers(0, STRIDE, 2))
    rows = (slice(top, height - BORDER, STRIDE), slice(left, width - BORDER, STRIDE))
    return tuple(x[:, :, rows[0], rows[1]].movedim(1, -1).flatten(0, 2) for x in (around, missing))  # type: ignore[return-value]  # two of them
