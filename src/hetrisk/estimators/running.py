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
        found, start = [], time.monotonic()
        if effective_n_jobs(n_jobs) == 1 or len(tasks) < 2:
            answers = map(function, tasks)
        else:
            workers = Parallel(n_jobs=n_jobs, return_as="generator", prefer=prefer)
            answers = workers(delayed(function)(task) for task in tasks)
        for answer in answers:
            found.append(answer)
            if verbose:
                done, more = len(found), len(tasks) - len(found)
                left = (time.monotonic() - start) / done * more
                line = f"backtest: {done} of {len(tasks)} fits, {left:.0f} s left"
                print(f"{line:<60}", end="\r" if more else "\n", file=sys.stderr, flush=True)
        return found

    return run
