import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from restore.models import MODELS, Student
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
    lessons = ["--lessons", str(out / "lessons"), "--count", "2"]
    return distill.main(["--out", str(out), *settings, *lessons, *more])


def logged(out: Path) -> str:
    return (out / "log.jsonl").read_text()


def test_a_teacher_and_real_clips_make_a_plain_student(
    teacher: Path, tmp_path: Path, make_clip
) -> None:
    real = make_clip("real.mkv", frames=8).parent
    out = tmp_path / "out"
    more = ["--teacher", str(teacher), "--unlabelled", str(real), "--share", "0.5"]
    assert run(out, *more, "--pixel_phase", "0") == 0
    text = logged(out)
    for term in ("match", "features", "taught edges", "temporal"):
        assert f'"{term}"' in text
    assert "NaN" not in text
    model, entry = load_model(out / "pupil.safetensors")
    assert type(model) is Student
    assert entry.model == "student-nano"
    stored = [np.load(path) for path in sorted((out / "lessons-teacher").glob("*.npz"))]
    known = np.concatenate([lesson["known"].ravel() for lesson in stored])
    assert known.any()
    assert not known.all()


def test_without_a_teacher_the_same_command_trains_directly(tmp_path: Path) -> None:
    assert run(tmp_path, "--teacher", "none") == 0
    text = logged(tmp_path)
    assert '"match"' not in text
    assert '"temporal"' in text
    assert type(load_model(tmp_path / "pupil.safetensors")[0]) is Student


def test_every_seed_is_trained_with_the_teacher_and_without(
    teacher: Path, tmp_path: Path, capsys
) -> None:
    assert run(tmp_path, "--teacher", str(teacher), "--compare", "1", "2", "--steps", "1") == 0
    printed = capsys.readouterr().out
    assert "| figure | alone | taught | difference |" in printed
    assert "| psnr white 30 |" in printed
    assert "| warp white 30 |" in printed
    for run_of in ("none-1", "none-2", "teacher-1", "teacher-2"):
        assert (tmp_path / run_of / "pupil.safetensors").is_file()
    both = [(tmp_path / "lessons-none" / "000000.npz"), (tmp_path / "lessons-teacher/000000.npz")]
    alone, taught = (np.load(path) for path in both)
    np.testing.assert_array_equal(alone["noisy"], taught["noisy"])
    assert "taught" not in alone.files


def test_only_students_are_taught(teacher: Path, tmp_path: Path, capsys) -> None:
    assert run(tmp_path, "--teacher", str(teacher), "--model", "denoiser-tiny") == 2
    assert "is not a single-frame student" in capsys.readouterr().err


def test_lessons_of_two_kinds_are_not_mixed(tmp_path: Path, capsys) -> None:
    assert run(tmp_path, "--teacher", "none") == 0
    assert run(tmp_path, "--teacher", "none", "--patch", "48") == 2
    assert "made with other settings" in capsys.readouterr().err
