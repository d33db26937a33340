"""What `--version` and `--list-models` print."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from restore import __version__

# Asked from the installation records, so that no heavy package is imported.
_PACKAGES = (
    "torch",
    "torchvision",
    "opencv-python",
    "opencv-python-headless",
    "onnxruntime",
    "openvino",
    "av",
)


def version_lines() -> list[str]:
    """Return a line for each of restore, Python, the packages installed and FFmpeg's libraries."""
    from restore.io.libraries import ffmpeg_libraries

    lines = [
        f"restore {__version__}",
        f"python {platform.python_version()} ({platform.platform()})",
    ]
    for name in _PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    lines.append("FFmpeg " + ", ".join(f"{n} {v}" for n, v in ffmpeg_libraries().items()))
    return lines


def model_lines() -> list[str]:
    """Return a line for each of the known weights: name, network, kinds of file, scores."""
    from restore.weights import entries

    known = entries()
    width = max((len(entry.name) for entry in known), default=0)
    lines = []
    for entry in known:
        kinds = "+".join(sorted(name.rpartition(".")[2] for name in entry.files))
        scores = entry.origin.get("scores", {})
        told = ", ".join(f"{key} {value}" for key, value in scores.items())
        lines.append(f"{entry.name:{width}}  {entry.model}  {kinds}  {told}".rstrip())
    return lines or ["no weights are installed"]


def told_instead(args: argparse.Namespace) -> Callable[[], int] | None:
    """Return what prints the answer to `--version` or `--list-models`; None without them."""
    lines = version_lines if args.version else model_lines if args.list_models else None
    if lines is None:
        return None

    def tell() -> int:
        print("\n".join(lines()))
        return 0

    return tell
