"""`restore-denoise IN OUT`: remove noise from a video, change nothing else."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys

from restore.cli.arguments import Parser, add_encoding, add_restoring, add_running, add_selecting
from restore.cli.guard import guarded
from restore.cli.progress import ProgressDisplay, as_clock
from restore.cli.versions import told_instead

PROG = "restore-denoise"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = Parser(
        prog=PROG,
        usage="%(prog)s IN OUT [options]\n       %(prog)s --demo [FOLDER]",
        description="Remove noise from a video; sound, timestamps and everything else stay.",
    )
    parser.add_argument("source", metavar="IN", nargs="?", help="video, picture, frames/%%05d.png")
    parser.add_argument("target", metavar="OUT", nargs="?", help="file to write")
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
    args = parser.parse_args(arguments)
    told = told_instead(args)
    if told is not None:
        return guarded(PROG, told, traceback=args.traceback)
    if args.demo is not None:
        if args.source is not None:
            parser.error("--demo brings its own sample: give no files")
        return guarded(PROG, lambda: _demo(args), traceback=args.traceback)
    if args.target is None:
        parser.error("needs two files, IN and OUT")
    if args.report and args.compare:
        parser.error("--report compares input and output itself: leave out --compare")
    command = shlex.join([PROG, *arguments])
    return guarded(PROG, lambda: _denoise(args, command), traceback=args.traceback)


def _denoise(args: argparse.Namespace, command: str) -> int:
    from restore.pipeline import restore_video

    if args.report:
        from restore.report import check_writable

        check_writable(args.report, overwrite=args.overwrite)
    with ProgressDisplay(quiet=args.quiet or args.json) as progress:
        summary = restore_video(
            args.source,
            args.target,
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
            progress=progress,
        )
    if args.json:
        print(json.dumps(dataclasses.asdict(summary), default=str))
    elif not args.quiet:
        for note in summary.notes:
            print(f"{PROG}: {note}", file=sys.stderr)
        rate = (summary.frames - summary.resumed) / max(summary.seconds, 1e-3)
        took = f"{as_clock(summary.seconds)} ({rate:.3g} fps)"
        print(f"{args.target}: {summary.frames} frames in {took}", file=sys.stderr)
    if args.report:
        _write_report(args, command)
    return 0


def _write_report(args: argparse.Namespace, command: str) -> None:
    from restore.report import write_report

    write_report(
        args.report,
        args.source,
        args.target,
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
