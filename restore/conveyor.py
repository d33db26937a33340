"""Threads that read ahead and write behind, through bounded queues; their errors are raised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from queue import Empty, Full, Queue
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")

_POLL = 0.1


class _End:
    """What a worker leaves in its queue: that it is done, and the error that ended it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def prefetch(items: Iterable[Item], size: int = 4) -> Generator[Item]:
    """Iterate in a thread of its own, at most `size` items ahead.

    An error of the iterator is raised here; when this generator is closed the thread ends, and
    nothing uses `items` any more.
    """
    queue: Queue[Item | _End] = Queue(size)
    stop = threading.Event()

    def put(item: Item | _End) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=_POLL)
                return
            except Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
            put(_End())
        except BaseException as error:  # handed over, whatever it is
            put(_End(error))

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        thread.join()


class Conveyor(Generic[Item]):
    """Hand items to a function in a thread of its own, at most `size` waiting.

    Leaving the block without an error waits for the rest; an error of the function is raised by
    the next `put` or by `finish`.
    """

    def __init__(self, deliver: Callable[[Item], object], size: int = 4) -> None:
        """Set the function that takes the items."""
        self._deliver = deliver
        self._queue: Queue[Item | _End] = Queue(size)
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="conveyor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:  # whatever interrupts the waiting, the function is not called after this
            self._stop.set()
            self._thread.join()

    def put(self, item: Item) -> None:
        """Hand an item over, waiting while the queue is full."""
        self._queue_up(item)

    def finish(self) -> None:
        """Wait until everything has been delivered."""
        if self._thread.is_alive():
            self._queue_up(_End())
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _queue_up(self, item: Item | _End) -> None:
        while True:
            if self._error is not None:
                raise self._error
            try:
                self._queue.put(item, timeout=_POLL)
                return
            except Full:
                continue

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    item = self._queue.get(timeout=_POLL)
                except Empty:
                    continue
                if isinstance(item, _End):
                    return
                self._deliver(item)
        except BaseException as error:  # raised again by `put` or `finish`
            self._error = error
