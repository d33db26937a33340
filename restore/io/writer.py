"""Encode frames and put them where the old video stream was; everything else is copied."""

import os
import secrets
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import av.error

from restore.errors import OutputError, UsageError
from restore.io.convert import convert, converted_color
from restore.io.encoders import EncoderPlan, plan_encoder
from restore.io.formats import layout_of, pack
from restore.io.frame import ColorTags, Frame
from restore.io.images import ImageWriter
from restore.io.reader import VideoReader
from restore.io.sequence import is_pattern, is_sequence
from restore.io.streams import StreamCopier, container_holds_codec

_ROTATES = ("mp4", "mov", "matroska", "ipod", "webm")
_NO_REORDERING = ("avi", "flv", "mpeg")
"""Containers without presentation times, or that shift them when the first decoding time is negative."""
_MUXER_OPTIONS = {
    "mpegts": {"mpegts_copyts": "1"},
    "mpeg": {"muxpreload": "0"},
    # Audio that starts before 0 (encoder delay) must not push the picture back.
    "matroska": {"avoid_negative_ts": "disabled"},
    "webm": {"avoid_negative_ts": "disabled"},
}


def check_target(target: Path, source: Path, overwrite: bool) -> None:
    """Refuse a target that is the source, exists already, or lies in no folder.

    Raises:
        OutputError: With one line that says which.
    """
    if target.exists():
        if source.exists() and os.path.samefile(source, target):
            raise OutputError(f"{target}: is the input itself; choose another name for the output")
        if not overwrite:
            raise OutputError(f"{target}: exists already; add --overwrite or choose another name")
    folder = target.parent
    if not folder.is_dir() and not is_pattern(target):
        raise OutputError(f"{target}: its folder does not exist; create {folder} first")


