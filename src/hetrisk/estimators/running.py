"""Many independent fits, one after another or in parallel, with progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs


def runner(
    n_jobs: int | None, verbose: int = 0, prefer: str = "processes"
) -> Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]:
    """Return what applies a function to tasks, and says with ``verbose`` how long it will take.

    ``prefer`` is "processes" or "threads".
    """

    def run(function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
        tasks = list(tasks)
        progress = Progress(len(tasks)) if verbose else None
        if effective_n_jobs(n_jobs) == 1 or len(tasks) < 2:
            answers = map(function, tasks)
        else:
            workers = Parallel(n_jobs=n_jobs, return_as="generator", prefer=prefer)
            answers = workers(delayed(function)(task) for task in tasks)
        found = []
        for answer in answers:
            found.append(answer)
            if progress is not None:
                progress.step()
        return found

    return run


class Progress:
    """A line on standard error: how many fits are done, and the time left."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.start = total, 0, time.monotonic()

    def step(self) -> None:
        """Say that one more is done."""
        self.done += 1
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        end = "\n" if self.done == self.total else "\r"
        line = f"backtest: {self.done} of {self.total} fits, {left:.0f} s left"
        print(f"{line:<60}", end=end, file=sys.stderr, flush=True)
