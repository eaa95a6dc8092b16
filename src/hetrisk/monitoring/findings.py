"""What a check found, as typed values: the terminal, ``--json`` and the page show these alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hetrisk.core.drift.strength import Estimate
from hetrisk.report.summary import Curve, Point

LEVEL = 0.01  # of all tests of one kind together
Z = 2.58  # standard errors at that level
LEAST_DISTANCE = 0.1  # share of the rows: less is no reason to act, however sure
LEAST_RISE = 0.1  # of the error expected: as of rows
HALF = 0.5  # below it, using a relation costs more than doing without it


class Status(IntEnum):
    """What became of the world; the value is the exit code of ``hetrisk check``."""

    FINE = 0
    MOVED = 3
    BROKE = 4


@dataclass(frozen=True)
class ColumnCheck:
    """One column then and now.

    Attributes
    ----------
    name : of the column; a category is one column, whatever its levels.
    used : whether the model uses it.
    distance : at least this share of the rows is not where it was.
    p_value : that this is chance, corrected for the number of columns.
    moved : beyond chance, and by a tenth of the rows or more.
    before, now : mean of a number, share of the level that changed most.
    sd : standard deviation before.
    shift : difference of the means in standard deviations, NaN for categories.
    outside : share of the rows clearly outside the range learned from.
    level : the level that changed most, empty for numbers.
    """

    name: str
    used: bool
    distance: float
    p_value: float
    moved: bool
    before: float
    now: float
    sd: float
    shift: float
    outside: float
    level: str = ""


@dataclass(frozen=True)
class EnvironmentCheck:
    """The share of an environment then and now."""

    label: str
    before: float
    now: float
    p_value: float
    moved: bool


@dataclass(frozen=True)
class OutcomeCheck:
    """What the targets of the new rows say.

    Attributes
    ----------
    unit : "RMSE" or "root Brier score".
    error, plain : of this model and of plain ERM on the new rows; plain is None where the model
        does not carry plain ERM's coefficients, or the rows lack some of its columns.
    expected, limit : the error expected if nothing shifts, and the upper end of the band at the
        reach the model was fitted for; NaN without a curve.
    expected_error, limit_error : their standard errors, from the number of training rows.
    plain_worse : mean squared error of plain ERM less that of this model.
    reach : how far along the reach curve the world has come, by the model whose error grows
        faster along it; None without a curve.
    strength : of the relation left out, 1 as learned; None where nothing was left out, or what
        was is absent.
    """

    unit: str
    error: Estimate
    plain: Estimate | None
    expected: float
    limit: float
    expected_error: float
    limit_error: float
    plain_worse: Estimate | None
    reach: Estimate | None
    strength: Estimate | None

    @property
    def beyond(self) -> bool:
        """Whether the error is beyond the reach the model was fitted for, and chance."""
        uncertainty = float(np.hypot(self.error.error, self.limit_error))
        return bool(self.error.value - Z * uncertainty > self.limit)

    @property
    def risen(self) -> bool:
        """Whether the error is above the one expected, beyond chance and by a tenth or more."""
        uncertainty = float(np.hypot(self.error.error, self.expected_error))
        sure = self.error.value - Z * uncertainty > self.expected
        return bool(sure and self.error.value >= (1.0 + LEAST_RISE) * self.expected)

    @property
    def weakened(self) -> bool:
        """Whether the relation left out has lost more than half of its strength."""
        return self.strength is not None and self.strength.value + Z * self.strength.error < HALF


@dataclass(frozen=True)
class Check:
    """New rows held against what a model learned from.

    Attributes
    ----------
    status : fine, moved or broke; its value is the exit code.
    sentence : the same in words.
    points : what was looked at, question and answer.
    n_rows, n_reference : new rows and training rows.
    columns : the furthest moved first.
    environments : shares then and now, empty where they were not looked at.
    outcome : None without targets.
    outside : share of new rows with a value clearly outside what the model uses learned from.
    left_out : names of the columns the model leaves out.
    curve : the model's reach curve, None where there is none.
    same : whether the model is the plain one.
    notes : what was done to the new table.
    """

    status: Status
    sentence: str
    points: tuple[Point, ...]
    n_rows: int
    n_reference: int
    columns: tuple[ColumnCheck, ...]
    environments: tuple[EnvironmentCheck, ...]
    outcome: OutcomeCheck | None
    outside: float
    left_out: tuple[str, ...]
    curve: Curve | None
    same: bool
    notes: tuple[str, ...] = ()

    @property
    def moved(self) -> tuple[ColumnCheck, ...]:
        """Columns that moved, the furthest first."""
        return tuple(column for column in self.columns if column.moved)

    def __str__(self) -> str:
        lines = [self.sentence, *(f"{point.question}: {point.answer}" for point in self.points)]
        return "\n".join(lines)

    def to_frame(self) -> object:
        """Return the columns as a pandas DataFrame, the furthest moved first."""
        import pandas as pd

        return pd.DataFrame([vars(column) for column in self.columns])


def status_of(
    columns: tuple[ColumnCheck, ...],
    environments: tuple[EnvironmentCheck, ...],
    outcome: OutcomeCheck | None,
) -> Status:
    """Return the gravest of what was found."""
    if outcome is not None and (outcome.beyond or outcome.weakened):
        return Status.BROKE
    risen = outcome is not None and outcome.risen
    if risen or any(c.moved for c in columns) or any(e.moved for e in environments):
        return Status.MOVED
    return Status.FINE
