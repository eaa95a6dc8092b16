"""Columns of a table that are no features: where rows come from, hints of it, and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns import BoolArray, FloatArray
from hetrisk.columns.names import are_codes
from hetrisk.tables.cells import Cells, cells_of
from hetrisk.tables.columns import DateColumn, Note, NumberColumn, TimeColumn
from hetrisk.tables.errors import TableError, counted, listed, quoted, shown
from hetrisk.tables.inference import understand
from hetrisk.tables.notation import Notation

ENVIRONMENT, HINT, WEIGHT = "environment", "hint", "weight"
MISSING = "(missing)"
EPOCH = pd.Timestamp("1970-01-01")


@dataclass(frozen=True)
class RoleColumn:
    """A column with a role, and how its cells are read: the same in every table like this one.

    Attributes
    ----------
    name : of the column.
    role : "environment", "hint" or "weight".
    read : the cells -> (n,) values.
    """

    name: str
    role: str
    read: Callable[[Cells], np.ndarray]

    def __call__(self, column: pd.Series) -> np.ndarray:
        return self.read(_single(self.name, column))


@dataclass(frozen=True)
class Roles:
    """What some columns are for, one value a row with a known target.

    Attributes
    ----------
    environments : (n,) names of environments, or None.
    hints : (n, m) numbers, dates and categories, or None.
    weight : (n,) weights, or None.
    notes : what was done to these columns.
    columns : how each of the columns is read.
    """

    environments: np.ndarray | None
    hints: pd.DataFrame | None
    weight: FloatArray | None
    notes: tuple[Note, ...]
    columns: tuple[RoleColumn, ...] = ()

    @property
    def given(self) -> dict[str, Any]:
        """What `fit` is given beside rows and targets."""
        return {
            "environments": self.environments,
            "hints": self.hints,
            "sample_weight": self.weight,
        }

    def of(self, role: str) -> tuple[RoleColumn, ...]:
        """Return the columns with a role."""
        return tuple(column for column in self.columns if column.role == role)


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
    given = [(ENVIRONMENT, environment), *((HINT, name) for name in hints), (WEIGHT, weight)]
    held: dict[str, list[np.ndarray]] = {ENVIRONMENT: [], HINT: [], WEIGHT: []}
    columns = []
    for role, name in given:
        if name is not None:
            values = _series(frame, name, role)
            columns.append(_learned(values, name, role))
            held[role].append(columns[-1](values[known]))
    environments = next(iter(held[ENVIRONMENT]), None)
    weights = next(iter(held[WEIGHT]), None)
    if weights is not None and not np.any(weights > 0):
        raise wrong_weights(str(weight), "all are zero")
    return Roles(
        environments,
        pd.DataFrame(dict(zip(hints, held[HINT], strict=True))) if hints else None,
        weights,
        () if environments is None else _notes(_series(frame, str(environment), ""), environments),
        tuple(columns),
    )


def _series(frame: pd.DataFrame, name: str, role: str) -> pd.Series:
    names = [str(label) for label in frame.columns]
    if name not in names:
        raise TableError(
            f"there is no {role} column {quoted(name)}; the columns are {listed(names, 12)}"
        )
    return frame.iloc[:, names.index(name)]


def _learned(column: pd.Series, name: str, role: str) -> RoleColumn:
    """Decide from all cells of a column how it is read."""
    cells = _single(name, column)
    read: Callable[[Cells], np.ndarray] = _names
    if role == ENVIRONMENT and _are_codes(cells):
        read = _numbered
    elif role == HINT:
        read = _hint_reader(cells)
    elif role == WEIGHT:
        read = partial(_weights, notation=cells.reading.notation)
    return RoleColumn(name, role, read)


def _single(name: str, column: pd.Series) -> Cells:
    cells = cells_of(name, column)
    if cells is None:
        raise TableError(f"column {quoted(name)} does not hold single values")
    return cells


def _notes(column: pd.Series, environments: np.ndarray) -> tuple[Note, ...]:
    name, notes = str(column.name), []
    absent = int((environments == MISSING).sum())
    if absent:
        text = f"{counted(absent, 'row')} without a value are an environment of their own"
        notes.append(Note(name, text))
    if isinstance(understand(_single(name, column), named=True)[0], DateColumn):
        text = f"each date is an environment; to look along time: --hint {shown(name)}"
        notes.append(Note(name, text))
    return tuple(notes)


def _names(cells: Cells) -> np.ndarray:
    codes, levels = cells.levels()
    return np.asarray([*levels, MISSING], dtype=object)[codes]


def _are_codes(cells: Cells) -> bool:
    """Whether whole numbers are names, by what they are called: they have no order then."""
    return are_codes(cells.name, cells.numbers()[~cells.missing])


def _numbered(cells: Cells) -> np.ndarray:
    """Names that are numbers, with what they number: region 1."""
    codes, levels = cells.levels()
    names = [*(f"{cells.name} {level}" for level in levels), MISSING]
    return np.asarray(names, dtype=object)[codes]


def _hint_reader(cells: Cells) -> Callable[[Cells], np.ndarray]:
    """Numbers as numbers, dates as dates, everything else as names; missing stays missing."""
    if bool(cells.missing.all()):
        raise TableError(f"hint column {quoted(cells.name)} has no value in any row")
    decision, _ = understand(cells, named=True)
    if isinstance(decision, DateColumn):
        return partial(_dates, column=decision)
    if isinstance(decision, NumberColumn | TimeColumn) and not _are_codes(cells):
        return decision.read
    return _levels


def _dates(cells: Cells, column: DateColumn) -> np.ndarray:
    moments = EPOCH + pd.to_timedelta(column.read(cells), unit="D")
    return np.asarray(moments, dtype="datetime64[ns]")


def _levels(cells: Cells) -> np.ndarray:
    codes, levels = cells.levels()
    return np.asarray([*levels, None], dtype=object)[codes]


def _weights(cells: Cells, notation: Notation) -> FloatArray:
    values = cells.numbers(notation)
    wrong = int((~(np.isfinite(values) & (values >= 0))).sum())
    if wrong:
        raise wrong_weights(cells.name, f"{counted(wrong, 'row')} hold something else")
    return values


def wrong_weights(name: str, what: str) -> TableError:
    """Return the error for weights that cannot be used."""
    return TableError(
        f"weight column {quoted(name)} must hold numbers that are not negative, some of them "
        f"positive; {what}"
    )
