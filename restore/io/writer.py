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

from restore.errors import OutputError
from restore.io.convert import convert, converted_color
from restore.io.encoders import EncoderPlan, plan_encoder
from restore.io.formats import layout_of, pack
from restore.io.frame import ColorTags, Frame
from restore.io.images import ImageWriter
from restore.io.reader import VideoReader
from restore.io.sequence import is_sequence
from restore.io.streams import StreamCopier
from restore.io.target import FieldMarker, add_video, check_target, open_encoder, open_output


class VideoWriter:
    """Write the restored frames of `source` to a new file.

    All other streams of the source, its chapters, tags, dispositions, rotation, aspect and colour
    description are carried over. The file appears under its name only when it is complete: until
    then it lies beside it under a hidden name, and after an error it is removed.

    Args:
        path: Output file, pattern (``out/%05d.png``) or single picture; the ending chooses the
            container.
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
        self._fields: FieldMarker | None = None
        check_target(self.path, source.path, overwrite)
        if is_sequence(self.path):
            self._images = ImageWriter(self.path, source.info, options, overwrite)
            return
        token = secrets.token_hex(4)
        self.partial = self.path.with_name(f".restore-partial-{token}{self.path.suffix}")
        try:
            self._output = open_output(self.partial, self.path, source.info.time_base)
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
        if self._fields is not None:
            picture = self._fields.mark(picture)
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
                container,
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
        if "field_order" in plan.options and source.info.field_order != "progressive":
            self._fields = FieldMarker(source.info.field_order)
        info = source.info
        self._color = converted_color(
            info.color, info.format, self._layout.format, info.height, plan.codec
        )
        self._video, notes = add_video(self._output, plan, info, self._color.tags, self._size)
        self.notes.extend(notes)
        if self._copier is not None:
            self._copier.add_streams(self._output, before=False)
            self._copier.copy_header(self._output, self._video)
        open_encoder(self._video.codec_context, plan)
        try:
            self._output.start_encoding()
        except (av.error.FFmpegError, ValueError, OSError) as error:
            name = self._output.format.name
            raise OutputError(
                f"{self.path}: {name} does not hold these streams; write to a .mkv file"
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
