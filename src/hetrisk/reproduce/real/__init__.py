"""Tables drawn by lot: what the backtest does there, beside what people would do instead.

``hetrisk reproduce real`` runs every method on every table of one written rule and writes a page.
Tables come in an order drawn by seed: a run that is stopped has judged a fair sample, goes on where
it ended, and the page can be written at any time from what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from hetrisk.reproduce.real.designs import DESIGN, designs
from hetrisk.reproduce.real.judging import METHODS, judge, trials
from hetrisk.reproduce.real.lot import Lot, draw
from hetrisk.reproduce.records import Records
from hetrisk.reproduce.runner import run_with_progress

__all__ = ["METHODS", "run_real"]


def run_real(
    out: Path,
    *,
    jobs: int | None = 2,
    minutes: float = 60.0,
    methods: Sequence[str] = (),
    redo: Sequence[str] = (),
    document: Path | None = None,
    console: Console | None = None,
    lots: Iterable[Lot] | None = None,
) -> Path:
    """Judge tables until all are done or the time is over; write the page.

    Parameters
    ----------
    out : folder of the records and of the page.
    jobs : processes.
    minutes : after which nothing further is begun.
    methods : run these only; the page still shows every record there is.
    redo : methods whose records are dropped first, to be run again.
    document : where the page is written to as well (its figures beside it).
    console : where progress is shown.
    lots : tables; all of the rule, and the designs, where None.

    Returns
    -------
    Path of the page.
    """
    from hetrisk.reproduce.real.page import write

    drawn = list((*designs(), *draw()) if lots is None else lots)
    records = Records(out / "real.jsonl")
    if redo:
        records.drop(lambda record: record["method"] in redo)
    asked = [trial for trial in trials(drawn) if not methods or trial.method in methods]
    console = console or Console(stderr=True)
    run_with_progress(asked, records, jobs, console, judge, minutes=minutes)
    n_tables = sum(lot.package != DESIGN for lot in drawn)
    found = list(records.read().values())
    for path in (document, out / "real.md"):
        if path is not None:
            write(found, path, n_tables)
    return out / "real.md"
