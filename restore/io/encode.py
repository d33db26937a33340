"""Frames in, packets out: pictures laid out, stamped and tagged for one opened encoder."""

import io
from dataclasses import dataclass
from fractions import Fraction

import av

from restore.errors import OutputError
from restore.io.convert import convert, converted_color, said_aloud
from restore.io.encoders import EncoderPlan
from restore.io.formats import Layout, layout_of, pack
from restore.io.frame import ColorSpec, Frame
from restore.io.probe import VideoInfo
from restore.io.target import FieldMarker, add_video, open_encoder

_WHOLE = {"libwebp_anim", "apng", "gif"}
"""Encoders of animations: a packet holds all frames, or counts on from the one before."""


@dataclass(frozen=True)
class Coding:
    """How the pictures of a run are coded: the same for every encoder that is opened for it."""

    plan: EncoderPlan
    info: VideoInfo
    size: tuple[int, int]
    """Width and height."""
    container: str
    """FFmpeg's name of the target container."""
    layout: Layout
    color: ColorSpec

    @classmethod
    def of(
        cls, plan: EncoderPlan, info: VideoInfo, size: tuple[int, int], container: str
    ) -> "Coding":
        """Derive layout and colour from a plan."""
        layout = layout_of(plan.pix_fmt)
        color = converted_color(info.color, info.format, layout.format, info.height, plan.codec)
        color = said_aloud(color, layout.format, info.height, size[1])
        return cls(plan, info, size, container, layout, color)

    @property
    def joinable(self) -> bool:
        """Whether the video may be put together from the packets of several encoders."""
        return self.plan.codec not in _WHOLE

    def add_to(self, output: av.container.OutputContainer) -> tuple[av.VideoStream, list[str]]:
        """Add the video stream to a container; see `add_video`."""
        return add_video(output, self.plan, self.info, self.color.tags, self.size)


class PictureEncoder:
    """Encode frames with one opened encoder.

    Args:
        coding: How.
        stream: The video stream whose encoder is used.

    Attributes:
        frames: Frames taken.
        notes: Timestamps that had to be moved.
    """

    def __init__(self, coding: Coding, stream: av.VideoStream) -> None:
        self._coding, self._stream = coding, stream
        self._nowhere: av.container.OutputContainer | None = None
        self._last: int | None = None
        self._awaited: set[int] = set()
        self._fields: FieldMarker | None = None
        if "field_order" in coding.plan.options and coding.info.field_order != "progressive":
            self._fields = FieldMarker(coding.info.field_order)
        self.frames = 0
        self.notes: list[str] = []

    @classmethod
    def alone(cls, coding: Coding) -> "PictureEncoder":
        """Open an encoder that belongs to no file but works as if it wrote to the container.

        Raises:
            UsageError: If the encoder refuses its options.
        """
        nowhere = av.open(io.BytesIO(), "w", format=coding.container)
        stream, _ = coding.add_to(nowhere)
        open_encoder(stream.codec_context, coding.plan)
        encoder = cls(coding, stream)
        encoder._nowhere = nowhere
        return encoder

    def close(self) -> None:
        """Free the memory of an encoder that was opened alone; a film has hundreds of them."""
        if self._nowhere is not None:
            self._nowhere.close()

    @property
    def extradata(self) -> bytes:
        """What a decoder must know before the first packet."""
        return bytes(self._stream.codec_context.extradata or b"")

    def encode(self, frame: Frame) -> list[av.Packet]:
        """Encode one frame; its pts is kept to the tick of the source's time base.

        Raises:
            ValueError: If the frame has another size.
            OutputError: If the encoder changes a timestamp.
        """
        coding = self._coding
        if (frame.width, frame.height) != coding.size:
            got = f"{frame.width}x{frame.height}"
            raise ValueError(f"frame is {got}, the encoder was opened for {coding.size}")
        self.frames += 1
        converted = convert(frame, coding.layout.format, coding.color)
        picture = pack(converted, coding.plan.pix_fmt)
        picture.pts = self._increasing(frame.pts)
        picture.time_base = coding.info.time_base
        picture.duration = frame.duration or 0
        tags = coding.color.tags
        picture.colorspace, picture.color_range = tags.matrix, tags.range
        picture.color_primaries, picture.color_trc = tags.primaries, tags.transfer
        if self._fields is not None:
            picture = self._fields.mark(picture)
        self._awaited.add(picture.pts)
        return self._checked(self._stream.encode(picture))

    def finish(self) -> list[av.Packet]:
        """Return the packets that the encoder still holds; it takes no frame after that.

        Raises:
            OutputError: If a frame has not come out again.
        """
        packets = self._checked(self._stream.encode(None))
        if self._awaited and self._coding.joinable:
            raise OutputError(
                f"{self._coding.plan.codec} lost {len(self._awaited)} of {self.frames} frames;"
                " choose another --codec"
            )
        return packets

    def _checked(self, packets: list[av.Packet]) -> list[av.Packet]:
        """Cross every packet off the list of the frames that must come out."""
        for packet in packets if self._coding.joinable else ():
            base = Fraction(packet.time_base) / self._coding.info.time_base
            pts = packet.pts if base == 1 or packet.pts is None else round(packet.pts * base)
            if pts not in self._awaited:
                raise OutputError(
                    f"{self._coding.plan.codec} gave the frame at {pts} ticks another time;"
                    " choose another --codec"
                )
            self._awaited.remove(pts)
        return packets

    def _increasing(self, pts: int | None) -> int:
        """Return a pts after the last one; frames without one follow at the average rate."""
        info = self._coding.info
        step = round(1 / ((info.average_rate or Fraction(25)) * info.time_base))
        if pts is None:
            pts = 0 if self._last is None else self._last + max(1, step)
        elif self._last is not None and pts <= self._last:
            self.notes.append(f"pts {pts} does not follow {self._last}; moved by one tick")
            pts = self._last + 1
        self._last = pts
        return pts
