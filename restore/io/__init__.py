"""Read and write video files; the only package that imports av."""

from restore.io.color import add_residual, from_rgb, to_rgb
from restore.io.frame import ColorSpec, ColorTags, Frame, PixelFormat
from restore.io.probe import VideoInfo
from restore.io.reader import Seconds, VideoReader
from restore.io.writer import VideoWriter

__all__ = [
    "ColorSpec",
    "ColorTags",
    "Frame",
    "PixelFormat",
    "Seconds",
    "VideoInfo",
    "VideoReader",
    "VideoWriter",
    "add_residual",
    "from_rgb",
    "to_rgb",
]
