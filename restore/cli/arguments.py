"""Option groups and argument types that the commands share."""

from __future__ import annotations

import argparse
import os
import re
from fractions import Fraction
from typing import NoReturn

PRESETS = ("fast", "balanced", "best")
DEINTERLACE = ("auto", "off", "on")
RUNTIMES = ("auto", "onnx", "openvino", "torch")

_CLOCK = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d*)?|\.\d+)")
_SMALLEST_TILE = 64


EXIT_CODES = (
    "exit codes: 0 done, 2 wrong option, 3 input cannot be read, 4 output cannot be written,"
    " 5 stopped, 6 weights, 1 anything else; after --out-dir that of the failed files"
)


class Parser(argparse.ArgumentParser):
    """Parser that reports a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the mistake and leave with exit code 2."""
        if message.startswith("unrecognized") and any(map(os.path.exists, message.split())):
            message += "; names that begin with a dash go after --"
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")

    def parse_files(self, argv: list[str]) -> argparse.Namespace:
        """Parse options and `files` in any order; after `--` everything is a file, dashes too."""
        end = argv.index("--") if "--" in argv else len(argv)
        args = self.parse_intermixed_args(argv[:end])
        args.files = [*args.files, *argv[end + 1 :]]
        return args


def clock(text: str) -> Fraction:
    """Read a time as 80, 80.5, 1:20 or 0:01:20.5; exact seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"cannot read the time '{text}': give 80, 1:20 or 0:01:20.5"
        )
    hours, minutes, seconds = match.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + Fraction(seconds)


def length(text: str) -> Fraction:
    """Read a time above 0."""
    seconds = clock(text)
    if not seconds:
        raise argparse.ArgumentTypeError("must be above 0")
    return seconds


def sigma(text: str) -> float | None:
    """Read a noise level in 0-255 units, or auto.

    Returns:
        The noise level in [0, 1] units; None for auto.
    """
    return None if text == "auto" else _number(text, 0, 255, "auto or a number") / 255


def factor(text: str) -> float:
    """Read a factor of the change made to the picture, 0 to 2."""
    return _number(text, 0, 2, "a number")


def quality(text: str) -> float:
    """Read a constant rate factor."""
    return _number(text, 0, 63, "a number")


def tile(text: str) -> int:
    """Read the side of a tile in pixels."""
    if not text.isdecimal() or int(text) < _SMALLEST_TILE:
        raise argparse.ArgumentTypeError(f"must be a whole number, {_SMALLEST_TILE} or more")
    return int(text)


def whole(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
    return int(text)


def key_value(text: str) -> tuple[str, str]:
    """Read an option of the encoder, key=value."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"cannot read '{text}': give key=value")
    return key, value


def _number(text: str, low: float, high: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"must be {what} from {low} to {high}, not '{text}'")
    return number


def parser_of_files(prog: str, usage: str, description: str) -> Parser:
    """Return a parser with what the commands that write videos share.

    Args:
        prog: Name of the command.
        usage: Its ways to be called, one a line.
        description: One sentence.
    """
    parser = Parser(prog=prog, usage=usage, description=description, epilog=EXIT_CODES)
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
    return parser


def add_restoring(parser: argparse.ArgumentParser) -> None:
    """Add the options about what is done to the picture."""
    group = parser.add_argument_group("restoring")
    group.add_argument(
        "--preset",
        choices=PRESETS,
        default="balanced",
        help="quality against time (default: %(default)s)",
    )
    group.add_argument("--model", metavar="NAME|FILE", help="weights, instead of the preset's")
    group.add_argument(
        "--sigma",
        type=sigma,
        metavar="auto|N",
        help="noise level in 0-255 units (default: auto, measured in every shot)",
    )
    for name, what in (("strength", "all of it"), ("luma", "brightness"), ("chroma", "colour")):
        group.add_argument(
            f"--{name}",
            type=factor,
            default=1.0,
            metavar="X",
            help=f"factor of the change, {what}: 0 changes nothing, 1 is the model's answer",
        )
    group.add_argument(
        "--deinterlace",
        choices=DEINTERLACE,
        default="auto",
        help="interlaced pictures become progressive ones, one for one: those that say that they"
        " are, none, or all (default: %(default)s)",
    )
    group.add_argument(
        "--input-matrix",
        metavar="MATRIX",
        help="colour matrix of the input where its tag is missing or wrong: bt601, bt709, bt2020",
    )


def add_selecting(parser: argparse.ArgumentParser) -> None:
    """Add the options about which part is restored and how it is shown."""
    group = parser.add_argument_group("part and preview")
    group.add_argument(
        "--start", type=clock, metavar="TIME", help="begin there: 80, 1:20, 0:01:20.5"
    )
    group.add_argument("--duration", type=length, metavar="TIME", help="length of the part")
    group.add_argument(
        "--compare", action="store_true", help="before and after side by side, to look at"
    )
    group.add_argument(
        "--report",
        metavar="FILE",
        help="write an HTML page to look at: before and after, what was removed, figures",
    )


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add the options about the output file."""
    group = parser.add_argument_group("output file")
    group.add_argument(
        "--out-dir",
        metavar="FOLDER",
        help="restore many files into FOLDER under their own names; those that are there already"
        " are skipped",
    )
    group.add_argument("--overwrite", action="store_true", help="replace an existing file")
    group.add_argument(
        "--resume", action="store_true", help="go on with what an interrupted run has finished"
    )
    group.add_argument(
        "--segment",
        type=whole,
        default=240,
        metavar="FRAMES",
        help="after how many frames work is safe from interruption (default: %(default)s)",
    )
    group.add_argument("--codec", help="FFmpeg's name of the encoder (default: the input's codec)")
    group.add_argument("--crf", type=quality, metavar="N", help="constant quality of the encoder")
    group.add_argument("--pix-fmt", metavar="NAME", help="pixel format (default: the input's)")
    group.add_argument(
        "--enc",
        dest="encoder_options",
        action="append",
        type=key_value,
        default=[],
        metavar="KEY=VALUE",
        help="the encoder's own option, such as preset=slow; may be repeated",
    )
    for kind, name in (("audio", "no-audio"), ("subtitle", "no-subs")):
        group.add_argument(
            f"--{name}",
            dest="leave_out",
            action="append_const",
            const=kind,
            default=[],
            help=f"leave out {kind if kind == 'audio' else 'subtitles'}",
        )


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add the options about how the work is done and reported."""
    group = parser.add_argument_group("running")
    group.add_argument(
        "--strict", action="store_true", help="fail on damaged input instead of saving what it has"
    )
    group.add_argument(
        "--max-pixels",
        type=whole,
        metavar="N",
        help="refuse larger pictures, which hostile files declare (default: 67108864, 8192x8192)",
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps")
    group.add_argument(
        "--runtime", choices=RUNTIMES, default="auto", help="what runs the network (default: auto)"
    )
    group.add_argument(
        "--tile", type=tile, metavar="N", help="side of the tiles in pixels (default: as needed)"
    )
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
    group.add_argument("--quiet", action="store_true", help="print errors only")
    group.add_argument("--list-models", action="store_true", help="list the weights and exit")
    group.add_argument("--version", action="store_true", help="print the versions and exit")
    group.add_argument("--traceback", action="store_true", help=argparse.SUPPRESS)
