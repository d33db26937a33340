"""Choose the encoder: the input's codec family at visually lossless quality, or the nearest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import av

from restore.errors import OutputError, UsageError
from restore.io.formats import layout_of, lossless_choice, nearest_choice
from restore.io.frame import PixelFormat
from restore.io.probe import Mastering, VideoInfo
from restore.io.streams import container_holds_codec

_FAMILY = {
    "h264": ("libx264", "libx264rgb"),
    "hevc": ("libx265",),
    "av1": ("libsvtav1",),
    "vp9": ("libvpx-vp9",),
    "vp8": ("libvpx", "libvpx-vp9"),
    "prores": ("prores_ks",),
    "mjpeg": ("mjpeg",),
    "webp": ("libwebp_anim",),
    "theora": ("libvpx",),
} | {
    name: (name,)
    for name in (
        "ffv1", "apng", "png", "qtrle", "utvideo", "huffyuv", "ffvhuff", "magicyuv", "v210",
        "rawvideo", "jpeg2000", "tiff", "bmp", "dpx", "exr", "gif",
    )
}  # fmt: skip
_LOSSLESS = {
    "ffv1", "apng", "png", "qtrle", "utvideo", "huffyuv", "ffvhuff", "magicyuv", "rawvideo",
    "tiff", "bmp", "dpx", "exr", "jpeg2000", "v210",
}  # fmt: skip
"""MP4 may hold some of these, but next to nothing plays them there: not chosen unless asked for."""

SMALLEST_X265 = 64
"""x265 writes outside its buffers when a side is shorter than its coding block (seen with 4.1)."""
_TOO_NEW = {
    "ffv1": {
        "yuva422p12le", "yuva444p12le", "gbrap14le", "gray14le", "gray32le", "grayf16le",
        "grayf32le", "gbrpf16le", "gbrpf32le", "gbrapf16le", "gbrapf32le",
    }
}  # fmt: skip
"""Layouts that FFmpeg 5 and 6, in wide use, cannot read: written as deeper ones, without loss."""

_DEFAULTS: dict[str, dict[str, str]] = {
    "libx264": {"preset": "medium", "crf": "15"},
    "libx264rgb": {"preset": "medium", "crf": "15"},
    "libx265": {"preset": "fast", "crf": "16"},
    "libsvtav1": {"preset": "8", "crf": "18"},
    "libvpx-vp9": {"crf": "16", "b": "0", "deadline": "good", "cpu-used": "4", "row-mt": "1"},
    "libvpx": {"crf": "8", "b": "40000000", "deadline": "good", "cpu-used": "4"},
    "prores_ks": {"vendor": "apl0"},
    "ffv1": {"level": "3", "slicecrc": "1", "g": "1"},
    "mjpeg": {"flags": "+qscale", "global_quality": str(2 * 118), "huffman": "optimal"},
    "libwebp_anim": {"lossless": "1"},
}
_PRORES = {"Proxy": "0", "LT": "1", "Standard": "2", "HQ": "3", "4444": "4", "XQ": "5"}


@dataclass(frozen=True)
class EncoderPlan:
    """What the writer opens."""

    codec: str
    pix_fmt: str
    options: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def plan_encoder(
    info: VideoInfo,
    container: str,
    size: tuple[int, int],
    *,
    codec: str | None = None,
    crf: float | None = None,
    pix_fmt: str | None = None,
    options: Mapping[str, str] | None = None,
    interlaced: bool = False,
) -> EncoderPlan:
    """Choose encoder, pixel format and options.

    Args:
        info: The input.
        container: FFmpeg's name of the target container.
        size: Output width and height.
        codec: Encoder asked for, or None for the input's family.
        crf: Constant quality asked for.
        pix_fmt: Pixel format asked for.
        options: The encoder's own options, which win over the defaults.
        interlaced: Whether the pictures are interlaced.

    Raises:
        UsageError: If the encoder or the pixel format asked for does not exist.
        OutputError: If the container holds nothing that keeps the picture.
    """
    target = _parse_format(pix_fmt) if pix_fmt else info.format

    def holds(name: str) -> bool:
        if codec is None and _unusual(name, container):
            return False
        if name == "libx265" and min(size) < SMALLEST_X265:
            return False
        return container_holds_codec(container, name)

    if codec is not None:
        name, chosen, notes = _asked(codec, holds, target, pix_fmt, size)
    else:
        name, chosen, notes = _automatic(info, holds, target, size)
    merged = dict(_DEFAULTS.get(name, {}))
    if name == "prores_ks" and info.profile in _PRORES:
        merged["profile"] = _PRORES[info.profile]
    if interlaced:
        merged["field_order"] = {"tff": "tt", "bff": "bb"}.get(info.field_order, "progressive")
        if name in ("libx264", "prores_ks"):
            merged["flags"] = "+ildct+ilme"
    if name == "libx265":
        merged["x265-params"] = ":".join(["log-level=error", *_x265_hdr(info.mastering)])
    if crf is not None:
        if "crf" not in merged and codec is None:
            raise UsageError(
                f"{name} has no constant quality (crf); choose another encoder or options"
            )
        merged["crf"] = f"{crf:g}"
    for key, value in (options or {}).items():
        joined = key == "x265-params" and key in merged
        merged[key] = f"{merged[key]}:{value}" if joined else value
    return EncoderPlan(name, chosen, merged, tuple(notes))


def _unusual(encoder: str, container: str) -> bool:
    """Tell whether next to nothing plays a codec in a container, although it could be written."""
    if container in ("mp4", "ipod"):
        return encoder in _LOSSLESS
    if encoder == "rawvideo":
        return container in ("matroska", "webm")
    # The muxer of Ogg takes any codec at first and fails at the header.
    return container in ("ogg", "ogv") and encoder != "libvpx"


def _parse_format(name: str) -> PixelFormat:
    try:
        av.VideoFormat(name)
    except ValueError as error:
        raise UsageError(
            f"unknown pixel format {name!r}; for example yuv420p or yuv420p10le"
        ) from error
    layout = layout_of(name)
    if layout.kind not in ("planar", "packed"):
        raise UsageError(
            f"pixel format {name!r} cannot be written; for example yuv420p or yuv420p10le"
        )
    return layout.format


def encoder_formats(name: str) -> list[str]:
    """Return the pixel formats an encoder takes; an empty list for an unknown encoder."""
    try:
        formats = av.Codec(name, "w").video_formats
    except ValueError:
        return []
    if name == "rawvideo":
        return ["yuv420p", "yuv422p", "yuv444p", "yuv411p", "gray", "yuv420p10le", "yuv422p10le"]
    if name == "gif":
        return ["pal8"]  # the others have fewer colours, and the same for every picture
    return [f.name for f in formats or () if f.name not in _TOO_NEW.get(name, ())]


def _asked(
    codec: str,
    holds: Callable[[str], bool],
    target: PixelFormat,
    pix_fmt: str | None,
    size: tuple[int, int],
) -> tuple[str, str, list[str]]:
    usual = {"h264": "libx264", "x264": "libx264", "hevc": "libx265", "h265": "libx265"}
    usual |= {"x265": "libx265", "av1": "libsvtav1", "vp9": "libvpx-vp9", "vp8": "libvpx"}
    name = usual.get(codec, "prores_ks" if codec == "prores" else codec)
    formats = encoder_formats(name)
    if not formats:
        raise UsageError(f"unknown video encoder {codec!r}; for example libx264, libx265 or ffv1")
    if name == "libx265" and min(size) < SMALLEST_X265:
        other = _asked("libx264", holds, target, pix_fmt, size)
        return *other[:2], [f"written as libx264: libx265 fails below {SMALLEST_X265} pixels"]
    if not holds(name):
        raise OutputError(f"the container does not hold {codec}; write to a .mkv file")
    if pix_fmt in formats:
        return name, pix_fmt, []
    exact = lossless_choice(target, formats)
    if pix_fmt is not None and exact is None:
        raise UsageError(f"{codec} does not take {pix_fmt}; it takes {', '.join(formats)}")
    chosen = exact or nearest_choice(target, formats)
    return name, *_fit_size(name, chosen, formats, size)


def _automatic(
    info: VideoInfo, holds: Callable[[str], bool], target: PixelFormat, size: tuple[int, int]
) -> tuple[str, str, list[str]]:
    family = _FAMILY.get(info.codec, ())
    for name in (*family, *_fallbacks(target)):
        formats = encoder_formats(name)
        exact = lossless_choice(target, formats)
        if exact is None or not holds(name):
            continue
        chosen, notes = _fit_size(name, exact, formats, size)
        if name not in family:
            notes.insert(0, f"{info.codec} video is written as {name} ({chosen})")
        return name, chosen, notes
    for name in (*family, "libx264", "libx265", "libvpx-vp9", "gif"):
        # ProRes takes 10 of ProRes 4444's 12 bits, GIF 256 colours a picture; both keep alpha.
        if name in ("prores_ks", "gif") and holds(name):
            chosen = nearest_choice(target, encoder_formats(name))
            return name, chosen, [f"{info.format.name} video is written as {name} {chosen}"]
        if holds(name) and not target.alpha:
            formats = encoder_formats(name)
            chosen, notes = _fit_size(name, nearest_choice(target, formats), formats, size)
            return name, chosen, [f"{info.format.name} video is written as {name} {chosen}", *notes]
    raise OutputError(
        f"nothing that it can hold keeps {info.format.name} video; write to a .mkv file"
    )


def _fallbacks(fmt: PixelFormat) -> list[str]:
    """Encoders for an input whose own family cannot be written."""
    if fmt.family == "rgb" or fmt.alpha or (fmt.depth > 10 and fmt.subsampling == "444"):
        return ["ffv1", "qtrle", "apng", "png"]
    first = "libx264" if fmt.depth == 8 else "libx265"
    return [first, "libx264", "libvpx-vp9", "ffv1"]


def _fit_size(
    name: str, pix_fmt: str, formats: Sequence[str], size: tuple[int, int]
) -> tuple[str, list[str]]:
    """Use 4:4:4 where the codec's own syntax cannot express an odd size with subsampled chroma."""
    fmt = layout_of(pix_fmt).format
    odd = (fmt.log2_chroma_w and size[0] % 2) or (fmt.log2_chroma_h and size[1] % 2)
    if not odd or name not in ("libx264", "libx265", "libsvtav1"):
        return pix_fmt, []
    full = PixelFormat.build("yuv", fmt.depth, alpha=fmt.alpha).name
    if full not in formats:
        raise OutputError(
            f"{name} cannot write the odd size {size[0]}x{size[1]}; use codec libx265"
        )
    return full, [
        f"written as {full}: {size[0]}x{size[1]} is odd, {name} needs even sizes for {pix_fmt}"
    ]


def _x265_hdr(mastering: Mastering | None) -> list[str]:
    """Write HDR10 static metadata as x265 parameters (x265 manual, --master-display, --max-cll)."""
    if mastering is None:
        return []
    params = []
    if mastering.primaries and mastering.luminance:
        names = ("R", "G", "B", "WP")
        points = dict(zip(names, mastering.primaries, strict=True))
        text = "".join(
            f"{n}({_units(points[n][0], 50000)},{_units(points[n][1], 50000)})"
            for n in ("G", "B", "R", "WP")
        )
        low, high = (_units(value, 10000) for value in mastering.luminance)
        params.append(f"master-display={text}L({high},{low})")
    if mastering.light_level:
        params.append("max-cll={},{}".format(*mastering.light_level))
    return [*params, "hdr10=1"]


def _units(value: Fraction, scale: int) -> int:
    return round(value * scale)
