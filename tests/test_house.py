"""The house: what ships, what imports what, what no file may hold."""

import ast
import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "restore").rglob("*.py"))
MAY_IMPORT_TORCH = {"models", "losses.py", "training", "export"}


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg")
    return parser


def imported(path: Path, *, everywhere: bool) -> set[str]:
    """Names of the top-level packages a file imports, within functions too if asked."""
    names = set()
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if everywhere else iter(tree.body)
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_every_package_is_listed_for_the_wheel():
    listed = set(settings()["options"]["packages"].split())
    packages = {".".join(path.parent.relative_to(ROOT).parts) for path in SOURCES}
    assert packages | {"restore_weights"} == listed


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_file_keeps_the_rules(path):
    where = path.relative_to(ROOT / "restore").parts
    if where[0] != "io":
        assert "av" not in imported(path, everywhere=True), "codecs are opened in restore.io only"
    if where[0] not in MAY_IMPORT_TORCH:
        assert "torch" not in imported(path, everywhere=False), "import torch inside functions"
    assert "experiments" not in imported(path, everywhere=True)
    text = path.read_text()
    assert text.count("\n") <= 300, "over 300 lines: split it"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            documented = ast.get_docstring(node)
            lines -= documented.count("\n") + 1 if documented else 0
            assert lines <= 60, f"{node.name} has over 60 lines: split it"
    assert path.name not in {"utils.py", "helpers.py", "misc.py", "common.py"}
    assert not re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", text)


def test_importing_restore_is_light():
    code = (
        "import sys, restore, restore.cli.denoise, restore.weights\n"
        "heavy = {'torch', 'av', 'cv2', 'numpy', 'onnxruntime', 'tqdm'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_is_a_pickle_or_names_a_machine():
    places = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/\w")
    for path in tracked():
        assert path.suffix not in {".pth", ".pt", ".ckpt", ".pkl", ".pickle"}, path
        if path.suffix in {".py", ".md", ".cfg", ".toml", ".json", ""} and path != Path(__file__):
            found = places.search(path.read_text(errors="ignore"))
            assert not found, f"{path.relative_to(ROOT)} names a place on one machine: {found}"


def test_versions_agree():
    from restore import __version__

    assert settings()["metadata"]["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_continuous_integration_runs_the_makefile():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == ["make test"]
    listed = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True).stdout
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports", "pytest"):
        assert tool in listed
