import numpy as np
import pytest
import torch
from motion_scenes import panning

from restore.training.validation import validate, white_samples


class Reference(torch.nn.Module):
    """Give the reference back."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = torch.nn.Parameter(torch.zeros(()))

    def forward(self, hyperframe: torch.Tensor) -> torch.Tensor:
        slots = hyperframe.unflatten(1, (-1, 8))
        return (slots[:, :, :3] * (slots[:, :, 3:4] == 0)).sum(1)


def test_doing_nothing_gains_nothing_and_is_shown() -> None:
    clips = [np.stack(panning(3, (2, 1), 48, 64)).clip(0, 1)]
    samples = white_samples(clips, (5, 20))
    shown: dict[str, np.ndarray] = {}
    figures = validate(Reference(), samples, slots=3, show=shown.__setitem__)
    assert figures["gain white 5"] == pytest.approx(0, abs=1e-6)
    # 20 log10(255 / σ); clipping takes a little of the noise.
    assert figures["psnr white 20"] == pytest.approx(22.11, abs=0.5)
    assert figures["psnr white 5"] == pytest.approx(34.15, abs=0.5)
    assert figures["val_psnr"] == pytest.approx(
        (figures["psnr white 5"] + figures["psnr white 20"]) / 2
    )
    assert shown.keys() == {"white 5", "white 20"}
    strip = shown["white 20"]
    assert strip.shape == (48, 3 * 64, 3)
    np.testing.assert_allclose(strip[:, 128:], clips[0][1])
    np.testing.assert_allclose(strip[:, :64], samples[1].noisy[1])


def test_noise_is_the_same_every_time() -> None:
    clips = [np.full((2, 8, 8, 3), 0.5, np.float32)]
    a, b = (white_samples(clips, (10,), seed=3)[0].noisy for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, white_samples(clips, (10,), seed=4)[0].noisy)


def test_two_passes_are_validated_as_they_are_run() -> None:
    clips = [np.stack(panning(3, (2, 1), 48, 64)).clip(0, 1)]
    samples = white_samples(clips, (20,))
    model = Counting()
    validate(model, samples, slots=3)
    once = model.asked
    validate(model, samples, slots=3, twice=True)
    assert model.asked == once + 3 * once, "the second pass also sees every frame mirrored"


class Counting(Reference):
    """Count the frames that are asked for."""

    asked = 0

    def forward(self, hyperframe: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return super().forward(hyperframe)
