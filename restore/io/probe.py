"""What a video stream says about itself, gathered from the container and its first picture."""

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

import av
import av.filter
import av.logging
from av.sidedata.sidedata import Type

from restore.io.color import resolve_color
from restore.io.formats import Layout
from restore.io.frame import ColorSpec, ColorTags, PixelFormat
from restore.io.timestamps import raw_stamp

_LOCATIONS = ("unspecified", "left", "center", "topleft", "top", "bottomleft", "bottom")


@dataclass(frozen=True)
class Mastering:
    """HDR10 static metadata (SMPTE ST 2086 and CTA-861.3)."""

    primaries: tuple[tuple[Fraction, Fraction], ...] | None = None
    """Chromaticities x, y of red, green, blue and white."""
    luminance: tuple[Fraction, Fraction] | None = None
    """Minimum and maximum in cd/m²."""
    light_level: tuple[int, int] | None = None
    """MaxCLL and MaxFALL in cd/m²."""


@dataclass(frozen=True)
class VideoInfo:
    """Facts about the video stream that a reader decodes."""

    width: int
    height: int
    format: PixelFormat
    color: ColorSpec
    time_base: Fraction
    average_rate: Fraction | None
    """Frames per second, if the container knows; never used for timing."""
    frame_count: int | None
    """From the container's index or duration times rate: an estimate for progress only."""
    duration: Fraction | None
    """Seconds, an estimate."""
    rotation: int
    """Degrees counter-clockwise by which a player turns the picture; frames are not turned."""
    sample_aspect_ratio: Fraction | None
    codec: str
    container: str
    profile: str | None = None
    field_order: str = "progressive"
    """'progressive', 'tff' or 'bff'."""
    display_matrix: tuple[int, ...] | None = None
    mastering: Mastering | None = None
    native_format: str = ""
    """The name of the layout that the decoder gives."""
    start_time: Fraction = Fraction(0)
    """Time of the first picture in seconds."""
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamFacts:
    """What the container alone says; see `VideoInfo` for the meaning."""

    rate: Fraction | None
    count: int | None
    duration: Fraction | None
    sample_aspect_ratio: Fraction | None
    codec: str
    container: str
    profile: str | None
    metadata: dict[str, str]


def probe(
    picture: av.VideoFrame,
    layout: Layout,
    color: ColorSpec,
    facts: StreamFacts,
    time_base: Fraction,
    offset: Fraction,
) -> VideoInfo:
    """Join what the container says with what the first picture shows."""
    stamp = raw_stamp(picture) or 0
    return VideoInfo(
        width=picture.width,
        height=picture.height,
        format=layout.format,
        color=color,
        time_base=time_base,
        average_rate=facts.rate,
        frame_count=facts.count,
        duration=facts.duration,
        rotation=picture.rotation,
        sample_aspect_ratio=facts.sample_aspect_ratio,
        codec=facts.codec,
        container=facts.container,
        profile=facts.profile,
        field_order=show(picture)[1],
        display_matrix=read_display_matrix(picture),
        mastering=read_mastering(picture),
        native_format=picture.format.name,
        start_time=stamp * time_base - offset,
        metadata=facts.metadata,
    )


@contextmanager
def _listening() -> Iterator[None]:
    """Let FFmpeg speak for a moment, to a capture and not to the terminal."""
    level = av.logging.get_level()
    av.logging.set_level(av.logging.INFO)
    try:
        yield
    finally:
        av.logging.set_level(level)


def dolby_vision_profile(container: av.container.InputContainer, index: int) -> str | None:
    """Return the Dolby Vision profile of a stream; PyAV tells it only in its dump of the file."""
    with _listening():
        text = container.dumps_format()
    video = text.split(f"Stream #0:{index}", 1)[-1].split("Stream #")[0]
    found = re.search(r"DOVI configuration record:.*?profile: (\d+)", video)
    return found[1] if found else None


def show(picture: av.VideoFrame) -> tuple[int, str]:
    """Read chroma siting and field order, which PyAV does not expose, through FFmpeg's showinfo.

    Returns:
        The siting as in `ColorTags.chroma_location`, and 'progressive', 'tff' or 'bff'.
    """
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=picture.width,
        height=picture.height,
        format=picture.format.name,
        time_base=Fraction(1, 25),
    )
    info, sink = graph.add("showinfo", "checksum=0"), graph.add("buffersink")
    source.link_to(info)
    info.link_to(sink)
    graph.configure()
    with _listening(), av.logging.Capture() as logs:
        graph.push(picture)
        graph.pull()
    text = " ".join(message for _, _, message in logs)
    siting = re.search(r"\bcl:(\w+)", text)
    order = re.search(r"\bi:([PTB])", text)
    location = _LOCATIONS.index(siting[1]) if siting and siting[1] in _LOCATIONS else 0
    return location, {"T": "tff", "B": "bff"}.get(order[1] if order else "P", "progressive")


def read_color(
    picture: av.VideoFrame, layout: Layout, location: int, input_matrix: str | None
) -> ColorSpec:
    """Read the colour tags of a picture and decide what they leave open."""
    value = int(picture.color_range)
    tags = ColorTags(
        matrix=int(picture.colorspace),
        range=value if value in (1, 2) else 2 if layout.full_range else 0,
        primaries=int(picture.color_primaries),
        transfer=int(picture.color_trc),
        chroma_location=location,
    )
    return resolve_color(tags, layout.format, picture.height, input_matrix)


def _side_data(picture: av.VideoFrame, kind: Type) -> bytes | None:
    """Return side data of a picture; PyAV gives none of it where it does not know one kind."""
    try:
        data = picture.side_data.get(kind)
    except ValueError:
        return None
    return None if data is None else bytes(data)


def read_display_matrix(picture: av.VideoFrame) -> tuple[int, ...] | None:
    """Return the nine numbers of the display matrix, if the picture carries one."""
    data = _side_data(picture, Type.DISPLAYMATRIX)
    if data is not None:
        return struct.unpack("<9i", data[:36])
    if picture.rotation == 0:
        return None
    # Known by its angle only: counter-clockwise in PyAV, rows of 16.16 numbers in the matrix.
    angle = math.radians(picture.rotation)
    cosine, sine = round(math.cos(angle) * 65536), round(math.sin(angle) * 65536)
    return (cosine, -sine, 0, sine, cosine, 0, 0, 0, 1 << 30)


def read_mastering(picture: av.VideoFrame) -> Mastering | None:
    """Return HDR10 static metadata, if the picture carries any."""
    display = _side_data(picture, Type.MASTERING_DISPLAY_METADATA)
    light = _side_data(picture, Type.CONTENT_LIGHT_LEVEL)
    if display is None and light is None:
        return None
    primaries = luminance = level = None
    if display is not None:
        raw = struct.unpack("<22i", display[:88])
        numbers = [Fraction(n, d or 1) for n, d in zip(raw[0:20:2], raw[1:20:2], strict=True)]
        pairs = tuple((numbers[i], numbers[i + 1]) for i in range(0, 8, 2))
        primaries = pairs if raw[20] else None
        luminance = (numbers[8], numbers[9]) if raw[21] else None
    if light is not None:
        level = struct.unpack("<2I", light[:8])
    return Mastering(primaries, luminance, level)