class VideoWriter:
    """Write the restored frames of `source` to a new file.

    All other streams of the source, its chapters, tags, dispositions, rotation, aspect and colour
    description are carried over. The file appears under its name only when it is complete: until then
    it lies beside it under a hidden name, and after an error it is removed.

    Args:
        path: Output file, pattern (``out/%05d.png``) or single picture. The ending chooses the container.
        source: The reader that the frames come from.
        codec: FFmpeg's encoder name (or h264, hevc, av1, vp9); default: the source's family.
        crf: Constant quality, for encoders that have it.
        pix_fmt: FFmpeg's pixel format; default: the source's.
        options: The encoder's own options, such as ``{"preset": "slow"}``.
        size: (width, height) if it differs from the source's.
        overwrite: Replace an existing file.
        interlaced: Whether the frames are interlaced; default: as the source.

    Attributes:
        notes: One line for everything the user should know: another codec, streams left out, ...
        frames: Number of frames written.

    Raises:
        UsageError: Unknown encoder, pixel format or encoder option; before the first frame.
        OutputError: The target cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        source: VideoReader,
        *,
        codec: str | None = None,
        crf: float | None = None,
        pix_fmt: str | None = None,
        options: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
        overwrite: bool = False,
        interlaced: bool | None = None,
    ) -> None:
        self.path = Path(path)
        self.source = source
        self.notes: list[str] = []
        self.frames = 0
        self._size = size or (source.info.width, source.info.height)
        self._last_pts: int | None = None
        self._copier: StreamCopier | None = None
        self._images: ImageWriter | None = None
        self._output: av.container.OutputContainer | None = None
        self._done = False
        check_target(self.path, source.path, overwrite)
        if is_sequence(self.path):
            self._images = ImageWriter(self.path, source.info, options, overwrite)
            return
        token = secrets.token_hex(4)
        self.partial = self.path.with_name(f".restore-partial-{token}{self.path.suffix}")
        try:
            self._open_container()
            plan = self._plan(codec, crf, pix_fmt, options, interlaced)
            self._open_streams(plan)
        except BaseException:
            self._discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._discard()

    def write(self, frame: Frame) -> None:
        """Encode one frame; its pts is kept to the tick of the source's time base.

        Raises:
            OutputError: If the file cannot be written, for example on a full disk.
        """
        self.frames += 1
        if self._images is not None:
            self._images.write(frame)
            return
        if (frame.width, frame.height) != self._size:
            got = f"{frame.width}x{frame.height}"
            raise ValueError(f"frame is {got}, the writer was opened for {self._size}")
        picture = pack(convert(frame, self._layout.format, self._color), self._plan_used.pix_fmt)
        picture.pts = self._increasing(frame.pts)
        picture.time_base = self.source.info.time_base
        picture.duration = frame.duration or 0
        self._tag(picture, self._color.tags)
        try:
            self._mux(self._video.encode(picture))
        except (av.error.FFmpegError, OSError) as error:
            raise OutputError(f"{self.path}: cannot be written ({error}); free space?") from error

    def close(self) -> None:
        """Finish the file and give it its name.

        Raises:
            OutputError: If the end of the file cannot be written.
        """
        if self._done:
            return
        try:
            if self._images is not None:
                self._images.close()
            else:
                self._finish()
        except (av.error.FFmpegError, OSError) as error:
            self._discard()
            raise OutputError(f"{self.path}: cannot be finished ({error}); free space?") from error
        except BaseException:
            self._discard()
            raise
        self._done = True

    def _finish(self) -> None:
        assert self._output is not None
        if self.frames == 0:
            raise OutputError(f"{self.path}: no frame was written; nothing to keep")
        self._mux(self._video.encode(None))
        if self._copier is not None:
            self._copier.pump(self._output, None)
            self._copier.close()
            self.notes.extend(self._copier.notes)
            self._copier = None
        self._output.close()
        self._output = None
        os.replace(self.partial, self.path)

    def _discard(self) -> None:
        """Remove what was written so far."""
        if self._done:
            return
        self._done = True
        if self._images is not None:
            self._images.discard()
            return
        if self._copier is not None:
            self._copier.close()
        try:
            if self._output is not None:
                self._output.close()
        except (av.error.FFmpegError, OSError, ValueError):
            pass  # the file is removed anyway
        finally:
            self._output = None
            self.partial.unlink(missing_ok=True)

    def _open_container(self) -> None:
        try:
            self._output = av.open("file:" + os.fspath(self.partial.absolute()), "w")
        except (ValueError, av.error.FFmpegError) as error:
            raise OutputError(
                f"{self.path}: unknown kind of file; use an ending such as .mkv or .mp4"
            ) from error
        name, ticks = self._output.format.name, self.source.info.time_base.denominator
        self._output.container_options.update(_MUXER_OPTIONS.get(name, {}))
        if name in ("mp4", "mov", "ipod"):
            # Edit lists (a late start) are stored in this unit; the default is a millisecond.
            self._output.container_options["movie_timescale"] = str(max(ticks, 1000))

    def _plan(
        self,
        codec: str | None,
        crf: float | None,
        pix_fmt: str | None,
        options: Mapping[str, str] | None,
        interlaced: bool | None,
    ) -> EncoderPlan:
        assert self._output is not None
        info, container = self.source.info, self._output.format.name
        fields = info.field_order != "progressive" if interlaced is None else interlaced
        try:
            return plan_encoder(
                info,
                lambda name: container_holds_codec(container, name),
                self._size,
                codec=codec,
                crf=crf,
                pix_fmt=pix_fmt,
                options=options,
                interlaced=fields,
            )
        except OutputError as error:
            raise OutputError(f"{self.path}: {error}") from error

    def _open_streams(self, plan: EncoderPlan) -> None:
        assert self._output is not None
        source = self.source
        if source.video_index is not None:
            end = None
            if source.duration is not None:
                begin = source.offset if source.start is not None else source.info.start_time
                end = begin + source.duration
            self._copier = StreamCopier(
                source.path, source.video_index, source.offset, end, source.start is not None
            )
            self._copier.add_streams(self._output, before=True)
        self.notes.extend(plan.notes)
        self._plan_used = plan
        self._layout = layout_of(plan.pix_fmt)
        info = source.info
        self._color = converted_color(info.color, info.format, self._layout.format, info.height)
        self._video = self._add_video(plan)
        if self._copier is not None:
            self._copier.add_streams(self._output, before=False)
            self._copier.copy_header(self._output, self._video)
        self._open_encoder(plan)

    def _add_video(self, plan: EncoderPlan) -> av.VideoStream:
        assert self._output is not None
        info = self.source.info
        rate = info.average_rate or Fraction(25)
        stream = self._output.add_stream(plan.codec, rate=rate)
        stream.width, stream.height = self._size
        stream.pix_fmt = plan.pix_fmt
        stream.time_base = info.time_base
        context = stream.codec_context
        context.time_base = info.time_base
        if info.sample_aspect_ratio:
            context.sample_aspect_ratio = info.sample_aspect_ratio
        tags = self._color.tags
        context.colorspace, context.color_range = tags.matrix, tags.range
        context.color_primaries, context.color_trc = tags.primaries, tags.transfer
        context.options = dict(plan.options)
        if tags.chroma_location and info.format.family == "yuv":
            context.options.setdefault("chroma_sample_location", str(tags.chroma_location))
        if plan.codec == "libx265" and self._output.format.name in ("mp4", "mov", "ipod"):
            context.codec_tag = "hvc1"
        if self._output.format.name in _NO_REORDERING and plan.codec.startswith("libx26"):
            context.options.setdefault("bf", "0")
        if info.mastering is not None and plan.codec != "libx265":
            self.notes.append(f"{plan.codec} cannot carry the HDR10 mastering data; libx265 can")
        if info.display_matrix is not None:
            if self._output.format.name in _ROTATES:
                stream.set_display_matrix(info.display_matrix)
            else:
                self.notes.append(f"{self._output.format.name} cannot say that the picture is rotated")
        return stream

    def _open_encoder(self, plan: EncoderPlan) -> None:
        assert self._output is not None
        context = self._video.codec_context
        if plan.codec == "libsvtav1":
            os.environ.setdefault("SVT_LOG", "1")  # its log goes to stderr past FFmpeg's
        try:
            context.open()
        except (av.error.FFmpegError, ValueError) as error:
            asked = ", ".join(f"{k}={v}" for k, v in plan.options.items())
            raise UsageError(
                f"{plan.codec} refuses {self._size[0]}x{self._size[1]} {plan.pix_fmt} with {asked}"
                "; check --enc, --pix-fmt and --codec"
            ) from error
        unknown = [key for key in context.options if key in plan.options]
        if unknown:
            raise UsageError(f"{plan.codec} has no option {', '.join(unknown)}; check --enc")
        try:
            self._output.start_encoding()
        except (av.error.FFmpegError, ValueError, OSError) as error:
            raise OutputError(
                f"{self.path}: {self._output.format.name} does not hold these streams; write to a .mkv file"
            ) from error

    def _increasing(self, pts: int | None) -> int:
        """Return a pts after the last one; frames without one follow at the average rate."""
        info = self.source.info
        step = round(1 / ((info.average_rate or Fraction(25)) * info.time_base))
        if pts is None:
            pts = 0 if self._last_pts is None else self._last_pts + max(1, step)
        elif self._last_pts is not None and pts <= self._last_pts:
            self.notes.append(f"pts {pts} does not follow {self._last_pts}; moved by one tick")
            pts = self._last_pts + 1
        self._last_pts = pts
        return pts

    @staticmethod
    def _tag(picture: av.VideoFrame, tags: ColorTags) -> None:
        picture.colorspace, picture.color_range = tags.matrix, tags.range
        picture.color_primaries, picture.color_trc = tags.primaries, tags.transfer

    def _mux(self, packets: list[av.Packet]) -> None:
        assert self._output is not None
        for packet in packets:
            if self._copier is not None and packet.dts is not None:
                self._copier.pump(self._output, packet.dts * packet.time_base)
            self._output.mux_one(packet)


