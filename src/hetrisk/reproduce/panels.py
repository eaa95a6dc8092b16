"""Panels: one setting of one task, every method, the paper's numbers beside ours.

A table or figure is a list of panels. A panel's cells are averages over seeds of what the
records hold, with the standard error over seeds, the paper's number and the oracle's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hetrisk import metrics
from hetrisk.reproduce.cases import Case, grid
from hetrisk.reproduce.methods import METHODS, methods_for
from hetrisk.reproduce.records import OK, Record

SPREAD = ("mean", "std", "max")
TRAIN = "train"


@dataclass(frozen=True)
class Panel:
    """One block of a table.

    Attributes
    ----------
    title : heading.
    task, setting : which cases.
    columns : "spread" (mean, std and max over the test environments), "environments" (each of
        them), "train and test" (training error, then each of them), or "all" (these, then the
        spread).
    paper : the paper's row -> column -> number.
    """

    title: str
    task: str
    setting: Mapping[str, Any]
    columns: str
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def cases(self, seeds: Iterable[int]) -> list[Case]:
        """Every method on every seed."""
        return grid(self.task, [self.setting], seeds, methods_for(self.task))


@dataclass(frozen=True)
class Cell:
    """One number: an average over seeds, with what it is compared with.

    ``error`` is the standard error over seeds (None for a single one), ``difference`` ours
    minus the paper's.
    """

    ours: float
    error: float | None
    paper: float | None
    oracle: float | None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Row:
    """A method in a panel.

    ``cells`` maps columns to numbers and is empty where no seed succeeded; ``note`` then says
    why. ``exact`` counts the seeds whose selected set was the true one, where that is known.
    """

    method: str
    label: str
    cells: Mapping[str, Cell]
    n_seeds: int
    exact: int | None
    note: str


@dataclass(frozen=True)
class Filled:
    """A panel with its rows."""

    panel: Panel
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def row(self, method: str) -> Row | None:
        """Return the row of a method, if it was run."""
        return next((row for row in self.rows if row.method == method), None)


def fill(panel: Panel, records: Mapping[str, Record], seeds: Sequence[int]) -> Filled:
    """Average the records of a panel over seeds. Methods without a record are left out."""
    found: dict[str, list[Record]] = {}
    for case in panel.cases(seeds):
        if case.key in records:
            found.setdefault(case.method, []).append(records[case.key])
    values = {method: [_summary(panel, r) for r in _good(rs)] for method, rs in found.items()}
    columns = next((tuple(v[0]) for v in values.values() if v), ())
    oracle = _averages(values.get("oracle", []))
    rows = [_row(method, found[method], values[method], panel, oracle) for method in found]
    return Filled(panel, columns, tuple(rows))


def _good(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record["status"] == OK]


def _summary(panel: Panel, record: Record) -> dict[str, float]:
    errors: dict[str, float] = record["errors"]
    spread = {
        "mean": metrics.mean_error(errors),
        "std": metrics.std_error(errors),
        "max": metrics.max_error(errors),
    }
    if panel.columns == "spread":
        return spread
    if panel.columns == "environments":
        return errors
    both = {TRAIN: record["train_error"], **errors}
    return both if panel.columns == "train and test" else {**both, **spread}


def _averages(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    if not values:
        return {}
    return {column: float(np.mean([v[column] for v in values])) for column in values[0]}


def _row(
    method: str,
    records: Sequence[Record],
    values: Sequence[Mapping[str, float]],
    panel: Panel,
    oracle: Mapping[str, float],
) -> Row:
    paper = panel.paper.get(METHODS[method].paper or "", {})
    n = len(values)
    cells = {
        column: Cell(
            ours=average,
            error=_standard_error([v[column] for v in values]),
            paper=paper.get(column),
            oracle=oracle.get(column),
        )
        for column, average in _averages(values).items()
    }
    known = [r["recovered"] for r in _good(records) if r.get("recovered") is not None]
    failed = sorted({r["reason"] for r in records if r["status"] != OK})
    note = f"{len(records) - n} of {len(records)} runs failed: {failed[0]}" if failed else ""
    exact = sum(known) if known else None
    return Row(method, METHODS[method].label, cells, n, exact, note)


def _standard_error(values: Sequence[float]) -> float | None:
    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
