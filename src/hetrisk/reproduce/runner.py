"""Run cases in parallel, appending each record as it arrives; finished cases are not repeated."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Protocol

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hetrisk.reproduce.evaluation import evaluate
from hetrisk.reproduce.records import FAILED, Record, Records

Watcher = Callable[[Record], None]


class Keyed(Protocol):
    """A case, whatever is measured of it."""

    @property
    def key(self) -> str:
        """What makes two cases the same."""


def run(
    cases: Sequence[Keyed],
    records: Records,
    jobs: int | None = None,
    watch: Watcher | None = None,
    measure: Callable[[Any], Record] = evaluate,
    minutes: float = math.inf,
) -> int:
    """Run the cases that have no record yet.

    Parameters
    ----------
    cases : what to run; the same case twice is run once.
    records : where finished cases are, and where new ones go.
    jobs : number of processes. None leaves it to joblib: one, or whatever the parallel backend
        in force says (``with joblib.parallel_config("dask"): ...`` sends cases to a cluster).
    watch : called with every record once it is on disk.
    measure : turns a case into its record; must be picklable.
    minutes : after which no further case is begun.

    Returns
    -------
    Number of cases run.
    """
    end = time.monotonic() + 60 * minutes
    finished = records.finished()
    waiting = list({case.key: case for case in cases if case.key not in finished}.values())
    begun = takewhile(lambda _: time.monotonic() < end, waiting)
    n_run = 0
    # Each result is written before the next is looked at, in the order in which they finish.
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    # Closing what joblib gives, however the loop ends, ends its workers too.
    with (
        records.appending() as append,
        contextlib.closing(parallel(delayed(measure)(case) for case in begun)) as results,
    ):
        for record in results:
            append(record)
            n_run += 1
            if watch is not None:
                watch(record)
    return n_run


def run_with_progress(
    cases: Sequence[Keyed],
    records: Records,
    jobs: int | None,
    console: Console,
    measure: Callable[[Any], Record] = evaluate,
    minutes: float = math.inf,
) -> int:
    """`run`, with a bar that tells how many cases are done and how long the rest will take."""
    total = len({case.key for case in cases})
    done = len({case.key for case in cases} & records.finished())
    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("cases", total=total, completed=done)

        def watch(record: Record) -> None:
            progress.advance(bar)
            if record["status"] == FAILED:
                said = f"{record['key']}: {record['reason']}"
                progress.console.print(said, markup=False, style="red")

        return run(cases, records, jobs, watch, measure, minutes)
