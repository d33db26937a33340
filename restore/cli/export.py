"""`restore-export NAME --out FILE`: write a model for runtimes other than PyTorch."""

from __future__ import annotations

from pathlib import Path

from restore.cli.arguments import Parser
from restore.cli.guard import guarded

PROG = "restore-export"


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(
        prog=PROG, description="Write a model for ONNX Runtime, OpenVINO, browsers or PyTorch."
    )
    parser.add_argument("model", metavar="NAME", help="model, or a .safetensors file")
    parser.add_argument(
        "--out", metavar="FILE", required=True, type=Path, help=".onnx, or .pt2 for PyTorch"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--fp16", action="store_true", help="store the weights in 16 bits")
    form.add_argument("--int8", action="store_true", help="compute in 8 bits (single-frame models)")
    parser.add_argument(
        "--calibrate",
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="clips or pictures to calibrate 8 bits with (default: built-in photographs)",
    )
    parser.add_argument("--check", action="store_true", help="measure the time a frame takes, too")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code.

    Args:
        argv: Arguments; default: those of the process.
    """
    args = make_parser().parse_args(argv)
    precision = "int8" if args.int8 else "fp16" if args.fp16 else "fp32"
    return guarded(
        PROG,
        lambda: _export(
            args.model,
            args.out,
            precision=precision,
            calibrate=args.calibrate,
            measured=args.check,
            overwrite=args.overwrite,
        ),
        traceback=args.traceback,
    )


def _export(
    name: str, out: Path, *, precision: str, calibrate: list[str], measured: bool, overwrite: bool
) -> int:
    from restore.errors import OutputError, UsageError
    from restore.export import export_onnx, export_program, latency
    from restore.weights import load_model

    if out.exists() and not overwrite:
        raise OutputError(f"{out}: exists; replace it with --overwrite")
    if not out.parent.is_dir():
        raise OutputError(f"{out.parent}: no such folder")
    if out.suffix.lower() == ".pt2":
        if precision != "fp32" or measured:
            raise UsageError(f"{out}: --fp16, --int8 and --check are for .onnx files")
        found = export_program(name, out)
    else:
        sources = []
        if calibrate:
            from restore.data import find_sources

            sources = find_sources(calibrate)
        found = export_onnx(name, out, precision=precision, calibration=sources)
    print(f"{out}: {out.stat().st_size / 1024:.0f} KiB")
    for what, value in found.items():
        unit = "" if "PSNR" in what or "dB" in what else "largest difference from PyTorch at "
        print(f"  {unit}{what}: {value:.3g}" if unit else f"  {what}: {value:.2f}")
    if measured:
        for what, seconds in latency(load_model(name)[0], out.read_bytes()).items():
            print(f"  {what}, one thread: {1000 * seconds:.0f} ms a frame")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
