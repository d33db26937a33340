import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from restore.memory import memory_slots
from restore.models import MODELS, Upscaler
from restore.models.student import operations


def hyperframe(scale: int, slots: int, height: int, width: int, batch: int = 1) -> torch.Tensor:
    rng = torch.Generator().manual_seed(slots * 1000 + height)
    channels = 8 * (slots + memory_slots(scale))
    x = torch.rand(batch, channels, height, width, generator=rng)
    times = (torch.arange(slots) - slots // 2) / 3
    x[:, 3 : 8 * slots : 8] = times[None, :, None, None]
    return x


def tiny(scale: int) -> Upscaler:
    torch.manual_seed(0)
    kind, config = MODELS["upscaler-tiny"]
    model = kind(**config | {"scale": scale}).eval()
    assert isinstance(model, Upscaler)
    return model


@pytest.mark.parametrize("scale", [2, 3, 4])
@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (16, 24)])
def test_any_scale_number_of_slots_and_size(scale: int, slots: int, size: tuple[int, int]) -> None:
    with torch.no_grad():
        out = tiny(scale)(hyperframe(scale, slots, *size))
    assert out.shape == (1, 3, scale * size[0], scale * size[1])
    assert bool(out.isfinite().all())


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_base_is_pillows_bicubic(scale: int) -> None:
    """But for the border, where Pillow leaves the taps outside away and this repeats pixels."""
    image = np.random.default_rng(scale).random((20, 24, 3), np.float32)
    batch = torch.from_numpy(image.transpose(2, 0, 1))[None]
    ours = functional.pixel_shuffle(tiny(scale).enlarge(batch), scale)[0].numpy()
    size = (24 * scale, 20 * scale)
    inner = (slice(2 * scale, -2 * scale),) * 2
    for channel in range(3):
        plane = Image.fromarray(image[..., channel])
        theirs = np.asarray(plane.resize(size, Image.Resampling.BICUBIC))
        np.testing.assert_allclose(ours[channel][inner], theirs[inner], atol=1e-5)


def test_starts_near_the_bicubic_picture() -> None:
    """Over a clip without noise whose slots agree."""
    torch.manual_seed(3)
    model = Upscaler(scale=2)
    x = hyperframe(2, 3, 16, 16)
    x[:, 8:11] = x[:, :3] = x[:, 16:19]
    x[:, 24:] = 0  # no memory
    with torch.no_grad():
        base = functional.pixel_shuffle(model.enlarge(x[:, 8:11]), 2)
        assert float((model(x) - base).square().mean().sqrt()) < 0.05


def test_memory_without_trust_is_not_looked_at() -> None:
    model, x = tiny(2), hyperframe(2, 3, 9, 8)
    x[:, 24:25] = 0
    other = x.clone()
    other[:, 25:] = 0.3
    with torch.no_grad():
        torch.testing.assert_close(model(x), model(other))
        other[:, 24:25] = 1
        assert not torch.allclose(model(x), model(other), atol=1e-3)


def test_memory_reaches_the_picture_at_its_own_place() -> None:
    """A gate half open lets half of what the memory has beyond bicubic pass."""
    model = tiny(2)
    with torch.no_grad():
        model.answer.weight.zero_()
        model.answer.bias.zero_()
        x = hyperframe(2, 1, 6, 7)
        wanted = torch.rand(1, 3, 12, 14)
        x[:, 8] = 1
        x[:, 9:21] = functional.pixel_unshuffle(wanted, 2)
        base = functional.pixel_shuffle(model.enlarge(x[:, :3]), 2)
        torch.testing.assert_close(model(x), (base + wanted) / 2, rtol=1e-4, atol=1e-5)


def test_a_batch_equals_its_pictures_one_by_one() -> None:
    model, batch = tiny(4), hyperframe(4, 3, 11, 14, batch=3)
    with torch.no_grad():
        singles = torch.cat([model(one[None]) for one in batch])
        torch.testing.assert_close(model(batch), singles, rtol=1e-5, atol=1e-6)


def test_every_parameter_gets_a_finite_gradient() -> None:
    torch.manual_seed(0)
    model = Upscaler(scale=2, stem=4, channels=(8, 8), blocks=(1, 1))
    model(hyperframe(2, 5, 16, 16)).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name


@pytest.mark.parametrize("bias", [-300.0, 300.0])
def test_votes_that_ran_away_leave_a_finite_picture(bias: float) -> None:
    model = tiny(4)
    with torch.no_grad():
        model.vote.bias.fill_(bias)  # type: ignore[union-attr]
        assert bool(model(hyperframe(4, 3, 8, 8)).isfinite().all())


@pytest.mark.parametrize("scale", [2, 4])
def test_a_quarter_of_what_span_spends(scale: int) -> None:
    """SPAN (48 channels) has 426 k weights, each used once a pixel of the small picture."""
    model = Upscaler(scale=scale)
    assert operations(model, hyperframe(scale, 5, 32, 32)) < 426_000 / 4


@pytest.mark.parametrize("channels", [8 * 3 + 4, 8 * 2])
def test_wrong_channels_are_refused(channels: int) -> None:
    with pytest.raises(ValueError, match="scale 2"):
        tiny(2)(torch.zeros(1, channels, 8, 8))
    with pytest.raises(ValueError, match="2 or more"):
        Upscaler(scale=1)


def test_learns_one_batch() -> None:
    torch.manual_seed(1)
    model = tiny(2).train()
    x, wanted = hyperframe(2, 3, 12, 12, batch=2), torch.rand(2, 3, 24, 24)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(40):
        loss = (model(x) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
