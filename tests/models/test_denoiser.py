from pathlib import Path

import numpy as np
import pytest
import torch

from restore.hyperframe import Slot, pack
from restore.models import MODELS, Denoiser
from restore.models.blocks import Trunk, crop, pad_to_multiple


def hyperframe(slots: int, height: int, width: int, batch: int = 1) -> torch.Tensor:
    rng = np.random.default_rng([slots, height, width])
    frames = []
    for _ in range(batch):
        noise = np.full((height, width, 3), 0.1, np.float32)
        picture = rng.random((slots, height, width, 3), np.float32)
        trust = rng.random((slots, height, width), np.float32)
        times = range(-(slots // 2), slots - slots // 2)
        frames.append(
            pack([Slot(p, t, noise, c) for p, t, c in zip(picture, times, trust, strict=True)])
        )
    return torch.from_numpy(np.stack(frames))


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    kind, config = MODELS["denoiser-tiny"]
    return kind(**config).eval()


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (16, 24), (33, 2)])
def test_any_number_of_slots_and_any_size(model, slots: int, size: tuple[int, int]) -> None:
    with torch.no_grad():
        out = model(hyperframe(slots, *size))
    assert out.shape == (1, 3, *size)
    assert bool(out.isfinite().all())


def test_a_batch_equals_its_pictures_one_by_one(model) -> None:
    batch = hyperframe(3, 17, 22, batch=3)
    with torch.no_grad():
        singles = torch.cat([model(one[None]) for one in batch])
        torch.testing.assert_close(model(batch), singles, rtol=1e-5, atol=1e-6)


def test_fused_picture_weighs_by_confidence_over_variance(monkeypatch) -> None:
    """An untrained vote leaves the fusion to confidence / σ²: a mix that takes it shows it."""
    monkeypatch.setattr("restore.models.preconditioned.LOGITS", 30.0)  # votes that decide alone
    kind, config = MODELS["denoiser-tiny"]
    fresh = kind(**config)
    with torch.no_grad():
        fresh.answer.weight.zero_()
        fresh.answer.bias.zero_()
        fresh.answer.bias[12:16] = 100.0  # votes: the four sub-pixels of "fused"
    x = hyperframe(3, 8, 8)
    trusts = torch.tensor([0.25, 1.0, 0.75])
    x.view(1, 3, 8, 8, 8)[:, :, 4] = trusts[:, None, None]
    expected = (x.view(3, 8, 8, 8)[:, :3] * (trusts / 2)[:, None, None, None]).sum(0)
    with torch.no_grad():
        torch.testing.assert_close(fresh(x)[0], expected, rtol=1e-4, atol=1e-5)


def test_every_parameter_gets_a_finite_gradient() -> None:
    torch.manual_seed(0)
    kind, config = MODELS["denoiser-tiny"]
    model = kind(**config)
    model(hyperframe(5, 16, 16)).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name


def test_channels_must_be_whole_slots(model) -> None:
    with pytest.raises(ValueError, match="hyperframe"):
        model(torch.zeros(1, 12, 8, 8))


def test_names_of_the_weights_stay() -> None:
    """Weight files that exist name these; a renamed layer cannot read them."""
    kind, config = MODELS["denoiser"]
    state = kind(**config).state_dict()
    modules = sorted({key.rsplit(".", 1)[0] for key in state})
    blocks = {"down": ("0.0", "1.0", "2.0", "2.1"), "up": ("0.0", "1.0")}
    assert modules == sorted(
        [
            *("look", "compare", "vote", "enter", "answer"),
            *(f"trunk.{s}.{i}" for s, i in (("shrink", 0), ("shrink", 1))),
            *(f"trunk.grow.{i}.0" for i in (0, 1)),
            *(
                f"trunk.{d}.{b}.{c}"
                for d, n in blocks.items()
                for b in n
                for c in ("first", "second")
            ),
        ]
    )
    assert state["look.weight"].shape == (16, 8, 4, 4)
    assert state["compare.weight"].shape == (16, 16, 3, 1, 1)
    assert state["enter.weight"].shape == (32, 45, 3, 3)


def test_trunk_widths_pair_with_blocks() -> None:
    with pytest.raises(ValueError, match="2 widths but 1 block"):
        Trunk((8, 8), (1,))


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (8, 16), (9, 15)])
def test_cropping_undoes_padding(size: tuple[int, int]) -> None:
    x = torch.rand(2, 3, *size)
    padded = pad_to_multiple(x, 8)
    assert padded.shape[-2] % 8 == padded.shape[-1] % 8 == 0
    assert max(p - s for p, s in zip(padded.shape[-2:], size, strict=True)) < 8
    torch.testing.assert_close(crop(padded, *size), x)


@pytest.mark.slow
def test_the_exported_model_gives_the_same_pictures(model: Denoiser, tmp_path: Path) -> None:
    """Height, width and number of slots stay free: opset 18, exported by `torch.export`."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    dim = torch.export.Dim
    torch.onnx.export(
        model,
        (hyperframe(5, 21, 26),),
        tmp_path / "model.onnx",
        dynamo=True,
        opset_version=18,
        verbose=False,
        dynamic_shapes=({1: 8 * dim("slots", min=1, max=16), 2: dim.DYNAMIC, 3: dim.DYNAMIC},),
    )
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    for slots, height, width in [(5, 21, 26), (1, 1, 1), (3, 7, 5), (7, 64, 48)]:
        x = hyperframe(slots, height, width)
        (out,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        with torch.no_grad():
            np.testing.assert_allclose(out, model(x).numpy(), atol=1e-4)
