"""`restore-denoise IN OUT`: remove noise from a video, change nothing else."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys

from restore.cli.arguments import Parser, parser_of_files
from restore.cli.guard import guarded
from restore.cli.progress import ProgressDisplay
from restore.cli.restoring import restore_one, run
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
        "--report",
        metavar="FILE",
        help="write an HTML page to look at: before and after, what was removed, figures",
    )
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
    if args.report:
        if args.compare:
            parser.error("--report compares input and output itself: leave out --compare")
        if args.out_dir is not None:
            parser.error("--report is about one file: leave out --out-dir")
        if "-" in args.files:
            parser.error("--report reads both files again: a pipe cannot be read twice")
    command = shlex.join([PROG, *arguments])
    return run(parser, args, lambda args, prog: _denoise(args, prog, command))


def _denoise(args: argparse.Namespace, prog: str, command: str) -> int:
    if args.report:
        from restore.report import check_writable

        check_writable(args.report, overwrite=args.overwrite)
    restore_one(args, prog)
    if args.report:
        _write_report(args, command)
    return 0


def _write_report(args: argparse.Namespace, command: str) -> None:
    from restore.report import write_report

    write_report(
        args.report,
        *args.files,
        start=args.start,
        duration=args.duration,
        command=command,
        overwrite=args.overwrite,
    )
    if not (args.quiet or args.json):
        print(f"{args.report}: before and after, to look at", file=sys.stderr)


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
