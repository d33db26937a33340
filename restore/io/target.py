"""The output file: may it be written, in which container, with which encoder opened."""

import errno
import io
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import av
import av.error
import av.filter
from av.stream import Disposition

from restore.errors import OutputError, UsageError
from restore.io.encoders import EncoderPlan
from restore.io.frame import ColorTags
from restore.io.probe import VideoInfo
from restore.io.sequence import is_pattern

PARTIAL = ".restore-partial-"
"""How names begin of what is written and not complete."""
_QUICKTIME = ("mp4", "mov", "ipod")
MATROSKA = ("matroska", "webm")
_ROTATES = (*_QUICKTIME, *MATROSKA)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_REORDERING = ("avi", "flv", "mpeg")
"""Containers without presentation times, or that move them when a decoding time is negative."""
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
    try:
        there = target.exists()
    except OSError as error:
        raise unwritable(target, error) from error
    if there:
        if source.exists() and os.path.samefile(source, target):
            raise OutputError(f"{target}: is the input itself; choose another name for the output")
        if not target.is_file() and not target.is_dir():
            raise OutputError(f"{target}: is no file; for a pipe give -, which writes y4m")
        if not overwrite and not target.is_dir():
            raise OutputError(f"{target}: exists already; add --overwrite or choose another name")
    folder = target.parent
    if not folder.is_dir() and not is_pattern(target):
        missing = f"its folder does not exist; create {folder} first"
        what = f"{folder} is not a folder; choose another" if folder.exists() else missing
        raise OutputError(f"{target}: {what}")


def left_over(target: Path) -> list[str]:
    """Name what earlier runs have left where a target is written, for the user to remove."""
    places = (target, *target.absolute().parents)
    place = next(folder for folder in places if folder.is_dir())
    return [
        f"{path} was left by a run that was killed, unless one still goes on; remove it"
        for path in sorted(place.glob(f"{PARTIAL}*"))
    ]


def unwritable(target: Path, error: Exception) -> OutputError:
    """Return the error to raise where the system or FFmpeg cannot write a target."""
    reason = getattr(error, "strerror", None) or error
    full = getattr(error, "errno", None) in _FULL
    advice = "free space" if full else "choose another place, or a .mkv file"
    return OutputError(f"{target}: cannot be written ({reason}); {advice}")


