"""`restore-upscale IN OUT --scale 2|3|4`: enlarge a video, change nothing else."""

from __future__ import annotations

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
from restore.cli.restoring import restore_all, restore_one
from restore.cli.versions import told_instead

PROG = "restore-upscale"
SCALES = (2, 3, 4)


def make_parser() -> Parser:
    """Return the parser of the command."""
    parser = Parser(
        prog=PROG,
        usage="%(prog)s IN OUT --scale 2|3|4 [options]\n"
        "       %(prog)s IN... --out-dir FOLDER --scale 2|3|4 [options]",
        description="Enlarge a video; sound, timestamps and everything else stay.",
        epilog=EXIT_CODES,
    )
    parser.add_argument(
        "files",
        metavar="IN OUT",
        nargs="*",
        help="video, picture, frames/%%05d.png, or - for y4m through a pipe; with --out-dir any"
        " number of inputs, folders and patterns",
    )
    parser.add_argument(
        "--scale", type=int, choices=SCALES, default=2, help="enlargement (default: %(default)s)"
    )
    parser.add_argument(
        "--denoise", action="store_true", help="remove noise first, in the same pass"
    )
    add_restoring(parser)
    add_selecting(parser)
    add_encoding(parser)
    add_running(parser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; default: those of the process.

    Returns:
        Exit code: 0, or that of the error (see `restore.errors`).
    """
    parser = make_parser()
    args = parser.parse_files(list(sys.argv[1:] if argv is None else argv))
    told = told_instead(args)
    if told is not None:
        return guarded(PROG, told, traceback=args.traceback)
    if args.out_dir is not None:
        if not args.files:
            parser.error("--out-dir needs one input or more")
        return guarded(PROG, lambda: restore_all(args, PROG), traceback=args.traceback)
    if len(args.files) != 2:
        parser.error("needs two files, IN and OUT, or --out-dir FOLDER")
    return guarded(PROG, lambda: restore_one(args, PROG), traceback=args.traceback)


if __name__ == "__main__":
    sys.exit(main())
