"""Give every decoded picture one timestamp, in order, whatever the file says."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice

import av

_WINDOW = 3
"""Pictures looked ahead. Old codecs (VC-1, packed MPEG-4) stamp B-frames one or two places off."""
_LEADING = 32
"""Pictures without a timestamp that may come before the first one that has one."""


def raw_stamp(picture: av.VideoFrame) -> int | None:
    """Return the presentation timestamp, or the decoding one where there is none."""
    stamp = picture.pts if picture.pts is not None else picture.dts
    return None if stamp is None else int(stamp)


class Timestamps:
    """Repair presentation times: the pictures are in the right order, their stamps not always.

    Stamps are sorted within a short window (a permutation is all that old codecs get wrong),
    missing ones are derived from the neighbours (leading ones backwards from the first known), a
    jump back in time (joined recordings) is continued without a gap, and equal ones are moved by
    one tick.

    Args:
        step: Gives the usual distance of two pictures in ticks, asked only when it is needed.

    Attributes:
        jumps: Jumps back in time that were bridged.
        moved: Stamps that had to be moved to be later than the one before.
    """

    def __init__(self, step: Callable[[av.VideoFrame], int]) -> None:
        self._step = step
        self._bridge = 0
        self._newest: int | None = None
        self._last: int | None = None
        self.jumps = 0
        self.moved = 0

    def stamp(self, pictures: Iterator[av.VideoFrame]) -> Iterator[tuple[av.VideoFrame, int]]:
        """Yield each picture with its timestamp; at most a few pictures are held."""
        waiting: deque[av.VideoFrame] = deque()
        stamps: list[int] = []
        for picture, stamp in self._filled(pictures):
            waiting.append(picture)
            heapq.heappush(stamps, stamp)
            if len(waiting) > _WINDOW:
                yield waiting.popleft(), self._emit(heapq.heappop(stamps))
        while waiting:
            yield waiting.popleft(), self._emit(heapq.heappop(stamps))

    def _filled(self, pictures: Iterator[av.VideoFrame]) -> Iterator[tuple[av.VideoFrame, int]]:
        leading: list[av.VideoFrame] = []
        for picture in islice(pictures, _LEADING):
            leading.append(picture)
            if raw_stamp(picture) is not None:
                break
        if not leading:
            return
        first = raw_stamp(leading[-1])
        known = leading[-1:] if first is not None else []
        unknown = leading[: len(leading) - len(known)]
        start = 0 if first is None else first - sum(self._step(p) for p in unknown)
        for picture in unknown:
            self._newest = start
            yield picture, start
            start += self._step(picture)
        for picture in chain(known, pictures):
            yield picture, self._next(picture)

    def _next(self, picture: av.VideoFrame) -> int:
        stamp = raw_stamp(picture)
        after = None if self._newest is None else self._newest + self._step(picture)
        if stamp is None:
            stamp = after or 0
        else:
            stamp += self._bridge
            if after is not None and self._last is not None and stamp < self._last:
                self._bridge += after - stamp
                self.jumps += 1
                stamp = after
        self._newest = stamp if self._newest is None else max(stamp, self._newest)
        return stamp

    def _emit(self, stamp: int) -> int:
        if self._last is not None and stamp <= self._last:
            stamp = self._last + 1
            self.moved += 1
        self._last = stamp
        return stamp
