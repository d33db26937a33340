"""Put trained weights among those that come with restore: copy, describe, export to ONNX.

python experiments/publish.py runs/denoise/denoise.safetensors --data "what it saw" --terms "…"
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from restore.errors import RestoreError
from restore.export import export_onnx
from restore.weights import register


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Publish trained weights.")
    parser.add_argument("file", type=Path, help="safetensors file of a training run")
    parser.add_argument("--command", required=True, help="command that trained it")
    parser.add_argument("--data", required=True, help="what it was trained on")
    parser.add_argument("--terms", required=True, help="terms of that data")
    parser.add_argument("--replace", action="store_true", help="replace weights of that name")
    parser.add_argument("--no-onnx", action="store_true", help="publish PyTorch's file alone")
    args = parser.parse_args(argv)
    origin = {"command": args.command, "data": args.data, "terms": args.terms}
    try:
        entry = register(args.file, origin=origin, replace=args.replace)
        if args.no_onnx:
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{entry.name}.onnx"
            for size, worst in export_onnx(entry.name, path).items():
                print(f"{size}: differs from PyTorch by at most {worst:.1e}")
            register(path, replace=args.replace)
    except RestoreError as error:
        print(f"publish: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
