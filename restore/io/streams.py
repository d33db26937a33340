"""Copy every stream but the restored one, packet by packet, in step with the video."""

import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import av.error
from av.stream import Disposition

from restore.io.demux import open_media
from restore.io.subtitles import Rewrite, rewriting

_STALE = ("encoder", "duration", "number_of_", "bps", "_statistics", "handler_name", "vendor_id")
_CONTAINER_OWN = {"encoder", "major_brand", "minor_version", "compatible_brands", "alpha_mode"}


def container_holds(format_name: str, stream: av.stream.Stream) -> bool:
    """Find out by writing a header to memory whether a container holds a stream as it is."""
    try:
        with av.open(io.BytesIO(), "w", format=format_name) as trial:
            _add(trial, stream)
            trial.start_encoding()
    except (av.error.FFmpegError, ValueError, OSError):
        return False
    return True


def container_holds_codec(format_name: str, encoder: str) -> bool:
    """Tell whether a container holds what an encoder makes."""
    try:
        with av.open(io.BytesIO(), "w", format=format_name) as trial:
            trial.add_stream(encoder)
            return True
    except (av.error.FFmpegError, ValueError, OSError):
        return False


def _add(output: av.container.OutputContainer, stream: av.stream.Stream) -> av.stream.Stream:
    copy = output.add_stream_from_template(stream, opaque=True)
    copy.metadata.update(stream.metadata)
    copy.disposition = stream.disposition
    copy.time_base = stream.time_base
    return copy


def kept_metadata(metadata: dict[str, str]) -> dict[str, str]:
    """Drop the tags that describe the old encoding or container and would now be wrong."""
    return {
        key: value
        for key, value in metadata.items()
        if key.lower() not in _CONTAINER_OWN and not key.lower().startswith(_STALE)
    }


def describe_stream(stream: av.stream.Stream) -> str:
    """Name a stream for a warning, such as 'subtitle stream 3 (ass, eng)'."""
    context = stream.codec_context
    parts = [
        context.name if context is not None else getattr(stream, "name", None),
        stream.language,
    ]
    detail = ", ".join(str(part) for part in parts if part)
    return f"{stream.type} stream {stream.index}" + (f" ({detail})" if detail else "")


@dataclass
class _Track:
    """One copied stream: where it goes, how it is rewritten, the last decoding time written."""

    target: av.stream.Stream
    rewrite: Rewrite | None = None
    last: int | None = None


def _rewritten(packet: av.Packet, rewrite: Rewrite) -> av.Packet | None:
    """Return a packet with other data and the same times; None where nothing is left to show."""
    data = rewrite(bytes(packet))
    if not data:
        return None
    copy = av.Packet(data)
    copy.pts, copy.dts, copy.duration = packet.pts, packet.dts, packet.duration
    copy.time_base, copy.is_keyframe = packet.time_base, True
    return copy


