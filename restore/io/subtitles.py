"""Rewrite text subtitles for containers that hold another kind of text: the words stay, styles go.

References:
    3GPP TS 26.245, section 5.17.1: a timed text sample is a 16-bit length, text, then style boxes.
    Matroska codec specifications, S_TEXT/UTF8 and S_TEXT/ASS: what a block of them holds.
"""

import re
from collections.abc import Callable

Rewrite = Callable[[bytes], bytes]
"""Packet data in, packet data out; empty where nothing is shown."""

_KINDS = {
    "matroska": "subrip",
    "webm": "webvtt",
    "mp4": "mov_text",
    "mov": "mov_text",
    "ipod": "mov_text",
    "srt": "subrip",
}
"""Container -> kind of text that it holds and that most players show."""
_ASS_FIELDS = 8
_MARKUP = re.compile(r"</?[A-Za-z][^>]*>")
_OVERRIDES = re.compile(r"\{[^}]*\}")


def _from_mov(data: bytes) -> str:
    length = int.from_bytes(data[:2], "big")
    text = data[2 : 2 + length]
    encoding = "utf-16" if text[:2] in (b"\xfe\xff", b"\xff\xfe") else "utf-8"
    return text.decode(encoding, "replace")


def _from_ass(data: bytes) -> str:
    fields = data.decode("utf-8", "replace").split(",", _ASS_FIELDS)
    text = _OVERRIDES.sub("", fields[-1])
    return text.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", "\u00a0")


def _from_plain(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_READERS: dict[str, Callable[[bytes], str]] = {
    "mov_text": _from_mov,
    "ass": _from_ass,
    "ssa": _from_ass,
    "subrip": _from_plain,
    "srt": _from_plain,
    "text": _from_plain,
    "webvtt": _from_plain,
}


def _to_mov(text: str) -> bytes:
    data = _MARKUP.sub("", text).encode()[:0xFFFF]
    return len(data).to_bytes(2, "big") + data if data else b""


def rewriting(codec: str, container: str) -> tuple[str, Rewrite] | None:
    """Find how subtitles of a codec are rewritten for a container.

    Args:
        codec: FFmpeg's name of the subtitles' codec.
        container: FFmpeg's name of the target container.

    Returns:
        FFmpeg's name of the codec they become and the function for each packet; None where the
        subtitles are no text or the container holds none.
    """
    read, target = _READERS.get(codec), _KINDS.get(container)
    if read is None or target is None:
        return None

    def rewrite(data: bytes) -> bytes:
        text = read(data).strip("\r\n\0 ")
        return _to_mov(text) if target == "mov_text" else text.encode()

    return target, rewrite
