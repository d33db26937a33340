"""Run a command as somebody outside the checkout would."""

import os
import subprocess
from pathlib import Path


def run(*command: str | Path, cwd: Path) -> str:
    """Return what the command prints; an exit code other than 0 fails the test."""
    clean = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
