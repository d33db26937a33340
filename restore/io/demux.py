"""Open media files safely: local files only, no playlists, one-line errors."""

import errno
import os
import re
from functools import lru_cache
from pathlib import Path

import av
import av.error
import av.format

from restore.errors import InputError

MAX_PIXELS = 1 << 26
"""Pixels of the largest picture that is decoded (8K has half of it): hostile files declare more."""
_ADDRESS = re.compile(r"\w{2,}:/")
"""Beginning of a network address, of which pathlib leaves one slash."""
PIPE = Path("-")
"""Stands for standard input and standard output."""

_FOLLOWS_OTHER_FILES = {
    "hls", "applehttp", "concat", "dash", "imf", "webm_dash_manifest", "sdp", "rtsp", "rtp",
    "sap", "lavfi", "tee", "ffmetadata", "tedcaptions", "image2", "image2pipe", "alias_pix",
    "brender_pix", "vapoursynth", "avisynth", "bluray", "cdg", "nut_pipe", "fbdev", "v4l2",
    "video4linux2", "x11grab", "alsa", "oss", "sndio", "jack", "pulse", "xcbgrab", "kmsgrab",
    "iec61883", "libcdio", "openal", "vobsub", "mpjpeg", "svg_pipe", "data", "bin",
}  # fmt: skip


@lru_cache(maxsize=1)
def _format_whitelist() -> str:
    """Every container that is one file; names are FFmpeg's own, so aliases come along."""
    known = {n for n in av.format.formats_available if n not in _FOLLOWS_OTHER_FILES}
    # Aliases such as "mov,mp4,m4a" are matched by any of their parts.
    parts = {part for name in known for part in name.split(",")}
    return ",".join(sorted(parts - _FOLLOWS_OTHER_FILES))


def open_media(
    path: Path, kind: str | None = None, *, max_pixels: int = MAX_PIXELS
) -> av.container.InputContainer:
    """Open one local media file for reading.

    Only the protocols file and pipe are allowed, and containers that name other files (HLS, DASH,
    concat, ...) are not followed.

    Args:
        path: The file, or `PIPE` for y4m on standard input.
        kind: FFmpeg's name of the container, for the few that cannot be told from their content.
        max_pixels: Largest picture that may be decoded.

    Raises:
        InputError: If the file is missing, empty or of no known format.
    """
    if path == PIPE:
        return _open_pipe(max_pixels)
    if not path.exists():
        if _ADDRESS.match(str(path)):
            raise InputError(f"{path}: only files on this machine are read; download it first")
        raise InputError(f"{path}: no such file; check the path")
    if path.is_fifo() or path.is_char_device() or path.is_socket():
        raise InputError(
            f"{path}: is a pipe or a device, which cannot be read twice; save it as a file, or send"
            " y4m to -"
        )
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; copy or record it again")
    options = {"protocol_whitelist": "file,pipe", "format_whitelist": _format_whitelist()}
    options["max_pixels"] = str(max_pixels)
    if kind == "image2":
        options |= {"pattern_type": "none", "format_whitelist": "image2"}
    try:
        return av.open(
            "file:" + os.fspath(path.absolute()),
            format=kind,
            options=options,
            metadata_errors="replace",
        )
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise InputError(f"{path}: {describe(error)}") from error


def _open_pipe(max_pixels: int) -> av.container.InputContainer:
    options = {"protocol_whitelist": "pipe", "max_pixels": str(max_pixels)}
    try:
        return av.open("pipe:0", format="yuv4mpegpipe", options=options)
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise InputError(
            "standard input: no y4m stream; make one with ffmpeg -i FILE -f yuv4mpegpipe -"
        ) from error


def describe(error: BaseException) -> str:
    """Say in one line what FFmpeg found wrong with a file, and what to do."""
    code = getattr(error, "errno", None)
    if code == errno.EACCES:
        return "no permission to read it; change its mode or copy it"
    if isinstance(error, av.error.InvalidDataError):
        return "not a readable media file (unknown, cut off or damaged header); try another copy"
    if isinstance(error, IsADirectoryError):
        return "is a folder without pictures; give a file, a pattern or a folder of images"
    text = getattr(error, "strerror", None) or str(error)
    return f"cannot be read ({text}); check that it plays elsewhere"
