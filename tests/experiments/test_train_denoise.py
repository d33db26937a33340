import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
import train_denoise  # noqa: E402

TINY = {
    "name": "tiny", "model": "denoiser-tiny", "recipe": "awgn", "patch": 32, "batch": 1,
    "unroll": 2, "workers": 0, "lpips": 0, "warmup": 1, "device": "cpu", "steps": 4,
}  # fmt: skip


def options(out: Path, *more: str) -> list[str]:
    settings = [part for key, value in TINY.items() for part in (f"--{key}", str(value))]
    return ["--out", str(out), *settings, *more]


@pytest.mark.slow
def test_the_command_runs_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "experiments/train_denoise.py", *options(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "finished at step 4 after" in done.stdout
    assert (tmp_path / "tiny.safetensors").is_file()


def test_a_run_that_stops_is_resumed_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    assert train_denoise.main(options(tmp_path, "--max-minutes", "0")) == 0
    first = capsys.readouterr().out
    assert 'name = "tiny"' in first
    assert "seeds: model 0;" in first
    assert "stopped at step 1 after" in first
    assert train_denoise.main(options(tmp_path)) == 0
    second = capsys.readouterr().out
    assert "resumed at step 1" in second
    assert "finished at step 4 after" in second
    assert "waiting for data" in second

    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 4]
    assert "psnr white 30" in lines[-1]
    assert "seeds" in json.loads((tmp_path / "data.json").read_text())

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(tmp_path))
    board.Reload()
    assert "noisy, restored, clean/white 30" in board.Tags()["images"]
    assert "loss" in board.Tags()["scalars"]

    from restore.weights import load_model

    network, entry = load_model(tmp_path / "tiny.safetensors")
    assert entry.model == "denoiser-tiny"
    assert entry.origin["training"]["seed"] == 0
    assert sum(p.numel() for p in network.parameters()) > 0


def test_what_a_run_started_from(tmp_path: Path) -> None:
    """A second phase starts from the weights of the first; other networks are refused."""
    from restore.errors import UsageError
    from restore.models import MODELS
    from restore.training import TrainConfig
    from restore.weights import save_model

    kind, config = MODELS["denoiser-tiny"]
    start = kind(**config | {"stem": 6})
    path = tmp_path / "first.safetensors"
    meta = {"name": "first", "model": "denoiser-tiny", "config": {"stem": 6}}
    save_model(start, path, meta)
    given = {"model": "denoiser-tiny", "init": str(path)}
    again = train_denoise.build(TrainConfig.from_dict(given | {"model_config": {"stem": 6}}))
    for a, b in zip(start.parameters(), again.parameters(), strict=True):
        assert (a - b).abs().max() < 1e-3  # kept as float16
    with pytest.raises(UsageError, match="does not fit"):
        train_denoise.build(TrainConfig.from_dict(given))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--bach", "3"), 'unknown training option "bach"'),
        (("--batch", "few"), "batch must be of type int"),
        (("--recipe", "snow"), 'no recipe "snow"; known: awgn, mixed'),
    ],
)
def test_a_wrong_option_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: tuple[str, str], message: str
) -> None:
    assert train_denoise.main(["--out", str(tmp_path), *wrong]) == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
