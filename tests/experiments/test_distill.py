import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from restore.models import MODELS, Student
from restore.training.validation import TorchEngine
from restore.weights import load_model, save_model

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
import distill  # noqa: E402

SETTINGS = {
    "name": "pupil", "model": "student-nano", "recipe": "awgn", "patch": 32, "batch": 2,
    "unroll": 2, "workers": 0, "lpips": 0, "warmup": 1, "device": "cpu", "steps": 2, "slots": "[3]",
    "slot_weights": "[1.0]", "feedback": 1.0,
}  # fmt: skip


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    kind, config = MODELS["denoiser-tiny"]
    path = tmp_path / "teacher.safetensors"
    save_model(kind(**config), path, {"name": "teacher", "model": "denoiser-tiny"})
    return path


def run(out: Path, *more: str) -> int:
    settings = [part for key, value in SETTINGS.items() for part in (f"--{key}", str(value))]
    return distill.main(["--out", str(out), *settings, *more])


def logged(out: Path) -> str:
    return (out / "log.jsonl").read_text()


def test_a_teacher_and_real_clips_make_a_plain_student(
    teacher: Path, tmp_path: Path, make_clip
) -> None:
    real = make_clip("real.mkv", frames=8).parent
    out = tmp_path / "out"
    more = ["--teacher", str(teacher), "--unlabelled", str(real), "--share", "0.5"]
    assert run(out, *more) == 0
    text = logged(out)
    assert '"features"' in text
    assert '"taught edges"' in text
    assert "NaN" not in text
    model, entry = load_model(out / "pupil.safetensors")
    assert type(model) is Student
    assert entry.model == "student-nano"


def test_without_a_teacher_the_same_command_trains_directly(tmp_path: Path) -> None:
    assert run(tmp_path, "--teacher", "none") == 0
    assert '"match"' not in logged(tmp_path)
    assert type(load_model(tmp_path / "pupil.safetensors")[0]) is Student


def test_only_students_are_taught(teacher: Path, tmp_path: Path, capsys) -> None:
    assert run(tmp_path, "--teacher", str(teacher), "--model", "denoiser-tiny") == 2
    assert "is not a single-frame student" in capsys.readouterr().err


def test_a_pupil_sees_nothing_but_the_reference() -> None:
    torch.manual_seed(0)
    kind, config = MODELS["student-nano"]
    student = kind(**config)
    student.__class__ = distill.Pupil
    frames = np.random.default_rng(0).random((24, 16, 16), np.float32)
    for slot, time in enumerate((-1, 0, 1)):
        frames[8 * slot + 3] = time / 3
    changed = frames.copy()
    changed[:3] += 0.5
    engine = TorchEngine(student)
    np.testing.assert_array_equal(engine(frames), engine(changed))
