"""Tables drawn by lot: what the backtest does there, beside what people would do instead.

``hetrisk reproduce real`` runs every method on every table of one written rule and writes a page.
One finished table is a handful of lines of ``real.jsonl``: a run that was stopped goes on where it
ended, and the page can be written at any time from what is there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from hetrisk.reproduce.real.designs import DESIGN, designs
from hetrisk.reproduce.real.judging import METHODS, Record, judge
from hetrisk.reproduce.real.lot import Lot, draw

__all__ = ["METHODS", "run_real"]
FILE = "real.jsonl"


def run_real(
    out: Path,
    *,
    jobs: int = 2,
    minutes: float = 60.0,
    document: Path | None = None,
    console: Any = None,
    lots: Iterable[Lot] | None = None,
) -> Path:
    """Judge tables until all are done or the time is over; write the page.

    Parameters
    ----------
    out : folder of the records and of the page.
    jobs : processes.
    minutes : after which no further table is begun.
    document : where the page is written to as well (its figures beside it).
    console : of rich, to say how far it is; None for silence.
    lots : tables; all of the rule where None.
    """
    from hetrisk.reproduce.real.page import write

    out.mkdir(parents=True, exist_ok=True)
    drawn = list((*designs(), *draw()) if lots is None else lots)
    path = out / FILE
    done = {record["table"] for record in records(path)}
    left = [lot for lot in drawn if lot.name not in done]
    _judge_all(left, path, len(drawn), max(1, jobs), minutes, console)
    n_tables = sum(lot.package != DESIGN for lot in drawn)
    page = write(records(path), out / "real.md", n_tables)
    if document is not None:
        write(records(path), document, n_tables)
    return page


def records(path: Path) -> list[Record]:
    """Return what is there; the line a stopped run did not finish is passed over."""
    if not path.exists():
        return []
    found: list[Record] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _judge_all(
    left: list[Lot], path: Path, n_all: int, jobs: int, minutes: float, console: Any
) -> None:
    # Threads of one process would wait for those of the other.
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    begun, waiting = time.monotonic(), iter(left)
    with ProcessPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as file:
        file.write("\n")  # the last line of a run that was killed may be half a line
        running = {pool.submit(judge, lot) for _, lot in zip(range(jobs), waiting, strict=False)}
        finished = n_all - len(left)
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                lines = [json.dumps(record, allow_nan=False) for record in future.result()]
                file.write("".join(line + "\n" for line in lines))
                file.flush()
                finished += 1
                if time.monotonic() - begun < 60 * minutes and (lot := next(waiting, None)):
                    running.add(pool.submit(judge, lot))
            if console is not None:
                spent = (time.monotonic() - begun) / 60
                console.print(f"{finished} of {n_all} tables, {spent:.1f} minutes", end="\r")
