import importlib.util
import json
import math
from pathlib import Path

import cv2
import pytest
import torch
from moving_scene import scene, write_clip

from restore.models import MODELS
from restore.weights import save_model

SCRIPT = Path(__file__).parents[2] / "experiments" / "evaluate.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("evaluate_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    torch.manual_seed(0)
    kind, config = MODELS["denoiser-tiny"]
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_model(kind(**config), path, {"name": "tiny", "model": "denoiser-tiny", "config": {}})
    return path


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    write_clip(folder / "video.mkv", scene(4, 96, 128))
    (folder / "frames").mkdir()
    for number, frame in enumerate(scene(3, 96, 128)):
        cv2.imwrite(str(folder / "frames" / f"{number:03d}.png"), frame[..., ::-1])
    return folder


def test_every_clip_and_level_is_in_the_table(script, weights, clips, tmp_path, capsys):
    card, rows = tmp_path / "card.md", tmp_path / "rows.json"
    arguments = [str(weights), str(clips), "--sigmas", "10,30", "--slots", "3", "--no-lpips"]
    assert script.main([*arguments, "--table", str(card), "--json", str(rows)]) == 0
    found = json.loads(rows.read_text())
    assert [(row["clip"], row["sigma"]) for row in found] == [
        ("frames", 10), ("frames", 30), ("video", 10), ("video", 30)
    ]  # fmt: skip
    # White noise of σ, a little less where it was clipped.
    for row in found:
        whole = 20 * math.log10(255 / row["sigma"])
        assert whole - 0.1 < row["noisy"] < whole + 1
    assert found[0]["lpips"] is None
    text = card.read_text()
    assert "| mean of 2 | 10 |" in text
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 2 + 4 + 2
    assert "| mean of 2 | 30 |" in capsys.readouterr().out


def test_mistakes_are_one_line(script, weights, tmp_path, capsys):
    assert script.main([str(weights), str(tmp_path)]) == 3
    assert script.main([str(weights), str(tmp_path), "--sigmas", "ten"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "no folder of frames" in lines[0]
