"""The gauntlet: designs and real tables, told and not told, our methods and the peers'."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hetrisk.atomic import write_bytes
from hetrisk.reproduce.gauntlet.cases import gauntlet_cases
from hetrisk.reproduce.gauntlet.measure import evaluate
from hetrisk.reproduce.gauntlet.methods import GAUNTLET
from hetrisk.reproduce.gauntlet.page import write_gauntlet
from hetrisk.reproduce.gauntlet.tables import csv_text
from hetrisk.reproduce.records import Records
from hetrisk.reproduce.request import check_request
from hetrisk.reproduce.runner import run_with_progress

__all__ = ["GAUNTLET", "run_gauntlet"]

RECORDS = "gauntlet.jsonl"


def run_gauntlet(
    out: str | os.PathLike[str] = "gauntlet",
    seeds: int = 2,
    jobs: int | None = None,
    methods: Sequence[str] = (),
    redo: Sequence[str] = (),
    document: str | os.PathLike[str] | None = None,
    console: Console | None = None,
) -> Path:
    """Run what is missing of the gauntlet, then write its page.

    Parameters
    ----------
    out : folder of the records, of the page and of the ratios (``gauntlet.csv``). Started again
        on the same folder, a run goes on where the last one ended, however it ended.
    seeds : draws of every design.
    jobs : processes; None leaves it to joblib's parallel backend in force.
    methods : run these only (names in `GAUNTLET`); the page shows every record there is.
    redo : methods whose records are dropped first, to be run again.
    document : write the page here instead of into the folder.
    console : where progress is shown.

    Returns
    -------
    Path of the page.
    """
    check_request(seeds, methods, redo, GAUNTLET)
    folder = Path(out)
    records = Records(folder / RECORDS)
    if redo:
        records.drop(lambda record: record["method"] in redo)
    cases = gauntlet_cases(seeds, methods or None)
    run_with_progress(cases, records, jobs, console or Console(stderr=True), evaluate)
    wanted = {case.key for case in gauntlet_cases(seeds)}
    found = {key: record for key, record in records.read().items() if key in wanted}
    page = folder / "gauntlet.md" if document is None else Path(document)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / "gauntlet.csv", csv_text(found).encode())
    write_gauntlet(found, seeds, page)
    return page
