"""The console command that enlarges."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from restore.cli import upscale
from restore.io import VideoReader
from restore.models import MODELS
from restore.weights import save_model


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    kind, config = MODELS["upscaler-tiny"]
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_model(kind(**config), path, {"name": "tiny", "model": "upscaler-tiny", "config": {}})
    return path


def test_a_file_twice_as_large(two_frame_clip: Path, weights: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.mp4"
    command = [sys.executable, "-m", "restore.cli.upscale", str(two_frame_clip), str(target)]
    options = ["--scale", "2", "--model", str(weights), "--json"]
    done = subprocess.run(command + options, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["frames"] == 2
    with VideoReader(target) as reader:
        assert (reader.info.width, reader.info.height) == (128, 96)


def test_denoise_takes_both_models(
    two_frame_clip: Path, weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.mkv"
    asked = [str(two_frame_clip), str(target), "--denoise", "--model", str(weights), "--json"]
    assert upscale.main(asked) == 0
    assert json.loads(capsys.readouterr().out)["model"].endswith("+ tiny")
    assert target.is_file()


def test_the_report_compares_with_the_enlarged_input(
    two_frame_clip: Path, weights: Path, tmp_path: Path
) -> None:
    target, page = tmp_path / "out.mkv", tmp_path / "page.html"
    asked = [str(two_frame_clip), str(target), "--model", str(weights), "--report", str(page)]
    assert upscale.main([*asked, "--quiet"]) == 0
    text = page.read_text()
    assert "restore-upscale" in text
    assert "enlarged bicubically by 2" in text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("in.mkv", "out.mkv", "--scale", "5"), "invalid choice"),
        (("in.mkv",), "needs two files"),
        (("in.mkv", "-", "--report", "page.html"), "a pipe cannot be read twice"),
    ],
)
def test_mistakes_in_one_line(
    wrong: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        upscale.main(list(wrong))
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
