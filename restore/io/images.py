"""Write image sequences: one file a frame, all of them in place only when all are written."""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

import av
import av.error

from restore.errors import OutputError, UsageError
from restore.io.convert import convert, converted_color
from restore.io.encoders import encoder_formats
from restore.io.formats import layout_of, lossless_choice, nearest_choice, pack
from restore.io.frame import Frame, PixelFormat
from restore.io.probe import VideoInfo
from restore.io.sequence import is_pattern, list_files, numbered
from restore.io.target import PARTIAL

_ENCODERS = {
    ".png": "png", ".jpg": "mjpeg", ".jpeg": "mjpeg", ".tif": "tiff", ".tiff": "tiff",
    ".exr": "exr", ".dpx": "dpx", ".webp": "libwebp", ".bmp": "bmp", ".pgm": "pgm", ".ppm": "ppm",
    ".pnm": "ppm", ".tga": "targa", ".jp2": "jpeg2000", ".pfm": "pfm", ".qoi": "qoi", ".sgi": "sgi",
}  # fmt: skip
_OPTIONS = {
    "mjpeg": {"flags": "+qscale", "global_quality": "118", "huffman": "optimal"},
    "libwebp": {"lossless": "1"},
    "png": {"pred": "mixed"},
    "exr": {"format": "float"},
    "jpeg2000": {"pred": "dwt53"},
    "tiff": {"compression_algo": "deflate"},
}


class ImageWriter:
    """Write frames to ``name%05d.ext``, or the only frame to ``name.ext``.

    Args:
        path: Pattern, file name, or an existing or new folder (then ``%05d.png`` inside it).
        info: The source, for layout and colour.
        options: Encoder options.
        overwrite: Replace files that exist.

    Raises:
        OutputError: If files would be replaced, or the folder cannot be written.
        UsageError: If the encoder lacks an option.
    """

    def __init__(
        self,
        path: Path,
        info: VideoInfo,
        options: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = path / "%05d.png" if path.is_dir() else path
        self.notes: list[str] = []
        name = _ENCODERS.get(self.path.suffix.lower())
        if name is None:
            raise OutputError(f"{path}: unknown kind of picture; use an ending such as .png")
        if is_pattern(self.path) and not overwrite and self._existing():
            raise OutputError(f"{path}: such files exist already; add --overwrite or another name")
        self._name = name
        self._options = {**_OPTIONS.get(name, {}), **(options or {})}
        self._info = info
        self._pix_fmt = self._choose(info.format)
        self._count = 0
        root = next(p for p in self.path.absolute().parents if p.is_dir())
        self._folder = root / f"{PARTIAL}{secrets.token_hex(4)}"
        self._context: av.VideoCodecContext | None = None
        try:
            self._folder.mkdir()
        except OSError as error:
            raise OutputError(
                f"{path}: its folder cannot be written ({error.strerror}); choose another"
            ) from error
        try:
            self._open(info.width, info.height)
        except BaseException:
            self.discard()
            raise

    def write(self, frame: Frame) -> None:
        """Encode one frame to its own file."""
        if not is_pattern(self.path) and self._count == 1:
            raise OutputError(
                f"{self.path}: holds one picture only; use a pattern such as %05d.png"
            )
        fmt = layout_of(self._pix_fmt).format
        color = converted_color(frame.color, frame.format, fmt, frame.height, self._name)
        picture = pack(convert(frame, fmt, color), self._pix_fmt)
        picture.pts = self._count
        picture.colorspace, picture.color_range = color.tags.matrix, color.tags.range
        if self._context is None or (self._context.width, self._context.height) != (
            frame.width,
            frame.height,
        ):
            self._open(frame.width, frame.height)
        assert self._context is not None
        packets = self._context.encode(picture)
        if not packets:  # encoders with a delay give the picture up only when told it was the last
            packets = self._context.encode(None)
            self._context = None
        number = numbered(self.path, self._count + 1).name
        (self._folder / number).write_bytes(b"".join(bytes(packet) for packet in packets))
        self._count += 1

    def close(self) -> None:
        """Move the pictures to their place."""
        if self._count == 0:
            raise OutputError(f"{self.path}: no frame was written; nothing to keep")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for file in sorted(self._folder.iterdir()):
            os.replace(file, self.path.with_name(file.name))
        self._folder.rmdir()

    def discard(self) -> None:
        """Remove what was written so far."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _existing(self) -> bool:
        try:
            return bool(list_files(self.path))
        except Exception:  # none, or no folder yet
            return False

    def _choose(self, fmt: PixelFormat) -> str:
        formats = encoder_formats(self._name)
        if fmt.family == "yuv" and self._name != "mjpeg":
            fmt = PixelFormat.build("rgb", 8 if fmt.depth == 8 else 16, alpha=fmt.alpha)
        elif fmt.depth not in (8, 16) and lossless_choice(fmt, formats) is None:
            fmt = PixelFormat.build(fmt.family, 16, alpha=fmt.alpha)
        return lossless_choice(fmt, formats) or nearest_choice(fmt, formats)

    def _open(self, width: int, height: int) -> None:
        self._context = context = av.CodecContext.create(self._name, "w")
        context.width, context.height, context.pix_fmt = width, height, self._pix_fmt
        context.time_base = self._info.time_base
        tags = self._info.color.tags
        context.color_range = 2 if self._name == "mjpeg" else tags.range
        context.colorspace = tags.matrix
        context.thread_count = 1
        context.options = dict(self._options)
        try:
            context.open()
        except (av.error.FFmpegError, ValueError) as error:
            raise UsageError(
                f"{self.path}: {self._name} refuses these options; check --enc"
            ) from error
        if context.options:
            raise UsageError(
                f"{self._name} has no option {', '.join(context.options)}; check --enc"
            )
