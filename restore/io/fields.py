"""Interlaced pictures: two moments in one frame, told apart, joined into one, or only noticed."""

from collections import deque
from collections.abc import Iterator
from fractions import Fraction

import av
import av.error
import av.filter
import numpy as np
from numpy.typing import NDArray

from restore.io.formats import layout_of, unpack

Levels = NDArray[np.int32]
Stamped = tuple[av.VideoFrame, int]
"""A picture and its timestamp."""

DEINTERLACE = ("auto", "off", "on")
ORDERS = {"tff": "top field first", "bff": "bottom field first"}

_WATCHED = 60
"""Pictures looked at: two seconds are enough, and the look is not free."""
_FEWEST = 8
_TALLEST = 1152
"""Lines of the tallest interlaced formats; what is taller is never looked at."""
_COUNTED = ("single.tff", "single.bff", "single.progressive", "repeated.top", "repeated.bottom")
_COLUMNS = 512
_STEP = 12
"""Levels of 255 by which a line must stand out to count as a tooth of a comb."""


def make_graph(picture: av.VideoFrame, name: str, options: str) -> av.filter.Graph:
    """Return a graph of one FFmpeg filter for pictures like this one."""
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=picture.width,
        height=picture.height,
        format=picture.format.name,
        time_base=Fraction(1, 1000),
    )
    worker, sink = graph.add(name, options), graph.add("buffersink")
    source.link_to(worker)
    worker.link_to(sink)
    graph.configure()
    return graph


def pull_all(graph: av.filter.Graph) -> list[av.VideoFrame]:
    """Return the pictures that a graph has ready."""
    ready = []
    while True:
        try:
            ready.append(graph.pull())
        except (BlockingIOError, av.error.EOFError):
            return ready


def deinterlaced(pictures: Iterator[Stamped], every: bool) -> Iterator[Stamped]:
    """Make one progressive picture of each interlaced one (FFmpeg's bwdif), at its own time.

    Args:
        pictures: All of one size; two are held.
        every: Whether to treat pictures that are not flagged as interlaced, too.
    """
    graph: av.filter.Graph | None = None
    waiting: deque[tuple[int, int | None]] = deque()
    layout = ""
    for number, (picture, stamp) in enumerate(pictures):
        if graph is not None and picture.format.name != layout:
            graph.push(None)
            yield from _restamped(graph, waiting)
            graph = None
        if graph is None:
            layout = picture.format.name
            which = "all" if every else "interlaced"
            graph = make_graph(picture, "bwdif", f"mode=send_frame:parity=auto:deint={which}")
        waiting.append((stamp, picture.duration))
        picture.pts, picture.time_base = number, Fraction(1, 1000)
        graph.push(picture)
        yield from _restamped(graph, waiting)
    if graph is not None:
        graph.push(None)
        yield from _restamped(graph, waiting)


def _restamped(graph: av.filter.Graph, waiting: deque[tuple[int, int | None]]) -> Iterator[Stamped]:
    for picture in pull_all(graph):
        stamp, duration = waiting.popleft()
        picture.duration = duration or 0
        yield picture, stamp


class CombMeter:
    """Count, where the picture moves, the lines that stand out from both neighbours.

    In a combed picture there are more of them than there are such columns: idet alone takes sharp
    drawn edges for combs.
    """

    def __init__(self) -> None:
        self._last: Levels | None = None
        self._moving = self._lines = self._columns = 1

    def add(self, picture: av.VideoFrame) -> None:
        """Compare a picture with the one before."""
        layout = layout_of(picture.format.name)
        luma = unpack(picture, layout)[0][0]
        left = max(0, (luma.shape[1] - _COLUMNS) // 2)
        plane = luma[:, left : left + _COLUMNS].astype(np.int32) >> (layout.format.depth - 8)
        last, self._last = self._last, plane
        if last is None or last.shape != plane.shape:
            return
        moving = np.abs(plane - last) > _STEP
        self._moving += int(moving.sum())
        self._lines += _standing_out(plane, moving)
        self._columns += _standing_out(plane.T, moving.T)

    @property
    def combed(self) -> bool:
        """Whether lines stand out clearly more often than columns."""
        return self._lines > 1.25 * self._columns + 0.02 * self._moving


def _standing_out(plane: Levels, moving: NDArray[np.bool_]) -> int:
    above, here, below = plane[:-2], plane[1:-1], plane[2:]
    higher = (here - above > _STEP) & (here - below > _STEP)
    lower = (above - here > _STEP) & (below - here > _STEP)
    return int(((higher | lower) & moving[1:-1]).sum())


class FieldWatch:
    """Look at the first pictures for combs and repeated fields (FFmpeg's idet).

    Args:
        flagged: Field order that the file says: 'progressive', 'tff' or 'bff'.

    Attributes:
        notes: What was found, once enough has been seen.
    """

    def __init__(self, flagged: str) -> None:
        self._flagged = flagged
        self._graph: av.filter.Graph | None = None
        self._layout = ""
        self._seen = 0
        self._counts: dict[str, float] = {}
        self._combs = CombMeter()
        self.notes: list[str] = []

    def watch(self, pictures: Iterator[Stamped]) -> Iterator[Stamped]:
        """Pass the pictures on, looking at the first of them."""
        for picture, stamp in pictures:
            if self._seen < _WATCHED and picture.height <= _TALLEST:
                self._look(picture)
                if self._seen == _WATCHED:
                    self._judge()
            yield picture, stamp
        if self._seen < _WATCHED:
            self._judge()

    def _look(self, picture: av.VideoFrame) -> None:
        if self._graph is None:
            self._graph, self._layout = make_graph(picture, "idet", ""), picture.format.name
        if picture.format.name != self._layout:
            return
        pts, time_base = picture.pts, picture.time_base
        picture.pts, picture.time_base = self._seen, Fraction(1, 1000)
        self._graph.push(picture)
        picture.pts, picture.time_base = pts, time_base
        self._seen += 1
        if self._flagged == "progressive":
            self._combs.add(picture)
        self._read(pull_all(self._graph))

    def _read(self, looked: list[av.VideoFrame]) -> None:
        if looked:
            told = looked[-1].metadata
            self._counts = {name: float(told.get(f"lavfi.idet.{name}", 0)) for name in _COUNTED}

    def _judge(self) -> None:
        if self._graph is not None:
            self._graph.push(None)
            self._read(pull_all(self._graph))
        self._graph = None
        if self._seen < _FEWEST or not self._counts:
            return
        share = {name: count / self._seen for name, count in self._counts.items()}
        if min(share["repeated.top"], share["repeated.bottom"]) > 0.12:
            self.notes.append(
                "looks like telecined film (3:2 pulldown): two pictures of five mix moments; undo"
                " that first, with FFmpeg's fieldmatch and decimate"
            )
        elif self._combs.combed and share["single.progressive"] < 0.1:
            order = max(ORDERS, key=lambda name: share[f"single.{name}"])
            other = "bff" if order == "tff" else "tff"
            if share[f"single.{order}"] > 0.6 and share[f"single.{other}"] < 0.05:
                self.notes.append(
                    f"looks interlaced ({ORDERS[order]}) although the file says progressive;"
                    " --deinterlace on treats it so"
                )