@dataclass
class StreamCopier:
    """Copy the other streams of a file into an output container.

    Args:
        path: The source file, opened a second time.
        skip: Index of the stream that is encoded anew.
        offset: Seconds taken from every timestamp.
        end: Time in the source after which packets are dropped, or None.
        cut: Whether packets before `offset` are dropped (else `offset` only moves them).
        leave_out: Kinds of streams that are not wanted, such as "audio".

    Attributes:
        notes: Streams that were left out, and timestamps that were repaired.
    """

    path: Path
    skip: int
    offset: Fraction = Fraction(0)
    end: Fraction | None = None
    cut: bool = False
    leave_out: Collection[str] = ()
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._source = open_media(self.path)
        self._tracks: dict[int, _Track] = {}
        self._packets: Iterator[av.Packet] = iter(())
        self._held: av.Packet | None = None
        self._repaired = 0

    def add_streams(self, output: av.container.OutputContainer, *, before: bool) -> None:
        """Add the streams that come before (or after) the video stream in the source's order.

        Args:
            output: Receives the streams.
            before: Whether to add those in front of the video or those behind it.
        """
        name = output.format.name
        for stream in self._source.streams:
            if stream.index == self.skip or (stream.index < self.skip) != before:
                continue
            if stream.type in self.leave_out or self._made_anew(stream):
                continue
            cover = bool(stream.disposition & Disposition.attached_pic)
            if cover and name == "matroska":
                self._attach_picture(output, stream)
            elif not (cover and name == "mov") and container_holds(name, stream):
                self._tracks[stream.index] = _Track(_add(output, stream))
            elif not self._add_rewritten(output, stream):
                hint = " (.mkv does)" if container_holds("matroska", stream) else ""
                what = f"{name} does not hold it{hint}"
                self.notes.append(f"{describe_stream(stream)} is left out: {what}")

    def _made_anew(self, stream: av.stream.Stream) -> bool:
        """Tell whether the muxer makes this track itself: timecode from a tag, chapter titles."""
        if stream.type != "data":
            return False
        titles = stream.name == "bin_data" and bool(self._source.chapters())
        return titles or "timecode" in stream.metadata

    def _add_rewritten(
        self, output: av.container.OutputContainer, stream: av.stream.Stream
    ) -> bool:
        """Add text subtitles as another kind of text; tell whether that was possible."""
        if stream.type != "subtitle" or stream.codec_context is None:
            return False
        found = rewriting(stream.codec_context.name, output.format.name)
        if found is None:
            return False
        try:
            target = output.add_mux_stream(found[0])
        except ValueError:
            return False
        target.metadata.update(stream.metadata)
        target.disposition = stream.disposition
        target.time_base = stream.time_base
        self._tracks[stream.index] = _Track(target, found[1])
        self.notes.append(f"{describe_stream(stream)} is written as {found[0]}: words, no styles")
        return True

    def _attach_picture(
        self, output: av.container.OutputContainer, stream: av.stream.Stream
    ) -> None:
        """Write cover art the way Matroska holds it: as an attached file."""
        with open_media(self.path) as container:
            packet = next(container.demux(container.streams[stream.index]), None)
            data = b"" if packet is None else bytes(packet)
        kind = "png" if stream.codec_context is not None and stream.name == "png" else "jpeg"
        name = stream.metadata.get("filename", "cover." + ("png" if kind == "png" else "jpg"))
        output.add_attachment(name, stream.metadata.get("mimetype", f"image/{kind}"), data)

    def copy_header(self, output: av.container.OutputContainer, video: av.stream.Stream) -> None:
        """Copy global tags, chapters, and the video stream's tags and disposition."""
        source = self._source.streams[self.skip]
        output.metadata.update(kept_metadata(dict(self._source.metadata)))
        video.metadata.update(kept_metadata(dict(source.metadata)))
        video.disposition = source.disposition & ~Disposition.attached_pic
        chapters = []
        for chapter in self._source.chapters():
            base = Fraction(chapter["time_base"])
            shift = round(self.offset / base)
            last = None if self.end is None else round((self.end - self.offset) / base)
            start, end = chapter["start"] - shift, chapter["end"] - shift
            end = end if last is None else min(end, last)
            if end > max(start, 0) or not self.cut:
                chapters.append(
                    chapter | {"start": max(start, 0) if self.cut else start, "end": end}
                )
        if chapters:
            output.set_chapters(chapters)
        streams = [s for s in self._source.streams if s.index in self._tracks]
        streams = [s for s in streams if s.type != "attachment"]
        self._packets = self._source.demux(streams) if streams else iter(())

    def pump(self, output: av.container.OutputContainer, until: Fraction | None) -> None:
        """Write the packets up to a time of the output, or all that are left."""
        while True:
            packet = self._held
            self._held = None
            if packet is None:
                packet = self._next()
            if packet is None:
                return
            stamp = packet.dts if packet.dts is not None else packet.pts
            time = None if stamp is None else stamp * packet.time_base - self.offset
            if until is not None and time is not None and time > until:
                self._held = packet
                return
            self._write(output, packet, time)

    def close(self) -> None:
        """Close the second view of the source."""
        self._source.close()
        if self._repaired:
            self.notes.append(
                f"{self._repaired} packets had timestamps that did not increase; moved"
            )

    def _next(self) -> av.Packet | None:
        while True:
            try:
                packet = next(self._packets, None)
            except (av.error.FFmpegError, OSError):
                return None
            if packet is None or packet.size > 0:
                return packet

    def _write(
        self, output: av.container.OutputContainer, packet: av.Packet, time: Fraction | None
    ) -> None:
        track = self._tracks[packet.stream_index]
        if track.rewrite is not None:
            rewritten = _rewritten(packet, track.rewrite)
            if rewritten is None:
                return
            packet = rewritten
        picture = bool(track.target.disposition & Disposition.attached_pic)
        if time is not None and not picture:
            if self.cut and time < 0:
                return
            if self.end is not None and time >= self.end - self.offset:
                return
        shift = 0 if picture else round(self.offset / packet.time_base)
        dts = None if packet.dts is None else packet.dts - shift
        pts = None if packet.pts is None else packet.pts - shift
        if dts is None:
            dts = pts if pts is not None else track.last
        if track.last is not None and dts is not None and dts <= track.last:
            sparse = track.target.type in ("subtitle", "data")
            if not sparse or dts < track.last:
                self._repaired += 1
                dts = track.last + 1
        packet.dts = dts
        packet.pts = dts if pts is None or (dts is not None and pts < dts) else pts
        track.last = dts
        packet.stream = track.target
        output.mux_one(packet)
