"""A built wheel, installed away from the checkout, carries the weights and restores a clip."""

import shutil
import sys
import sysconfig
import zipfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from outside import run

from restore import demo, weights

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = (
    "restore", "weights", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build from a copy, so that nothing is left in the checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--no-index", "--wheel-dir", source / "dist", source, cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """Install into an empty environment that borrows only the dependencies of this one."""
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", place / "env", cwd=place)
    python = place / "env" / "bin" / "python"
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place)
    # A .pth file in a folder that is itself borrowed is not read: an editable install stays out.
    borrowed = sysconfig.get_path("purelib")
    (Path(own.strip()) / "borrowed.pth").write_text(borrowed + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    run(*pip, "--no-index", wheel, cwd=place)
    return python


def test_wheel_carries_all_modules_and_weights(wheel):
    with zipfile.ZipFile(wheel) as opened:
        packed = set(opened.namelist())
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "restore").rglob("*.py")}
    files = {"manifest.json"} | {name for entry in weights.entries() for name in entry.files}
    assert modules | {"restore/py.typed"} <= packed
    assert {f"restore_weights/{name}" for name in files} <= packed
    assert not any(name.startswith(("tests/", "experiments/")) for name in packed)


def test_installed_package_is_found_with_its_weights(installed):
    code = (
        "import restore, restore.weights as w\n"
        "print(restore.__file__)\n"
        "print(*[w.find(e.name) for e in w.entries()], sep='\\n')\n"
    )
    place = installed.parents[2]
    found = run(installed, "-c", code, cwd=place).split()
    assert len(found) == 1 + len(weights.entries())
    assert all(Path(path).is_relative_to(place) for path in found)


def test_installed_command_restores_a_clip(installed, tmp_path):
    command = installed.parent / "restore-denoise"
    assert run(command, "--version", cwd=tmp_path).startswith("restore ")

    from restore.io import VideoReader, to_rgb
    from restore.metrics import psnr

    clean = list(islice(demo.sample(), 5))
    demo.write_clip(demo.add_noise(iter(clean)), tmp_path / "in.mkv")
    run(command, "in.mkv", "out.mkv", cwd=tmp_path)
    quality = []
    for name in ("in.mkv", "out.mkv"):
        with VideoReader(tmp_path / name) as reader:
            images = [np.clip(to_rgb(frame), 0, 1) for frame in reader]
        quality.append(np.mean([psnr(a, b) for a, b in zip(clean, images, strict=True)]))
    assert quality[1] > quality[0] + 2
