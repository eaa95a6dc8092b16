"""Columns of a table that are no features: where rows come from, hints of it, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.tables.cells import Cells, cells_of
from hetrisk.tables.columns import DateColumn, Note, NumberColumn, TimeColumn
from hetrisk.tables.errors import TableError, counted, listed, quoted
from hetrisk.tables.inference import understand

MISSING = "(missing)"
EPOCH = pd.Timestamp("1970-01-01")


@dataclass(frozen=True)
class Roles:
    """What some columns are for, one value a row with a known target.

    Attributes
    ----------
    environments : (n,) names of environments, or None.
    hints : (n, m) numbers, dates and categories, or None.
    weight : (n,) weights, or None.
    notes : what was done to these columns.
    """

    environments: np.ndarray | None
    hints: pd.DataFrame | None
    weight: FloatArray | None
    notes: tuple[Note, ...]

    @property
    def told(self) -> dict[str, Any]:
        """What `fit` is told beside rows and targets."""
        return {
            "environments": self.environments,
            "hints": self.hints,
            "sample_weight": self.weight,
        }


def read_roles(
    frame: pd.DataFrame,
    known: BoolArray,
    environment: str | None,
    hints: Sequence[str],
    weight: str | None,
) -> Roles:
    """Read the columns that are no features.

    Parameters
    ----------
    frame : the table.
    known : (n,) rows to use.
    environment : the column that names where each row came from; missing values are an
        environment of their own.
    hints : columns that may go along with it; missing values stay missing.
    weight : the column of weights, numbers that are not negative.
    """
    notes: list[Note] = []
    environments = None
    if environment is not None:
        cells = _cells(frame, environment, "environment")
        environments = _names(cells)[known]
        absent = int((environments == MISSING).sum())
        if absent:
            text = f"{counted(absent, 'row')} without a value are an environment of their own"
            notes.append(Note(environment, text))
    hinted = None
    if hints:
        hinted = pd.DataFrame({name: _hint(_cells(frame, name, "hint"))[known] for name in hints})
    weights = None if weight is None else _weights(_cells(frame, weight, "weight"), known)
    return Roles(environments, hinted, weights, tuple(notes))


def _cells(frame: pd.DataFrame, column: str, role: str) -> Cells:
    names = [str(name) for name in frame.columns]
    if column not in names:
        raise TableError(
            f"there is no {role} column {quoted(column)}; the columns are {listed(names, 12)}"
        )
    cells = cells_of(column, frame.iloc[:, names.index(column)])
    if cells is None:
        raise TableError(f"column {quoted(column)} does not hold single values")
    return cells


def _names(cells: Cells) -> np.ndarray:
    codes, levels = cells.levels()
    return np.asarray([*levels, MISSING], dtype=object)[codes]


def _hint(cells: Cells) -> np.ndarray:
    """Numbers as numbers, dates as dates, everything else as names; missing stays missing."""
    if bool(cells.missing.all()):
        raise TableError(f"hint column {quoted(cells.name)} has no value in any row")
    decision, _ = understand(cells, named=True)
    if isinstance(decision, DateColumn):
        moments = EPOCH + pd.to_timedelta(decision.read(cells), unit="D")
        return np.asarray(moments, dtype="datetime64[ns]")
    if isinstance(decision, NumberColumn | TimeColumn):
        return decision.read(cells)
    codes, levels = cells.levels()
    return np.asarray([*levels, None], dtype=object)[codes]


def _weights(cells: Cells, known: BoolArray) -> FloatArray:
    values = cells.numbers()[known]
    if not np.all(np.isfinite(values)) or np.any(values < 0) or not np.any(values > 0):
        wrong = int((~(np.isfinite(values) & (values >= 0))).sum())
        what = f"{counted(wrong, 'row')} hold something else" if wrong else "all are zero"
        raise TableError(
            f"weight column {quoted(cells.name)} must hold numbers that are not negative, "
            f"some of them positive; {what}"
        )
    return values
