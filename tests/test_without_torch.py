"""Where there is no PyTorch: nothing imports it, and a light environment gives the same picture."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from outside import run

from restore.export import export_onnx
from restore.io import VideoReader
from restore.models import MODELS
from restore.weights import save_model

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = (
    "restore", "weights", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md",
)  # fmt: skip
MEBIBYTES = 400
INSTALLER = ("pip", "setuptools", "pkg_resources", "_distutils_hack")

RUN = """
import json, pathlib, sys, time
began = time.monotonic()
from restore.pipeline import restore_video
def progress(done, expected):
    first.setdefault("first frame, s", round(time.monotonic() - began, 2))
first = {}
restore_video(sys.argv[1], sys.argv[2], model=sys.argv[3], progress=progress)
# Not getrusage's figure: that one starts from the parent's.
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").open())
first["peak MB"] = int(status["VmHWM"].split()[0]) // 1024
first["torch"] = "torch" in sys.modules
print(json.dumps(first))
"""


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """Weights of a small student, as safetensors and as ONNX."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "edge.safetensors"
    kind, config = MODELS["student-nano"]
    save_model(kind(**config), path, {"name": "edge", "model": "student-nano"})
    export_onnx(path, path.with_suffix(".onnx"))
    return path


def planes(path: Path) -> list[tuple[np.ndarray, ...]]:
    with VideoReader(path) as reader:
        return [frame.planes for frame in reader]


@pytest.mark.parametrize("options", ["--model edge.onnx", "--preset fast", "--runtime onnx"])
def test_an_onnx_run_never_imports_torch(student, odd_clip, tmp_path, options):
    shutil.copy(student.with_suffix(".onnx"), tmp_path)
    code = (
        "import sys; from restore.cli.denoise import main\n"
        "code = main(sys.argv[1:])\n"
        "heavy = {'torch', 'torchvision', 'kornia', 'lpips', 'safetensors', 'skimage'}\n"
        "print(code, *sorted(heavy & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, str(odd_clip), "out.mkv", *options.split()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "0\n", done.stdout + done.stderr
    assert len(planes(tmp_path / "out.mkv")) == 12


@pytest.fixture(scope="module")
def light(tmp_path_factory) -> Path:
    """Follow the instructions of requirements-edge.txt in an environment of its own."""
    place = tmp_path_factory.mktemp("light")
    source = place / "source"
    source.mkdir()
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "venv", "edge", cwd=place)
    pip = ("edge/bin/pip", "install", "--quiet", "--no-compile")
    if subprocess.run([*pip, "-r", str(ROOT / "requirements-edge.txt")], cwd=place).returncode:
        pytest.skip("no package index to install the light environment from")
    run(*pip, "--no-deps", "./source", cwd=place)
    for path in place.glob("edge/lib/python3*/site-packages/restore_weights/*.safetensors"):
        path.unlink()
    return place


@pytest.mark.slow
def test_the_light_environment_is_small(light):
    (packages,) = (light / "edge" / "lib").glob("python*/site-packages")
    sizes: dict[str, int] = {}
    for path in packages.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            top = path.relative_to(packages).parts[0]
            sizes[top] = sizes.get(top, 0) + path.stat().st_size
    assert not [name for name in sizes if name.startswith(("torch", "nvidia", "scipy"))]
    total = sum(size for name, size in sizes.items() if not name.startswith(INSTALLER)) / 2**20
    print(f"light environment: {total:.0f} MiB, {sum(sizes.values()) / 2**20:.0f} MiB with pip")
    assert total < MEBIBYTES


@pytest.mark.slow
def test_the_light_environment_restores_as_pytorch_does(light, student, make_clip):
    source = make_clip("noisy.mkv", size=(426, 240), frames=6, codec="ffv1")
    out = light / "light.mkv"
    told = run("edge/bin/python", "-c", RUN, source, out, student.with_suffix(".onnx"), cwd=light)
    measured = json.loads(told)
    print(f"light environment: {measured}")
    assert measured["torch"] is False
    assert measured["peak MB"] < 500
    command = light / "edge" / "bin" / "restore-denoise"
    assert run(command, "--version", cwd=light).startswith("restore ")

    own = light / "torch.mkv"
    code = "import sys; from restore.cli.denoise import main; sys.exit(main(sys.argv[1:]))"
    run(sys.executable, "-c", code, source, own, "--model", student, "--runtime", "torch", cwd=ROOT)
    for a, b in zip(planes(out), planes(own), strict=True):
        for one, other in zip(a, b, strict=True):
            assert np.abs(one.astype(int) - other).max() <= 1
