"""Image sequences: patterns such as ``frames/%05d.png``, folders of images, single pictures."""

import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import av
import av.error

from restore.errors import InputError
from restore.io.demux import open_media
from restore.io.probe import StreamFacts

SUFFIXES = {
    ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".exr", ".dpx", ".webp", ".bmp", ".pgm", ".ppm",
    ".pnm", ".tga", ".jp2", ".pfm", ".qoi", ".sgi", ".pcx",
}  # fmt: skip
"""Endings of files that hold one picture each."""

_PATTERN = re.compile(r"%(0?)(\d*)d")


def is_pattern(path: Path) -> bool:
    """Tell whether a name holds a frame number field such as ``%05d``."""
    numbered_name = _PATTERN.search(path.name) is not None and not path.exists()
    return numbered_name and path.suffix.lower() in SUFFIXES


def is_sequence(path: Path) -> bool:
    """Tell whether a path means single pictures rather than a video file."""
    return path.is_dir() or is_pattern(path) or path.suffix.lower() in SUFFIXES


def is_animated_webp(path: Path) -> bool:
    """Tell whether a file is a WebP animation, which FFmpeg does not decode (RFC 9649)."""
    if path.suffix.lower() != ".webp" or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(21)
    extended = head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) == 21
    return extended and bool(head[20] & 2)


def natural_key(path: Path) -> list[tuple[int, str]]:
    """Sort key that counts: frame2 comes before frame10."""
    parts = re.split(r"(\d+)", path.name.lower())
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def numbered(path: Path, number: int) -> Path:
    """Fill the frame number into a pattern."""

    def fill(match: re.Match[str]) -> str:
        width = int(match[2] or 0)
        return f"{number:0{width}d}" if match[1] else f"{number:{width}d}"

    return path.with_name(_PATTERN.sub(fill, path.name, count=1))


def list_files(path: Path) -> list[Path]:
    """Return the files of a sequence in order of their numbers.

    Raises:
        InputError: If there are none.
    """
    if path.is_dir():
        found = [p for p in path.iterdir() if p.suffix.lower() in SUFFIXES and p.name[0] != "."]
    elif is_pattern(path):
        head, tail = _PATTERN.split(path.name, maxsplit=1)[0::3]
        regex = re.compile(re.escape(head) + r"\d+" + re.escape(tail))
        folder = path.parent
        found = [p for p in folder.iterdir() if regex.fullmatch(p.name)] if folder.is_dir() else []
    else:
        found = [path] if path.exists() else []
    if not found and path.is_dir():
        raise InputError(f"{path}: a folder without pictures; for its videos add --out-dir FOLDER")
    if not found:
        raise InputError(f"{path}: no such pictures; check the folder and the pattern")
    return sorted(found, key=natural_key)


class SequenceSource:
    """Pictures in files of their own, numbered from 0: the sibling of `decode.FileSource`.

    Args:
        path: Folder, pattern or single picture.
        rate: Frames per second.

    Raises:
        InputError: If there are no such pictures.
    """

    index: int | None = None
    begin = Fraction(0)

    def __init__(self, path: Path, rate: Fraction) -> None:
        self.files = list_files(path)
        self.time_base = 1 / Fraction(rate)
        self.damaged = 0
        self.notes: list[str] = []

    def close(self) -> None:
        """Do nothing: each file is closed when it has been read."""

    def missing_end(self) -> Fraction:
        """Return 0: nothing announces more pictures than there are."""
        return Fraction(0)

    def facts(self) -> StreamFacts:
        """Return what is known without looking at the pictures."""
        return StreamFacts(
            rate=1 / self.time_base,
            count=len(self.files),
            duration=len(self.files) * self.time_base,
            sample_aspect_ratio=None,
            codec=self.files[0].suffix.lower().lstrip("."),
            container="images",
            profile=None,
            metadata={},
        )

    def pictures(self) -> Iterator[av.VideoFrame]:
        """Yield FFmpeg's pictures with pts 0, 1, 2, ...; count the unreadable ones."""
        return self.pictures_from(Fraction(0))

    def pictures_from(self, target: Fraction) -> Iterator[av.VideoFrame]:
        """Yield the pictures from a time in seconds on."""
        for number, file in enumerate(self.files):
            if number * self.time_base < target:
                continue
            picture = self._read(file)
            if picture is None:
                self.damaged += 1
                continue
            picture.pts, picture.time_base, picture.duration = number, self.time_base, 1
            yield picture

    @staticmethod
    def _read(file: Path) -> av.VideoFrame | None:
        # By content where FFmpeg tells it, else by name: so it knows most JPEG and all TGA files.
        for kind in (None, "image2"):
            failures = suppress(InputError, av.error.FFmpegError, OSError)
            with failures, open_media(file, kind) as container:
                stream = container.streams.best("video")
                if stream is not None and stream.codec_context is not None:
                    return next(container.decode(stream), None)
        return None
