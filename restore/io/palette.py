"""Reduce pictures to 256 colours, for GIF."""

from fractions import Fraction

import av
import av.filter


def quantise(picture: av.VideoFrame) -> av.VideoFrame:
    """Return a picture as a palette of its own 256 colours and an index for each pixel.

    Up to 255 colours stay exact; alpha becomes opaque (from 128 on) or transparent.

    Args:
        picture: Pixel format bgra.
    """
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=picture.width,
        height=picture.height,
        format=picture.format.name,
        time_base=Fraction(1, 100),
    )
    split = graph.add("split")
    colours = graph.add("palettegen", "stats_mode=single")
    use = graph.add("paletteuse", "new=1:dither=sierra2_4a:alpha_threshold=128")
    sink = graph.add("buffersink")
    source.link_to(split)
    split.link_to(use, 0, 0)
    split.link_to(colours, 1, 0)
    colours.link_to(use, 0, 1)
    use.link_to(sink)
    graph.configure()
    picture.pts, picture.time_base = 0, Fraction(1, 100)
    graph.push(picture)
    graph.push(None)
    return graph.pull()
