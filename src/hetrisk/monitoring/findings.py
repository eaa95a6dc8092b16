"""What a check found, and the one rule by which it is judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from hetrisk.core.result import Expected

LEVEL = 0.01  # of all tests of one kind together
LEAST = 0.1  # of the rows that must not be where they were before a column counts as moved
Z = 1.645  # one-sided 5 %: beyond the band, or worse than the mean, more than chance explains


class Status(IntEnum):
    """The verdict, and the exit code of the command line."""

    FINE = 0
    LOOK = 3
    ALARM = 4


@dataclass(frozen=True)
class ColumnCheck:
    """One column then and now.

    Attributes
    ----------
    name : of the column of the table.
    weight : how far it moves predictions, in SD of the target.
    moved : beyond chance, and by a tenth of the rows or more.
    distance : share of the rows, at least, that is not where it was.
    p_value : that the distance is chance, corrected for the number of columns.
    level : the level the shares are of, for a category; "" for numbers.
    before, now : mean, or share of the level.
    sd : standard deviation then.
    missing_before, missing_now : shares of rows without a value.
    new_levels, new_share : values that did not occur before, and the share of rows with one.
    outside : share of rows clearly outside the range learned from.
    """

    name: str
    weight: float
    moved: bool
    distance: float
    p_value: float
    level: str
    before: float
    now: float
    sd: float
    missing_before: float
    missing_now: float
    missing_moved: bool
    new_levels: tuple[str, ...]
    new_share: float
    outside: float

    @property
    def notable(self) -> bool:
        """Whether anything about it is to be said."""
        far = max(self.new_share, self.outside) >= LEAST
        return self.moved or self.missing_moved or far


@dataclass(frozen=True)
class Part:
    """A part of the rise of squared error, with the column it is about, if any."""

    name: str
    column: str
    share: float
    p_value: float


@dataclass(frozen=True)
class Outcome:
    """The error on rows whose target is known.

    Attributes
    ----------
    unit : "RMSE" or "log loss".
    n_rows : with a target.
    error, standard_error : measured.
    expected : foretold for the horizon of these rows; horizon : in words, "" where not known.
    constant : the error of predicting the mean that was learned.
    worse_than_mean : z of the paired difference of losses; above 0 the mean errs less.
    rise : mean squared error now less that foretold; parts add up to it; () where it did not rise.
    """

    unit: str
    n_rows: int
    error: float
    standard_error: float
    expected: Expected
    horizon: str
    constant: float
    worse_than_mean: float
    rise: float
    parts: tuple[Part, ...]

    @property
    def status(self) -> Status:
        """The error against its forecast: the rule, all of it."""
        if self.worse_than_mean > Z:
            return Status.ALARM
        if not math.isfinite(self.expected.upper):
            return Status.LOOK if self.worse_than_mean > 0 else Status.FINE
        if self.error - Z * self.standard_error > self.expected.upper:
            return Status.ALARM
        beyond = self.error > self.expected.upper or self.worse_than_mean > 0
        return Status.LOOK if beyond else Status.FINE


@dataclass(frozen=True)
class Check:
    """New rows held against what a model was told to expect.

    Attributes
    ----------
    status : the verdict; its value is the exit code.
    sentence : the same in words.
    n_rows, n_reference : new rows, and rows learned from.
    columns : those that say most first.
    environments : (name, share) of new rows from environments not seen before.
    outcome : None without targets.
    notes : what was done to the new table.
    """

    status: Status
    sentence: str
    n_rows: int
    n_reference: int
    columns: tuple[ColumnCheck, ...]
    environments: tuple[tuple[str, float], ...]
    outcome: Outcome | None
    notes: tuple[str, ...] = ()

    @property
    def notable(self) -> tuple[ColumnCheck, ...]:
        """Columns of which there is something to say."""
        return tuple(column for column in self.columns if column.notable)


def status_of(columns: tuple[ColumnCheck, ...], outcome: Outcome | None) -> Status:
    """With targets the error alone judges; without them, whether columns in use moved."""
    if outcome is not None:
        return outcome.status
    moved = any(c.notable and c.weight > 0 for c in columns)
    return Status.LOOK if moved else Status.FINE
