"""The real console command: errors, versions, the list of models, broken pipes."""

import os
import re
import subprocess
import sys

import pytest

from restore import __version__
from restore.cli import system
from restore.cli.guard import guarded
from restore.errors import InputError, OutputError, UsageError, WeightsError

OPTIONS = {
    *("preset", "model", "sigma", "strength", "luma", "chroma", "input-matrix"),
    *("start", "duration", "compare", "overwrite", "codec", "crf", "pix-fmt", "enc"),
    *("deinterlace", "no-audio", "no-subs", "out-dir", "strict", "max-pixels"),
    *("device", "runtime", "tile", "json", "quiet", "list-models", "version", "demo", "report"),
}


def run(*argv: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "restore.cli.denoise", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_version_names_everything_without_loading_torch():
    code = (
        "import sys\n"
        "from restore.cli.denoise import main\n"
        "try:\n    main(['--version'])\n"
        "finally:\n    print('torch' in sys.modules)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert told.startswith(f"restore {__version__}\n")
    for name in ("python", "torch", "av", "libavcodec"):
        assert re.search(rf"{name} \d+\.\d+", told), name
    assert told.endswith("False\n")


def test_list_models_names_every_known_one():
    from restore.weights import entries

    done = run("--list-models")
    assert done.returncode == 0
    for entry in entries():
        assert re.search(rf"^{re.escape(entry.name)} ", done.stdout, re.M)


def test_help_is_quick_and_complete():
    done = run("--help")
    assert done.returncode == 0
    listed = set(re.findall(r"--([a-z-]+)", done.stdout))
    assert listed >= OPTIONS
    assert "--traceback" not in done.stdout
    told = " ".join(done.stdout.split())
    assert "exit codes: 0 done, 2 wrong option, 3 input" in told


def test_a_reader_that_has_gone_is_no_crash():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "restore.cli.denoise", "--list-models"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == ""


def raising(error):
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (UsageError("--crf: no."), 2, "x: --crf: no.\n"),
        (InputError("a.mp4: no picture.\nTry another."), 3, "x: a.mp4: no picture. Try another.\n"),
        (OutputError("b.mp4: exists."), 4, "x: b.mp4: exists.\n"),
        (KeyboardInterrupt(), 5, "x: stopped before the end.\n"),
        (WeightsError("c: damaged."), 6, "x: c: damaged.\n"),
        (ImportError("no module named x"), 1, "x: no module named x. Install restore again.\n"),
        (
            ImportError("libGL.so.1: cannot open shared object file: No such file or directory"),
            1,
            "x: OpenCV needs libGL.so.1, which this system lacks. "
            "Debian, Ubuntu: apt install libgl1\n",
        ),
    ],
)
def test_errors_take_one_line_and_their_exit_code(error, code, told, capsys, monkeypatch):
    monkeypatch.delenv("RESTORE_DEBUG", raising=False)
    assert guarded("x", raising(error)) == code
    assert capsys.readouterr().err == told


def test_developers_see_the_traceback(monkeypatch):
    with pytest.raises(ZeroDivisionError):
        guarded("x", raising(ZeroDivisionError()), traceback=True)
    monkeypatch.setenv("RESTORE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        guarded("x", raising(ZeroDivisionError()))


def test_a_bug_is_told_in_one_line(capsys, monkeypatch):
    monkeypatch.delenv("RESTORE_DEBUG", raising=False)
    assert guarded("x", raising(ZeroDivisionError("by\nzero"))) == 1
    told = capsys.readouterr().err
    assert told.startswith("x: unexpected ZeroDivisionError: by zero.")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("libgthread-2.0.so.0: cannot open shared object file", "apt install libglib2.0-0t64"),
        ("libXext.so.6: cannot open shared object file", "apt install libxext6"),
        ("libnew.so.3: cannot open shared object file", "needs libnew.so.3"),
    ],
)
def test_missing_system_library(error, told):
    assert told in system.missing_library_hint(error)


def test_other_reasons_are_passed_on():
    told = system.missing_library_hint("numpy is too old")
    assert told == "numpy is too old. Install restore again."
