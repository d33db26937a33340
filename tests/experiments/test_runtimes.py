import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from restore.export import export_onnx
from restore.models import MODELS
from restore.weights import save_model

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))
import runtimes


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    torch.manual_seed(0)
    kind, config = MODELS["student-nano"]
    path = tmp_path_factory.mktemp("weights") / "nano.safetensors"
    save_model(kind(**config), path, {"name": "nano", "model": "student-nano"})
    export_onnx(path, path.with_suffix(".onnx"))
    return path


def test_all_runtimes_give_the_same_picture_and_a_cost(weights, capsys):
    files = [str(weights), str(weights.with_suffix(".onnx"))]
    assert runtimes.main([*files, "--sizes", "64x48", "--rounds", "1", "--slots", "3"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    expected = [r for r in ("onnx", "openvino") if importlib.util.find_spec(runtimes.PACKAGES[r])]
    assert sorted(row[1].strip() for row in rows) == sorted(["torch", *expected])
    for row in rows:
        assert float(row[3]) > 0
        assert float(row[6]) < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nothing-known"], "no runtime can run it"), (["x.onnx", "--sizes", "wide"], "not a size")],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    assert runtimes.main(arguments) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
