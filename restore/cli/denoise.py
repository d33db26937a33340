"""`restore-denoise IN OUT`: remove noise from a video, change nothing else."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from restore.cli.arguments import Parser, parser_of_files
from restore.cli.guard import guarded
from restore.cli.progress import ProgressDisplay
from restore.cli.restoring import run
from restore.cli.versions import told_instead

PROG = "restore-denoise"


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = parser_of_files(
        PROG,
        "%(prog)s IN OUT [options]\n       %(prog)s IN... --out-dir FOLDER [options]\n"
        "       %(prog)s --demo [FOLDER]",
        "Remove noise from a video; sound, timestamps and everything else stay.",
    )
    parser.set_defaults(scale=1, denoise=False)
    parser.add_argument(
        "--demo",
        nargs="?",
        const="demo",
        metavar="FOLDER",
        help="restore a built-in noisy sample into FOLDER (default: demo)",
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; default: those of the process.

    Returns:
        Exit code: 0, or that of the error (see `restore.errors`).
    """
    parser = make_parser()
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = parser.parse_files(arguments)
    if args.demo is not None:
        if args.files:
            parser.error("--demo brings its own sample: give no files")
        work = told_instead(args) or (lambda: _demo(args))
        return guarded(PROG, work, traceback=args.traceback)
    return run(parser, args, arguments)


def _demo(args: argparse.Namespace) -> int:
    from restore.demo import run_demo

    with ProgressDisplay(quiet=args.quiet or args.json) as progress:
        result = run_demo(
            args.demo, preset=args.preset, model=args.model, sigma=args.sigma, progress=progress
        )
    if args.json:
        print(json.dumps(dataclasses.asdict(result), default=str))
    else:
        print(f"PSNR before: {result.psnr_before:.2f} dB")
        print(f"PSNR after:  {result.psnr_after:.2f} dB")
        print(f"Before and after, side by side: {result.picture}")
        print(f"The clips: {result.noisy}, {result.restored}, {result.clean}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
