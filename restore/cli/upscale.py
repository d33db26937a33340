"""`restore-upscale IN OUT --scale 2|3|4`: enlarge a video, change nothing else."""

from __future__ import annotations

import sys

from restore.cli.arguments import Parser, parser_of_files
from restore.cli.restoring import run

SCALES = (2, 3, 4)


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = parser_of_files(
        "restore-upscale",
        "%(prog)s IN OUT --scale 2|3|4 [options]\n"
        "       %(prog)s IN... --out-dir FOLDER --scale 2|3|4 [options]",
        "Enlarge a video; sound, timestamps and everything else stay.",
    )
    group = parser.add_argument_group("enlarging")
    group.add_argument(
        "--scale", type=int, choices=SCALES, default=2, help="enlargement (default: %(default)s)"
    )
    group.add_argument(
        "--denoise", action="store_true", help="remove noise first, in the same pass"
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
    return run(parser, parser.parse_files(arguments), arguments)


if __name__ == "__main__":
    sys.exit(main())