class _Nowhere(io.BytesIO):
    """A file in memory whose name says which container it is to be."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def open_output(
    partial: Path | None, target: Path, time_base: Fraction
) -> av.container.OutputContainer:
    """Create the container that the target's ending stands for; nothing is written yet.

    Args:
        partial: The temporary name; None keeps it in memory.
        target: The final name.
        time_base: Of the video, in which a late start must be stored exactly.

    Raises:
        OutputError: If the ending is unknown.
    """
    place = _Nowhere(target.name) if partial is None else f"file:{partial.absolute()}"
    try:
        output = av.open(place, "w")
    except (ValueError, av.error.FFmpegError) as error:
        raise OutputError(
            f"{target}: unknown kind of file; use an ending such as .mkv or .mp4"
        ) from error
    output.container_options.update(_MUXER_OPTIONS.get(output.format.name, {}))
    if output.format.name in _QUICKTIME:
        # Edit lists (a late start) are stored in this unit; the default is a millisecond.
        output.container_options["movie_timescale"] = str(max(time_base.denominator, 1000))
    return output


def keep_foreign_tags(output: av.container.OutputContainer, tags: Mapping[str, str]) -> None:
    """Let MP4 and MOV hold tags such as com.apple.quicktime.model, which phones write.

    Without such tags the usual place is better: more programs look for a title there, and cover
    art has no other.
    """
    cover = any(s.disposition & Disposition.attached_pic for s in output.streams.video)
    foreign = any(name.startswith("com.") for name in tags)
    if output.format.name in _QUICKTIME and foreign and not cover:
        output.container_options["movflags"] = "use_metadata_tags"


def add_video(
    output: av.container.OutputContainer,
    plan: EncoderPlan,
    info: VideoInfo,
    tags: ColorTags,
    size: tuple[int, int],
) -> tuple[av.VideoStream, list[str]]:
    """Add the video stream, described as the source described it.

    Returns:
        The stream and lines that say what the container or encoder cannot carry.
    """
    container, notes = output.format.name, []
    stream = output.add_stream(plan.codec, rate=info.average_rate or Fraction(25))
    stream.width, stream.height = size
    stream.pix_fmt = plan.pix_fmt
    stream.time_base = info.time_base
    context = stream.codec_context
    context.time_base = info.time_base
    if info.sample_aspect_ratio:
        context.sample_aspect_ratio = info.sample_aspect_ratio
    context.colorspace, context.color_range = tags.matrix, tags.range
    context.color_primaries, context.color_trc = tags.primaries, tags.transfer
    context.options = dict(plan.options)
    if tags.chroma_location and info.format.family == "yuv":
        context.options.setdefault("chroma_sample_location", str(tags.chroma_location))
    if container in _NO_REORDERING and plan.codec.startswith("libx26"):
        context.options.setdefault("bf", "0")
    if plan.codec == "libx265" and container in _QUICKTIME:
        context.codec_tag = "hvc1"
    if info.mastering is not None and plan.codec != "libx265":
        notes.append(f"{plan.codec} cannot carry the HDR10 mastering data; libx265 can")
    if info.display_matrix is not None and container in _ROTATES:
        matrix = info.display_matrix
        stream.set_display_matrix(_turn_only(matrix) if container in MATROSKA else matrix)
    elif info.display_matrix is not None:
        notes.append(f"{container} cannot say that the picture is rotated; .mkv and .mp4 can")
    return stream, notes


def _turn_only(matrix: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out scale and shift: Matroska takes nothing but a plain turn, mirrored or not."""
    turn = [0 if not value else 65536 if value > 0 else -65536 for value in matrix[:5]]
    plain = 0 in (matrix[0], matrix[1]) and 0 in (matrix[3], matrix[4])
    return (turn[0], turn[1], 0, turn[3], turn[4], 0, 0, 0, 1 << 30) if plain else matrix


def open_encoder(context: av.VideoCodecContext, plan: EncoderPlan) -> None:
    """Open the encoder and make sure that it knows every option.

    Raises:
        UsageError: If it refuses the options, the size or the pixel format.
    """
    if plan.codec == "libsvtav1":
        os.environ.setdefault("SVT_LOG", "1")  # its log goes to stderr past FFmpeg's
    try:
        context.open()
    except (av.error.FFmpegError, ValueError) as error:
        asked = ", ".join(f"{key}={value}" for key, value in plan.options.items())
        raise UsageError(
            f"{plan.codec} refuses {context.width}x{context.height} {plan.pix_fmt} with {asked};"
            " check --enc, --pix-fmt and --codec"
        ) from error
    unknown = [key for key in context.options if key in plan.options]
    if unknown:
        raise UsageError(f"{plan.codec} has no option {', '.join(unknown)}; check --enc")


class FieldMarker:
    """Mark pictures as interlaced, which PyAV can only do through FFmpeg's setfield filter.

    Args:
        order: 'tff' or 'bff'.
    """

    def __init__(self, order: str) -> None:
        self._order = order
        self._graph: av.filter.Graph | None = None

    def mark(self, picture: av.VideoFrame) -> av.VideoFrame:
        """Return the picture with its fields' order set."""
        if self._graph is None:
            self._graph = graph = av.filter.Graph()
            source = graph.add_buffer(
                width=picture.width,
                height=picture.height,
                format=picture.format.name,
                time_base=picture.time_base,
            )
            setfield, sink = graph.add("setfield", self._order), graph.add("buffersink")
            source.link_to(setfield)
            setfield.link_to(sink)
            graph.configure()
        self._graph.push(picture)
        return self._graph.pull()
