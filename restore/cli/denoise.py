"""`restore-denoise IN OUT`: remove noise from a video, change nothing else."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys

from restore.cli.arguments import (
    EXIT_CODES,
    Parser,
    add_encoding,
    add_restoring,
    add_running,
    add_selecting,
)
from restore.cli.guard import guarded
from restore.cli.progress import ProgressDisplay
from restore.cli.restoring import restore_all, restore_one
from restore.cli.versions import told_instead

PROG = "restore-denoise"


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(
        prog=PROG,
        usage="%(prog)s IN OUT [options]\n       %(prog)s IN... --out-dir FOLDER [options]\n"
        "       %(prog)s --demo [FOLDER]",
        description="Remove noise from a video; sound, timestamps and everything else stay.",
        epilog=EXIT_CODES,
    )
    parser.add_argument(
        "files",
        metavar="IN OUT",
        nargs="*",
        help="video, picture, frames/%%05d.png, or - for y4m through a pipe; with --out-dir any"
        " number of inputs, folders and patterns",
    )
    add_restoring(parser)
    add_selecting(parser)
    add_encoding(parser)
    add_running(parser)
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
    told = told_instead(args)
    if told is not None:
        return guarded(PROG, told, traceback=args.traceback)
    if args.demo is not None:
        if args.files:
            parser.error("--demo brings its own sample: give no files")
        return guarded(PROG, lambda: _demo(args), traceback=args.traceback)
    if args.report and args.compare:
        parser.error("--report compares input and output itself: leave out --compare")
    if args.out_dir is not None:
        if not args.files or args.report:
            parser.error("--out-dir needs one input or more and writes no --report")
        return guarded(PROG, lambda: restore_all(args, PROG), traceback=args.traceback)
    if len(args.files) != 2:
        parser.error("needs two files, IN and OUT, or --out-dir FOLDER")
    if args.report and "-" in args.files:
        parser.error("--report reads both files again: a pipe cannot be read twice")
    command = shlex.join([PROG, *arguments])
    return guarded(PROG, lambda: _denoise(args, command), traceback=args.traceback)


def _denoise(args: argparse.Namespace, command: str) -> int:
    if args.report:
        from restore.report import check_writable

        check_writable(args.report, overwrite=args.overwrite)
    restore_one(args, PROG)
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
