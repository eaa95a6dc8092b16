"""Streams of blocks: read ahead on one thread, work on others, results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

A = TypeVar("A")
B = TypeVar("B")

THREADS = 2
DEPTH = 4  # items read ahead: enough to hide the wait for a disk, little enough to hold


def read_ahead(items: Iterable[A], depth: int = DEPTH) -> Iterator[A]:
    """Yield ``items`` in order while a thread of its own prepares the next ``depth``."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1) as reader:
        pending = deque(reader.submit(next, iterator, end) for _ in range(depth))
        while (item := pending.popleft().result()) is not end:
            pending.append(reader.submit(next, iterator, end))
            yield item  # type: ignore[misc]


def in_order(function: Callable[[A], B], items: Iterable[A], threads: int = THREADS) -> Iterator[B]:
    """Yield ``function(item)`` in the order of ``items``, a few at a time on threads.

    At most ``threads + 1`` items are in flight, and BLAS keeps to one thread a product: the
    threads here already use the cores on small products. The order of the results, and so of
    the additions made of them, does not depend on which thread was quicker.
    """
    with single_blas_thread(), ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[B]] = deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries that are loaded takes milliseconds: once is enough.
    return ThreadpoolController()


class _Limit:
    """The one limit of the process, and how many blocks are inside it.

    The number of BLAS threads belongs to the process. If every block put back what it found, of
    two that overlap the later would find the earlier one's limit and put that back for good.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside = 0
        self.limiter: Any = None

    def enter(self) -> None:
        with self.lock:
            if not self.inside:
                self.limiter = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limiter.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread within a ``with`` block; the last of many to end lifts the limit."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
