import sys
from pathlib import Path

import pytest
import torch
from moving_scene import scene, write_clip
from outside import run

from restore.models import MODELS
from restore.weights import save_model

ABLATE = Path(__file__).parents[2] / "experiments" / "ablate.py"


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    kind, config = MODELS["denoiser-tiny"]
    path = tmp_path / "tiny.safetensors"
    save_model(kind(**config), path, {"name": "tiny", "model": "denoiser-tiny", "config": {}})
    return path


def test_windows(weights, tmp_path):
    write_clip(tmp_path / "clip.mkv", scene(3, 96, 128))
    said = run(sys.executable, ABLATE, "windows", weights, "clip.mkv", cwd=tmp_path)
    rows = [line.split("|")[1:3] for line in said.splitlines()[2:]]
    figures = {name.strip(): float(cell.split("/")[0]) for name, cell in rows}
    # The ways differ: a clip in motion is not the same without alignment or without neighbours.
    default = figures["default: T = 5, one refinement"]
    assert figures["no alignment"] != default
    assert figures["T = 1"] != default
    assert figures["T = 7"] == pytest.approx(default, abs=0.02)  # there are only three frames


@pytest.mark.slow
def test_networks(tmp_path):
    small = ["--steps", "2", "--warmup", "1", "--patch", "48", "--batch", "1", "--workers", "0"]
    said = run(sys.executable, ABLATE, "networks", *small, "--out", "runs", cwd=tmp_path)
    names = [line.removeprefix("== ") for line in said.splitlines() if line.startswith("== ")]
    assert len(names) == len(set(names)) == len(list((tmp_path / "runs").iterdir())) > 3
