"""The paper's tables and figures beside ours: cases -> records -> tables, figures and a page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.distances import LEARNED
from hetrisk.reproduce.document import write_document
from hetrisk.reproduce.evaluation import DISTANCES
from hetrisk.reproduce.methods import METHODS
from hetrisk.reproduce.output import write_section
from hetrisk.reproduce.records import Records, RecordsError
from hetrisk.reproduce.runner import run, run_with_progress
from hetrisk.reproduce.targets import TARGETS

__all__ = ["METHODS", "TARGETS", "Case", "Records", "RecordsError", "reproduce", "run"]

RECORDS = "records.jsonl"


def reproduce(
    targets: Sequence[str] = ("all",),
    out: str | os.PathLike[str] = "reproduction",
    seeds: int = 10,
    jobs: int | None = None,
    methods: Sequence[str] = (),
    redo: Sequence[str] = (),
    document: str | os.PathLike[str] | None = None,
    console: Console | None = None,
) -> Path:
    """Run what is missing of the targets, then write their tables and figures.

    Parameters
    ----------
    targets : names in `TARGETS`, or "all".
    out : folder of the records and of everything written. Started again on the same folder, a
        run goes on where the last one ended, however it ended.
    seeds : number of draws of every task.
    jobs : processes; None leaves it to joblib's parallel backend in force.
    methods : run these only (names in `METHODS`); tables still show every record there is.
    redo : methods whose records are dropped first, to be run again.
    document : also write the report of the documentation to this file.
    console : where progress is shown.

    Returns
    -------
    The folder: a page (Markdown) for each target, its figure beside it.
    """
    names = list(TARGETS) if "all" in targets else list(dict.fromkeys(targets))
    _check_names("targets", names, TARGETS)
    _check_names("methods", methods, METHODS)
    _check_names("redo", redo, METHODS)
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1; got {seeds}.")
    folder = Path(out)
    records = Records(folder / RECORDS)
    if redo:
        records.drop(lambda record: _concerned(record["method"], redo))
    cases = [case for name in names for case in TARGETS[name].cases(seeds)]
    if methods:
        cases = [case for case in cases if _concerned(case.method, methods)]
    run_with_progress(cases, records, jobs, console or Console(stderr=True))
    found = records.read()
    sections = [write_section(name, found, seeds, folder) for name in names]
    if document is not None:
        write_document(Path(document), sections, found, seeds, folder)
    return folder


def _check_names(argument: str, given: Sequence[str], known: Mapping[str, object]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        options = ", ".join(known)
        raise ValueError(f"{argument} must be among {options}; got {', '.join(unknown)}.")


def _concerned(method: str, chosen: Sequence[str]) -> bool:
    """Whether a case's method is chosen; distances belong to the methods that learn them."""
    if method == DISTANCES:
        return not set(LEARNED.values()).isdisjoint(chosen)
    return method in chosen
