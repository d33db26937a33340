"""Build the page that denoises in the browser: vendor ONNX Runtime, add a model and a sample.

    python experiments/web/build.py edge --out experiments/web/build
    python experiments/web/build.py edge.onnx --out experiments/web/build --serve 8000

The result is static: any web server will do. ONNX Runtime comes from npm, once, and is kept in the
folder. `--serve` looks after the headers with which a browser allows several threads.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import cv2
import numpy as np

from restore.demo import add_noise, sample
from restore.engine import load_engine
from restore.errors import RestoreError, UsageError
from restore.weights import find

HERE = Path(__file__).resolve().parent
PAGE = ("index.html", "style.css", "app.js", "reading.js", "network.js", "worker.js")
RUNTIME = "onnxruntime-web@1.30.0"
VENDORED = (
    "ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm",
)  # fmt: skip
ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


def build(model: str, out: Path) -> None:
    """Write the page to a folder.

    Args:
        model: Name of a single-frame model, or an .onnx file.
        out: Folder; made if need be.

    Raises:
        UsageError: If the model is no single-frame one, or npm cannot be used.
        WeightsError: If there is no such model.
    """
    path = find(model, ".onnx")
    if not load_engine(path, runtime="onnx", threads=1).single:
        raise UsageError(f"{model}: looks at several frames; the page runs single-frame models")
    out.mkdir(parents=True, exist_ok=True)
    for name in PAGE:
        shutil.copy(HERE / name, out)
    shutil.copy(path, out / "model.onnx")
    clip = [*sample()]
    (noisy,) = add_noise(iter(clip[12:13]), seed=12)
    cv2.imwrite(str(out / "sample.png"), np.rint(noisy[..., ::-1] * 255).astype(np.uint8))
    vendor(out / "ort")


def vendor(folder: Path) -> None:
    """Fetch ONNX Runtime for browsers from npm, unless it is there already.

    Raises:
        UsageError: If npm is missing or fails.
    """
    if all((folder / name).is_file() for name in VENDORED):
        return
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError("building the page needs npm (Debian, Ubuntu: apt install npm)")
    with tempfile.TemporaryDirectory() as place:
        command = [npm, "pack", "--silent", "--pack-destination", place, RUNTIME]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        packages = list(Path(place).glob("*.tgz"))
        if done.returncode or not packages:
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise UsageError(f"npm cannot fetch {RUNTIME}: {reason[0] if reason else 'no answer'}")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(packages[0]) as package:
            for name in VENDORED:
                content = package.extractfile(f"package/dist/{name}")
                assert content is not None, name
                (folder / name).write_bytes(content.read())


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the page, isolated from other origins, and says nothing."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self) -> None:
        """Add the headers that several threads need."""
        for key, value in ISOLATION.items():
            self.send_header(key, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal quiet."""


def server(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """Return a server of a built page on this machine; port 0 takes a free one."""
    handler = functools.partial(Handler, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Build the page that denoises in the browser.")
    parser.add_argument("model", help="name of a single-frame model, or an .onnx file")
    parser.add_argument("--out", type=Path, default=HERE / "build", help="folder to write")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve it, too")
    args = parser.parse_args(argv)
    try:
        build(args.model, args.out)
    except RestoreError as error:
        print(f"build: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{args.out}: serve this folder, for example with python -m http.server -d {args.out}")
    if args.serve is not None:
        with server(args.out, args.serve) as running:
            print(f"http://127.0.0.1:{running.server_port}/ (Ctrl-C stops)")
            try:
                running.serve_forever()
            except KeyboardInterrupt:
                print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
