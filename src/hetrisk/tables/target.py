"""The column to predict: what kind of task it makes, and its values.

Classes are kept as the text that stands in the table, whatever they look like there (``>50K``,
``1``, ``True``): predictions then read as the table does, and a model file holds plain strings.
Rows whose target is missing teach nothing and are left out, with a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hetrisk.columns import BoolArray
from hetrisk.columns.dates import MISSING_IN_TARGET
from hetrisk.tables import remedies
from hetrisk.tables.cells import Cells, cells_of, shown_decimal
from hetrisk.tables.columns import Note
from hetrisk.tables.errors import TableError, counted, listed, quoted
from hetrisk.tables.notation import PLAIN, Notation
from hetrisk.tables.text import header_hint

REGRESSION = "regression"
CLASSIFICATION = "classification"
FEWEST_ROWS = 10
FEWEST_CLASS_ROWS = 2
MOST_CLASSES = 50
FEW_VALUES = 10  # text and numbers with no more distinct values are classes
# Whole numbers count or rate something unless the column's name says that they are codes.
_CLASS_NAME = re.compile(
    r"(^|[\W_])(class|classes|label|labels|type|kind|category|cat|group|cluster|species|code|mode|"
    r"status|diagnosis)([\W_0-9]|$)",
    re.I,
)


@dataclass(frozen=True)
class Target:
    """The column to predict.

    Attributes
    ----------
    name : the column.
    task : "regression" or "classification".
    reason : why this task, as a clause.
    values : the target of the known rows: numbers, or classes as text.
    known : (n,) which rows of the table have a target.
    notes : what was done.
    notation : how its numbers are written.
    """

    name: str
    task: str
    reason: str
    values: np.ndarray
    known: BoolArray
    notes: tuple[Note, ...]
    notation: Notation = PLAIN

    def read(self, column: pd.Series) -> np.ndarray:
        """(n,) a further column, read alike: numbers, or classes as text; None where missing."""
        cells = cells_of(self.name, column, MISSING_IN_TARGET)
        if cells is None:
            raise TableError(f"the target {quoted(self.name)} does not hold single values")
        if self.task == REGRESSION:
            return cells.numbers(self.notation)
        codes, levels = cells.levels()
        return np.asarray([*levels, None], dtype=object)[codes]


def check_target_name(labels: list[str], name: str) -> None:
    """Refuse a target that no column is called."""
    if name not in labels:
        raise TableError(
            f"there is no column {quoted(name)} to predict; the columns are {listed(labels, 12)}"
            f"{header_hint(labels)}"
        )


def read_target(
    frame: pd.DataFrame, name: str, task: str = "auto", decimal: str | None = None
) -> Target:
    """Return the target column of a table as numbers or classes.

    Parameters
    ----------
    frame : the table.
    name : the column to predict.
    task : "auto", "regression" or "classification".
    decimal : the decimal mark, "." or ",", where the values do not show it themselves.
    """
    labels = [str(label) for label in frame.columns]
    check_target_name(labels, name)
    cells = cells_of(name, frame.iloc[:, labels.index(name)], MISSING_IN_TARGET, decimal)
    if cells is None:
        raise TableError(f"the target {quoted(name)} does not hold single values")
    if cells.reading.open and decimal is None:
        cells = cells.with_decimal(shown_decimal(frame))
    if cells.missing.all():
        raise TableError(f"every value of the target {quoted(name)} is missing")
    if cells.reading.trouble and task != CLASSIFICATION:
        remedy = remedies.DECIMAL if cells.reading.open else None
        raise TableError(f"the target {quoted(name)}: {cells.reading.trouble}", remedy)
    chosen, reason = (task, "as asked") if task != "auto" else _infer_task(cells)
    known = ~cells.missing
    values = _numbers(cells) if chosen == REGRESSION else _classes(cells)
    _check_rows(name, int(known.sum()), len(known))
    notes = []
    if chosen == REGRESSION:
        _, levels = cells.levels()
        notes += [Note(name, text) for text in cells.reading.notation.described(levels)]
        if task == "auto" and len(levels) <= FEW_VALUES:
            notes.append(Note(name, "taken as a number; if it holds codes, say", remedies.LABELS))
    if not known.all():
        gone = counted(int((~known).sum()), "row")
        notes.append(Note(name, f"{gone} without a value left out: it is the target"))
    return Target(name, chosen, reason, values, known, tuple(notes), cells.reading.notation)


def _infer_task(cells: Cells) -> tuple[str, str]:
    if cells.is_dates:
        raise TableError(
            f"the target {quoted(cells.name)} is a date; give a number or a category to predict"
        )
    _, levels = cells.levels()
    values = cells.numbers()[~cells.missing]
    distinct = counted(len(levels), "different value")
    if np.isnan(values).all():
        return CLASSIFICATION, f"the target is text with {distinct}"
    if len(levels) == 2:
        return CLASSIFICATION, "the target has two different values"
    if np.isnan(values).any():
        return _mixed_task(cells)
    if (values == np.rint(values)).all() and len(levels) <= FEW_VALUES:
        if _CLASS_NAME.search(cells.name):
            return CLASSIFICATION, f"the target's name says that its {distinct} are codes"
        return REGRESSION, f"the target counts or rates, with {distinct}"
    return REGRESSION, f"the target is a number with {distinct}"


def _mixed_task(cells: Cells) -> tuple[str, str]:
    _, levels = cells.levels()
    words = [level for level in levels if not cells.reading.notation.spells(level)]
    if not words:
        return REGRESSION, "the target is a number"
    numeric = np.isfinite(cells.numbers()).sum()
    if len(levels) <= FEW_VALUES or numeric <= len(cells) / 2:
        distinct = counted(len(levels), "different value")
        return CLASSIFICATION, f"the target holds text and numbers, with {distinct}"
    raise TableError(
        f"the target {quoted(cells.name)} holds numbers but also {quoted(words[0])}; "
        "clean the column, or empty those cells to leave their rows out"
    )


def _numbers(cells: Cells) -> np.ndarray:
    values = cells.numbers()
    unread = np.isnan(values) & ~cells.missing
    if unread.any():
        row = int(np.flatnonzero(unread)[0])
        codes, levels = cells.levels()
        raise TableError(
            f"the target {quoted(cells.name)}, row {row + 1}: {quoted(levels[codes[row]])} is not "
            "a finite number below 1e100, which regression needs"
        )
    known = values[~cells.missing]
    if np.ptp(known) == 0:
        raise TableError(
            f"the target {quoted(cells.name)} is {known[0]:.6g} in every row: there is nothing "
            "to predict"
        )
    return known


def _classes(cells: Cells) -> np.ndarray:
    codes, levels = cells.levels()
    if len(levels) == 1:
        raise TableError(
            f"the target {quoted(cells.name)} is {quoted(levels[0])} in every row: there is "
            "nothing to predict"
        )
    if len(levels) > MOST_CLASSES:
        raise TableError(
            f"the target {quoted(cells.name)} has {len(levels):,} classes, more than the "
            f"{MOST_CLASSES} that can be told apart; is it the right column?"
        )
    known = codes[codes >= 0]
    counts = np.bincount(known, minlength=len(levels))
    rare = [level for level, count in zip(levels, counts, strict=True) if count < FEWEST_CLASS_ROWS]
    if rare:
        noun = "class" if len(rare) == 1 else "classes"
        raise TableError(
            f"the target {quoted(cells.name)} has only one row of the {noun} {listed(rare)}; "
            "each class needs two: merge it with another, or leave the row out"
        )
    return np.asarray(levels, dtype=str)[known]


def _check_rows(name: str, known: int, total: int) -> None:
    if known < FEWEST_ROWS:
        where = f" with a value of {quoted(name)}" if known < total else ""
        raise TableError(
            f"the table has {counted(known, 'row')}{where}; at least {FEWEST_ROWS} are needed"
        )
