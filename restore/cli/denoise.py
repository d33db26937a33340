"""`restore-denoise IN OUT`: remove noise from a video, change nothing else."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from restore.cli.arguments import (
    EXIT_CODES,
    Parser,
    add_encoding,
    add_restoring,
    add_running,
    add_selecting,
)
from restore.cli.batch import find_inputs, plan_outputs, run_batch
from restore.cli.guard import guarded
from restore.cli.progress import ProgressDisplay, as_clock
from restore.cli.versions import told_instead

if TYPE_CHECKING:
    from restore.pipeline import Summary

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
        return guarded(PROG, lambda: _denoise_all(args), traceback=args.traceback)
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
    source, target = args.files
    summary = _restore(args, source, target)
    if args.json:
        _print_json(dataclasses.asdict(summary), sys.stderr if target == "-" else sys.stdout)
    if args.report:
        _write_report(args, command)
    return 0


def _denoise_all(args: argparse.Namespace) -> int:
    folder = Path(args.out_dir)
    plan = plan_outputs(find_inputs(args.files), folder)
    code = run_batch(
        plan,
        folder,
        lambda source, target: _restore(args, str(source), str(target)).frames,
        time.monotonic,
        overwrite=args.overwrite,
        quiet=args.quiet or args.json,
    )
    if args.json:
        _print_json([dataclasses.asdict(item) for item in plan], sys.stdout)
    return code


def _print_json(value: Any, stream: TextIO) -> None:
    print(json.dumps(value, default=str), file=stream)


def _restore(args: argparse.Namespace, source: str, target: str) -> Summary:
    """Restore one file, show progress and tell what there is to tell."""
    from restore.pipeline import restore_video

    with ProgressDisplay(quiet=args.quiet or args.json) as progress:
        summary = restore_video(
            source,
            target,
            preset=args.preset,
            model=args.model,
            sigma=args.sigma,
            strength=args.strength,
            luma=args.luma,
            chroma=args.chroma,
            start=args.start,
            duration=args.duration,
            compare=args.compare,
            overwrite=args.overwrite,
            resume=args.resume,
            segment=args.segment,
            codec=args.codec,
            crf=args.crf,
            pix_fmt=args.pix_fmt,
            encoder_options=dict(args.encoder_options),
            device=args.device,
            runtime=args.runtime,
            tile=args.tile,
            input_matrix=args.input_matrix,
            deinterlace=args.deinterlace,
            leave_out=args.leave_out,
            strict=args.strict,
            max_pixels=args.max_pixels,
            progress=progress,
        )
    if not (args.quiet or args.json):
        lost = f"{summary.damaged} damaged packets or pictures: lost, or restored as they are"
        for note in [*summary.notes, *([lost] if summary.damaged else [])]:
            print(f"{PROG}: {note}", file=sys.stderr)
        rate = (summary.frames - summary.resumed) / max(summary.seconds, 1e-3)
        took = f"{as_clock(summary.seconds)} ({rate:.3g} fps)"
        print(f"{target}: {summary.frames} frames in {took}", file=sys.stderr)
    return summary


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
