"""How far the networks see: tiles that overlap by less would show their seams."""

from typing import Any

import pytest
import torch

from restore.models import MODELS

CASES: list[tuple[str, dict[str, Any], int]] = [
    ("denoiser", {}, 8),
    ("denoiser", {"blocks": (2, 1, 3)}, 8),
    ("denoiser-tiny", {}, 8),
    ("student-edge", {}, 6),
    ("upscaler", {"scale": 2}, 8 * (1 + 2)),
    ("upscaler", {"scale": 2, "blocks": (6,)}, 8 * (1 + 2)),
]


@pytest.mark.parametrize(("name", "changes", "channels"), CASES)
def test_no_pixel_depends_on_one_beyond_the_margin(
    name: str, changes: dict[str, Any], channels: int
) -> None:
    torch.manual_seed(0)
    kind, defaults = MODELS[name]
    model = kind(**(defaults | changes)).eval().double()
    scale, margin = getattr(model, "scale", 1), int(model.margin)
    middle = margin + 8
    x = torch.rand(1, channels, 8, 2 * middle, dtype=torch.float64)
    is_time = torch.arange(channels) % 8 == 3
    if channels % 8 == 0:
        x[:, is_time] = 0
    seen = 0
    with torch.inference_mode():
        before = model(x)
        for at in range(middle, middle + 8):  # where a pixel lies in a coarse cell counts
            other = x.clone()
            other[:, :, :, at] += 0.5
            if channels % 8 == 0:
                other[:, is_time] = 0
            columns = (before - model(other)).abs().amax((0, 1, 2)).nonzero()[:, 0]
            seen = max(seen, at - int(columns[0]) // scale, int(columns[-1]) // scale - at)
    assert 0.8 * margin <= seen <= margin
