"""Where restored frames go: into segments that survive an interruption, or straight into a file.

Every run works in the same segments, interrupted or not. They end at a cut or after a fixed number
of frames, each is coded by an encoder of its own, and in the end they are joined by copying.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from restore.errors import OutputError
from restore.handover import Handover
from restore.io import Frame, VideoReader, VideoWriter
from restore.io.demux import PIPE
from restore.io.encode import Coding
from restore.io.libraries import ffmpeg_libraries
from restore.io.output import Encoding, OutputFile
from restore.io.packets import SegmentWriter, join
from restore.io.sequence import is_sequence
from restore.io.target import check_target, unwritable
from restore.workfolder import WorkFolder, fingerprint

LENGTH = 240
"""Frames of a segment, at most; from half of that on it ends at a cut."""


def open_target(
    target: str | Path,
    source: VideoReader,
    encoding: Encoding,
    settings: Mapping[str, Any],
    *,
    length: int = LENGTH,
    resume: bool = False,
    overwrite: bool = False,
) -> Straight | Segmented:
    """Open what takes the frames; whatever is wrong with it is told now, before the first frame.

    Args:
        target: The file, pattern or picture to be written.
        source: Where the frames and everything else come from.
        encoding: What is asked of the encoder.
        settings: All else that the frames depend on, by the name the user knows it by.
        length: Frames of a segment.
        resume: Go on with what an interrupted run left.
        overwrite: Replace an existing file, and throw away what an interrupted run left.

    Raises:
        UsageError: If options are wrong, or an interrupted run left something and it is not said
            what to do with it.
        OutputError: If the target cannot be written.
    """
    path = Path(target)
    coding = None
    if path != PIPE:
        check_target(path, source.path, overwrite)
        if path.is_dir() and not is_sequence(source.path):
            raise OutputError(
                f"{path}: is a folder; add --out-dir {path} for a video in it, or give"
                f" {path / '%05d.png'} for pictures"
            )
    if not (path == PIPE or source.path == PIPE or is_sequence(path)):
        with OutputFile(path, None, source, encoding) as trial:
            coding = trial.coding
    if coding is None or not coding.joinable:
        writer = VideoWriter(path, source, encoding=encoding, overwrite=overwrite)
        return Straight(writer, resume=resume)
    identity = {
        **settings,
        "input": fingerprint(source.path),
        "length of segments": length,
        "FFmpeg": ffmpeg_libraries(),
    }
    return Segmented(
        path,
        source,
        encoding,
        coding,
        identity,
        length=length,
        resume=resume,
        overwrite=overwrite,
    )


class Straight:
    """Write to a target that is not made of segments: pictures, a pipe, an animation."""

    complete, done = False, 0

    def __init__(self, writer: VideoWriter, *, resume: bool) -> None:
        """Take the writer; it is closed or discarded with this."""
        self._writer = writer
        self._own = ["this kind of output cannot be resumed; it was made anew"] if resume else []
        self.handover = Handover()

    @property
    def frames(self) -> int:
        """Frames written."""
        return self._writer.frames

    @property
    def notes(self) -> list[str]:
        """Lines worth telling the user."""
        return [*self._own, *self._writer.notes]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def write(self, step: tuple[Frame, Handover]) -> None:
        """Write a frame."""
        self._writer.write(step[0])

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


class Segmented:
    """Write segments, and join them when all are there.

    Args:
        target: The file to be written.
        source: Where everything but the video comes from.
        encoding: What is asked of the encoder.
        coding: What that comes to.
        identity: What makes this run this run; see `WorkFolder`.
        length: Frames of a segment.
        resume: Go on with what an interrupted run left.
        overwrite: Replace an existing file, and throw away what an interrupted run left.

    Raises:
        UsageError: If there is something left and it is not said what to do, or options are wrong.
        OutputError: If the target cannot be written.
    """

    def __init__(
        self,
        target: Path,
        source: VideoReader,
        encoding: Encoding,
        coding: Coding,
        identity: Mapping[str, Any],
        *,
        length: int,
        resume: bool,
        overwrite: bool,
    ) -> None:
        self._target, self._source = target, source
        self._encoding, self._coding, self._length = encoding, coding, length
        self._writer: SegmentWriter | None = None
        self._folder = WorkFolder(target, identity, resume=resume, overwrite=overwrite)
        try:
            self.done, self.complete = self._folder.frames, self._folder.complete
            self.handover = self._last = self._folder.handover()
        except BaseException:
            self._folder.close(keep=bool(self._folder.parts))
            raise
        self.notes = self._folder.notes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            return
        if self._writer is not None:
            self._writer.discard()
        frames = self._folder.frames
        self._folder.close(keep=frames > 0)
        kept = f"{frames} frames are kept in {self._folder.path}: add --resume to go on with them"
        if frames or isinstance(error, KeyboardInterrupt):
            error.add_note(kept if frames else "no segment was finished, nothing is kept")

    @property
    def frames(self) -> int:
        """Frames in finished segments."""
        return self._folder.frames

    def write(self, step: tuple[Frame, Handover]) -> None:
        """Encode a frame; before it, end the segment if it is long enough.

        Raises:
            OutputError: If it cannot be written, for example on a full disk.
        """
        frame, handover = step
        try:
            if self._writer is not None:
                written = self._writer.encoder.frames
                if written >= self._length or (
                    handover.starts_shot and 2 * written >= self._length
                ):
                    self._end_segment(last=False)
            if self._writer is None:
                path = self._folder.segment_path(len(self._folder.parts))
                self._writer = SegmentWriter(path, self._coding)
            self._writer.write(frame)
        except OSError as error:
            raise unwritable(self._target, error) from error
        self._last = handover

    def close(self) -> None:
        """End the last segment, join all, and give the file its name.

        Raises:
            OutputError: If the file cannot be written.
        """
        try:
            self._end_segment(last=True)
            with self._output() as output:
                join(self._folder.segments(), output)
                output.finish()
        except OSError as error:
            raise unwritable(self._target, error) from error
        self.notes = [*self.notes, *output.notes]
        self._folder.close(keep=False)

    def _end_segment(self, *, last: bool) -> None:
        if self._writer is None:
            return
        written = self._writer.finish()
        self.notes = [*self.notes, *self._writer.encoder.notes]
        self._folder.add(written, self._last, last=last)
        self._writer = None

    def _output(self) -> OutputFile:
        partial = self._folder.path / f"joined{self._target.suffix}"
        return OutputFile(self._target, partial, self._source, self._encoding)


Target = Straight | Segmented
"""What takes the frames of a run. It knows where to go on (`handover`), after how many frames
(`done`), and whether any is missing (`complete`)."""
