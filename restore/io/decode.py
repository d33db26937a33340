"""Decode one video file: skip what is damaged, start anywhere."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import av.error

from restore.errors import InputError
from restore.io.demux import MAX_PIXELS, PIPE, open_media
from restore.io.probe import StreamFacts, dolby_vision_profile
from restore.io.timestamps import raw_stamp

_SHORT = Fraction(1, 2)
"""Seconds by which a file may end before the end that it announces."""
_WITH_ALPHA = {"vp8": "libvpx", "vp9": "libvpx-vp9"}
"""Decoders that read the transparency beside the picture, which FFmpeg's own leave out."""
_BACK_OFF = (Fraction(0), Fraction(10))
"""Seconds before the target that a seek aims at; then the file is read from its beginning."""


class FileSource:
    """The best video stream of a media file, as FFmpeg's pictures in presentation order.

    Args:
        path: The file, or `PIPE`.
        max_pixels: Largest picture that may be decoded.

    Attributes:
        index: The stream's index in the container.
        time_base: Of the pictures' timestamps.
        damaged: Packets or pictures that could not be decoded or are incomplete.
        notes: Lines worth telling the user.

    Raises:
        InputError: If the file cannot be read, or its video not be decoded.
    """

    def __init__(self, path: Path, max_pixels: int = MAX_PIXELS) -> None:
        self.path, self.max_pixels = path, max_pixels
        self.damaged = 0
        self.notes: list[str] = []
        self._end = Fraction(0)
        self._container = open_media(path, max_pixels=max_pixels)
        try:
            stream = self._container.streams.best("video")
            if stream is None:
                raise InputError(f"{path}: holds no video stream; give a file with video")
            if stream.codec_context is None:
                raise InputError(f"{path}: no decoder for its video codec; convert it first")
            self.index = int(stream.index)
            self.time_base = Fraction(stream.time_base)
            self._check_size(stream)
            self._prepare()
            self._check_dolby_vision()
        except BaseException:
            self._container.close()
            raise

    @property
    def begin(self) -> Fraction:
        """Time at which a player starts the file, in seconds."""
        return Fraction(self._container.start_time or 0, av.time_base)

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def facts(self) -> StreamFacts:
        """Return what the container says about the stream."""
        container, stream = self._container, self._stream()
        rate = stream.average_rate or stream.guessed_rate
        seconds = None
        if stream.duration is not None:
            seconds = stream.duration * self.time_base
        elif container.duration is not None:
            seconds = Fraction(container.duration, av.time_base)
        return StreamFacts(
            rate=None if rate is None else Fraction(rate),
            count=stream.frames or (round(seconds * rate) if seconds and rate else None),
            duration=seconds,
            sample_aspect_ratio=stream.sample_aspect_ratio or None,
            codec=stream.codec_context.codec.canonical_name,
            container=container.format.name,
            profile=stream.codec_context.profile,
            metadata=dict(container.metadata),
        )

    def pictures(self) -> Iterator[av.VideoFrame]:
        """Decode from the present place to the end; skip and count what cannot be decoded."""
        stream = self._stream()
        packets = self._container.demux(stream)
        while True:
            packet, pictures = None, []
            try:
                packet = next(packets, None)
            except (av.error.FFmpegError, OSError):
                self.damaged += 1  # the end of what can be read; the decoder may still hold frames
            if packet is not None and packet.has_sidedata("encryption_info"):
                raise InputError(f"{self.path}: the video is encrypted; give an unprotected copy")
            try:
                pictures = self._decoder.decode(packet)
            except av.error.EOFError:
                return
            except (av.error.FFmpegError, OSError):
                self.damaged += 1
            for picture in pictures:
                self.damaged += bool(picture.is_corrupt)
                stamp = raw_stamp(picture)
                if stamp is not None:
                    end = (stamp + (picture.duration or 0)) * self.time_base
                    self._end = max(self._end, end)
                yield picture
            if packet is None or packet.size == 0:
                return

    def pictures_from(self, target: Fraction) -> Iterator[av.VideoFrame]:
        """Decode from a time of the file on, exact to the picture.

        Args:
            target: Seconds on the file's own clock; earlier pictures are dropped.
        """
        wanted = target / self.time_base
        pictures = self.pictures() if self.path == PIPE else self._seek(target)
        for picture in pictures:
            stamp = raw_stamp(picture)
            if stamp is None or stamp >= wanted:
                yield picture
                break
        yield from pictures

    def missing_end(self) -> Fraction:
        """Return the seconds by which the file ends before its announced end; 0 if it does not.

        Meant for after the last picture. Reads the other streams where only they may go on.
        """
        stream = self._stream()
        if self.path == PIPE:
            return Fraction(0)
        if stream.duration is not None:
            start = stream.start_time or 0
            short = (start + stream.duration) * self.time_base - self._end
        elif self._container.duration is not None:
            total = Fraction(self._container.duration, av.time_base)
            if "matroska" not in self._container.format.name:  # which counts from zero
                total += self.begin
            short = total - self._end
            if short > _SHORT:
                short = total - max(self._end, self._last_packet())
        else:
            return Fraction(0)
        return short if short > _SHORT else Fraction(0)

    def _last_packet(self) -> Fraction:
        """Return the end of the last packet of all streams, in seconds."""
        last = Fraction(0)
        try:
            with open_media(self.path) as container:
                for packet in container.demux():
                    if packet.pts is not None and packet.size:
                        end = (packet.pts + (packet.duration or 0)) * Fraction(packet.time_base)
                        last = max(last, end)
        except (av.error.FFmpegError, OSError):
            pass  # what can be read is what counts
        return last

    def _seek(self, target: Fraction) -> Iterator[av.VideoFrame]:
        """Go to a key frame that gives pictures before the target; else to the beginning."""
        for margin in _BACK_OFF:
            place = int((target - margin) / self.time_base)
            try:
                self._container.seek(place, stream=self._stream())
            except (av.error.FFmpegError, OSError):
                break
            pictures = self.pictures()
            first = next(pictures, None)
            stamp = None if first is None else raw_stamp(first)
            if first is not None and stamp is not None and stamp * self.time_base <= target:
                return _prepend(first, pictures)
        self._container.close()
        self._container = open_media(self.path, max_pixels=self.max_pixels)
        self._prepare()
        return self.pictures()

    def _stream(self) -> av.VideoStream:
        return self._container.streams[self.index]

    def _prepare(self) -> None:
        stream = self._stream()
        # Frame threads would lose the pictures that follow the last error of a damaged file.
        stream.thread_type = "SLICE"
        self._decoder = stream.codec_context
        if stream.metadata.get("alpha_mode") == "1" and stream.codec_context.name in _WITH_ALPHA:
            name = _WITH_ALPHA[stream.codec_context.name]
            self._decoder = av.CodecContext.create(name, "r")
            for tag in ("color_primaries", "color_trc", "colorspace", "color_range"):
                setattr(self._decoder, tag, getattr(stream.codec_context, tag))
        self._decoder.options = {"max_pixels": str(self.max_pixels)}

    def _check_size(self, stream: av.VideoStream) -> None:
        width, height = stream.codec_context.width, stream.codec_context.height
        if width * height > self.max_pixels:
            raise InputError(
                f"{self.path}: declares {width}x{height}, more than {self.max_pixels} pixels;"
                " if you trust the file, raise --max-pixels"
            )

    def _check_dolby_vision(self) -> None:
        profile = dolby_vision_profile(self._container, self.index)
        if profile == "5":
            raise InputError(
                f"{self.path}: Dolby Vision profile 5 has no ordinary picture;"
                " convert it to HDR10 first"
            )
        if profile is not None:
            self.notes.append(f"Dolby Vision profile {profile}: only its base layer is kept")


def _prepend(first: av.VideoFrame, pictures: Iterator[av.VideoFrame]) -> Iterator[av.VideoFrame]:
    yield first
    yield from pictures
