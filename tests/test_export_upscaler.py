"""An upscaler exported: named by its scale, free sizes and slots, equal in every runtime."""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from restore.engine import load_engine, scale_of_input
from restore.export import export_onnx
from restore.export.graph import example
from restore.models import MODELS
from restore.weights import load_model, save_model


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    torch.manual_seed(0)
    kind, config = MODELS["upscaler-tiny"]
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_model(kind(**config), path, {"name": "tiny", "model": "upscaler-tiny", "config": {}})
    return path, path.with_suffix(".onnx")


@pytest.fixture(scope="module")
def exported(files: tuple[Path, Path]) -> Path:
    export_onnx(*files, precision="fp16")
    return files[1]


def test_the_file_says_what_it_takes(exported: Path) -> None:
    proto = onnx.load(exported)
    assert [i.name for i in proto.graph.input] == ["hyperframe_x2"]
    told = {p.key: p.value for p in proto.metadata_props}
    assert told["scale"] == "2"
    assert told["margin"] == str(load_model(exported.with_suffix(".safetensors"))[0].margin)


def test_a_network_without_empty_channels_exports(tmp_path: Path) -> None:
    kind, config = MODELS["upscaler-tiny"]
    whole = {"stem": 8}  # what enters the trunk is then 24 channels: none is empty
    path = tmp_path / "whole.safetensors"
    meta = {"name": "whole", "model": "upscaler-tiny", "config": whole}
    save_model(kind(**(config | whole)), path, meta)
    assert max(export_onnx(path, path.with_suffix(".onnx")).values()) < 1e-5


@pytest.mark.parametrize(("slots", "size"), [(1, (9, 14)), (5, (33, 18)), (3, (2, 1))])
@pytest.mark.parametrize("runtime", ["onnx", "openvino", "torch"])
def test_runtimes_agree(
    files: tuple[Path, Path], exported: Path, runtime: str, slots: int, size: tuple[int, int]
) -> None:
    if runtime == "openvino" and importlib.util.find_spec("openvino") is None:
        pytest.skip("openvino is not installed")
    model = load_model(files[0])[0]
    hyperframe = example(model, slots, *size)
    engine = load_engine(files[0] if runtime == "torch" else exported, runtime=runtime)
    assert (engine.scale, engine.margin) == (2, model.margin)
    with torch.inference_mode():
        expected = model(hyperframe)[0].numpy()
    np.testing.assert_allclose(engine(hyperframe[0].numpy()), expected, atol=1e-4)


def test_names_of_inputs() -> None:
    assert [scale_of_input(n) for n in ("hyperframe", "noisy", "hyperframe_x4")] == [1, 1, 4]
