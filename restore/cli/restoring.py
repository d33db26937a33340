"""Restore files as the arguments say: what the commands that write videos have in common."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from restore.cli.allocator import keep_memory
from restore.cli.arguments import Parser
from restore.cli.batch import find_inputs, plan_outputs, run_batch
from restore.cli.guard import guarded
from restore.cli.progress import ProgressDisplay, as_clock
from restore.cli.versions import told_instead

if TYPE_CHECKING:
    from restore.pipeline import Summary


def run(parser: Parser, args: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Do what the arguments say; returns the exit code.

    Args:
        parser: The command's parser, which reports what does not fit together.
        args: What it read.
        arguments: What it read it from; shown in a report.
    """
    if args.report:
        _check_report(parser, args)
    keep_memory()
    prog = parser.prog
    work = told_instead(args)
    if work is None and args.out_dir is not None:
        if not args.files:
            parser.error("--out-dir needs one input or more")
        work = partial(restore_all, args, prog)
    elif work is None:
        if len(args.files) != 2:
            parser.error("needs two files, IN and OUT, or --out-dir FOLDER")
        work = partial(restore_one, args, prog, shlex.join([prog, *arguments]))
    return guarded(prog, work, traceback=args.traceback)


def _check_report(parser: Parser, args: argparse.Namespace) -> None:
    if args.compare:
        parser.error("--report compares input and output itself: leave out --compare")
    if args.out_dir is not None:
        parser.error("--report is about one file: leave out --out-dir")
    if "-" in args.files:
        parser.error("--report reads both files again: a pipe cannot be read twice")


def restore_one(args: argparse.Namespace, prog: str, command: str) -> int:
    """Restore the one file of the arguments, report it if asked; returns the exit code."""
    source, target = args.files
    if args.report:
        from restore.report import check_writable

        check_writable(args.report, overwrite=args.overwrite)
    summary = restore_file(args, source, target, prog)
    if args.json:
        _print_json(dataclasses.asdict(summary), sys.stderr if target == "-" else sys.stdout)
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


def restore_all(args: argparse.Namespace, prog: str) -> int:
    """Restore many files into the folder of the arguments; returns the exit code."""
    folder = Path(args.out_dir)
    plan = plan_outputs(find_inputs(args.files), folder)
    code = run_batch(
        plan,
        folder,
        lambda source, target: restore_file(args, str(source), str(target), prog).frames,
        time.monotonic,
        overwrite=args.overwrite,
        quiet=args.quiet or args.json,
    )
    if args.json:
        _print_json([dataclasses.asdict(item) for item in plan], sys.stdout)
    return code


def _print_json(value: Any, stream: TextIO) -> None:
    print(json.dumps(value, default=str), file=stream)


def restore_file(args: argparse.Namespace, source: str, target: str, prog: str) -> Summary:
    """Restore one file, show progress and tell what there is to tell."""
    from restore.pipeline import restore_video

    with ProgressDisplay(quiet=args.quiet or args.json) as progress:
        summary = restore_video(
            source,
            target,
            scale=args.scale,
            denoise=args.denoise,
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
            print(f"{prog}: {note}", file=sys.stderr)
        rate = (summary.frames - summary.resumed) / max(summary.seconds, 1e-3)
        took = f"{as_clock(summary.seconds)} ({rate:.3g} fps)"
        print(f"{target}: {summary.frames} frames in {took}{_noise(summary)}", file=sys.stderr)
    return summary


def _noise(summary: Summary) -> str:
    """Say what noise was found, in 0-255 units."""
    if not summary.sigma:
        return ""
    low, high = (f"{level:.2g}" for level in (min(summary.sigma), max(summary.sigma)))
    return f", noise {low} of 255" if low == high else f", noise {low} to {high} of 255"
