"""Encode frames and put them where the old video stream was; everything else is copied."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from av.error import FFmpegError

from restore.errors import OutputError
from restore.io.demux import PIPE
from restore.io.encode import PictureEncoder
from restore.io.frame import Frame
from restore.io.images import ImageWriter
from restore.io.output import Encoding, OutputFile
from restore.io.reader import VideoReader
from restore.io.sequence import is_sequence
from restore.io.target import PARTIAL, check_target, left_over, unwritable
from restore.io.y4m import PipeWriter


class VideoWriter:
    """Write the restored frames of `source` to a new file.

    All other streams of the source, its chapters, tags, dispositions, rotation, aspect and colour
    description are carried over. The file appears under its name only when it is complete: until
    then it lies beside it under a hidden name, and after an error it is removed.

    Args:
        path: Output file, pattern (``out/%05d.png``), single picture, or ``-`` for y4m on standard
            output; the ending chooses the container.
        source: The reader that the frames come from.
        codec: FFmpeg's encoder name (or h264, hevc, av1, vp9); default: the source's family.
        crf: Constant quality, for encoders that have it.
        pix_fmt: FFmpeg's pixel format; default: the source's.
        options: The encoder's own options, such as ``{"preset": "slow"}``.
        size: (width, height) if it differs from the source's.
        overwrite: Replace an existing file.
        interlaced: Whether the frames are interlaced; default: as the source.
        encoding: All that is asked of the encoder, in place of the arguments above.

    Attributes:
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
        encoding: Encoding | None = None,
    ) -> None:
        self.path = Path(path)
        self.source = source
        self.frames = 0
        self._done = False
        self._left: list[str] = []
        self._images: ImageWriter | PipeWriter | None = None
        if encoding is None:
            listed = tuple((options or {}).items())
            encoding = Encoding(codec, crf, pix_fmt, listed, size, interlaced)
        if self.path == PIPE:
            self._images = PipeWriter(source.info)
            return
        check_target(self.path, source.path, overwrite)
        self._left = left_over(self.path)
        if is_sequence(self.path):
            self._images = ImageWriter(self.path, source.info, dict(encoding.options), overwrite)
            return
        token = secrets.token_hex(4)
        partial = self.path.with_name(f"{PARTIAL}{token}{self.path.suffix}")
        self._file = OutputFile(self.path, partial, source, encoding)
        self._encoder = PictureEncoder(self._file.coding, self._file.video)

    @property
    def notes(self) -> list[str]:
        """One line for everything the user should know: another codec, streams left out, ..."""
        if self._images is not None:
            return [*self._left, *self._images.notes]
        return [*self._left, *self._file.notes, *self._encoder.notes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def write(self, frame: Frame) -> None:
        """Encode one frame; its pts is kept to the tick of the source's time base.

        Raises:
            OutputError: If the file cannot be written, for example on a full disk.
            BrokenPipeError: If the reader of a pipe has gone.
        """
        self.frames += 1
        try:
            if self._images is not None:
                self._images.write(frame)
            else:
                self._file.mux(self._encoder.encode(frame))
        except BrokenPipeError:
            raise
        except (FFmpegError, OSError) as error:
            raise unwritable(self.path, error) from error

    def close(self) -> None:
        """Finish the file and give it its name.

        Raises:
            OutputError: If the end of the file cannot be written.
        """
        if self._done:
            return
        try:
            if self.frames == 0:
                raise OutputError(f"{self.path}: no frame was written; nothing to keep")
            if self._images is not None:
                self._images.close()
            else:
                self._file.mux(self._encoder.finish())
                self._file.finish()
        except BrokenPipeError:
            self.discard()
            raise
        except (FFmpegError, OSError) as error:
            self.discard()
            raise unwritable(self.path, error) from error
        except BaseException:
            self.discard()
            raise
        self._done = True

    def discard(self) -> None:
        """Remove what was written so far."""
        if self._done:
            return
        self._done = True
        if self._images is not None:
            self._images.discard()
        else:
            self._file.discard()
