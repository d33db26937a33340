"""`restore-evaluate REFERENCE OUTPUT…`: say, and show, whether a restoration is good."""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence

import restore
from restore.cli.arguments import Parser
from restore.cli.guard import guarded
from restore.errors import UsageError
from restore.metrics.evaluate import evaluate, evaluate_blind
from restore.metrics.matching import ALIGNMENTS
from restore.report import check_writable, render_report
from restore.report.figures import as_csv, as_json, text_table

PROG = "restore-evaluate"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Parser(
        prog=PROG,
        description="Compare videos with a clean reference, or, with --no-reference, restored "
        "videos with their noisy input. Anything FFmpeg reads, image folders and patterns too.",
    )
    parser.add_argument("reference", metavar="REFERENCE", help="clean video (or the noisy input)")
    parser.add_argument("outputs", metavar="OUTPUT", nargs="+", help="videos to judge")
    parser.add_argument(
        "--no-reference",
        dest="blind",
        action="store_true",
        help="REFERENCE is the noisy input: measure what was removed",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON: mean and every frame")
    form.add_argument("--csv", action="store_true", help="print CSV: one line a frame")
    parser.add_argument("--html", metavar="FILE", help="write a report to look at")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing report")
    parser.add_argument(
        "--align",
        choices=ALIGNMENTS,
        default="pts",
        help="bring frames together by timestamp (default) or by number",
    )
    parser.add_argument("--start", type=float, metavar="S", help="skip S seconds of REFERENCE")
    parser.add_argument("--duration", type=float, metavar="S", help="use S seconds of REFERENCE")
    parser.add_argument(
        "--every",
        type=int,
        metavar="N",
        help="examine motion and spectrum every N frames (default: about 40 times a clip)",
    )
    parser.add_argument(
        "--lpips",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="perceptual distance (default: if its network is installed)",
    )
    parser.add_argument("--version", action="version", version=f"restore {restore.__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = build_parser().parse_args(arguments)
    return guarded(PROG, lambda: _run(options, shlex.join([PROG, *arguments])))


def _run(options: argparse.Namespace, command: str) -> int:
    if options.every is not None and options.every < 1:
        raise UsageError("--every: must be 1 or more")
    if options.blind and options.lpips:
        raise UsageError("--lpips: needs a reference; leave out --no-reference")
    if options.html:
        check_writable(options.html, overwrite=options.overwrite)
    common = {
        "align": options.align,
        "every": options.every,
        "start": options.start,
        "duration": options.duration,
        "progress": _progress if sys.stderr.isatty() else None,
    }
    if options.blind:
        results = evaluate_blind(options.reference, options.outputs, **common)
    else:
        results = evaluate(options.reference, options.outputs, lpips=options.lpips, **common)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if options.html:
        render_report(options.html, results, command=command, overwrite=options.overwrite)
    if options.json:
        found = [as_json(result) for result in results]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=1))
    elif options.csv:
        print(as_csv(results), end="")
    else:
        print(text_table(results))
    return 0


def _progress(done: int, total: int | None) -> None:
    end = f" of about {total}" if total else ""
    print(f"\rframe {done}{end}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
