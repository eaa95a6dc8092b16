"""Between the user's columns and the standardised ones the searches work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.numerics.spread import ColumnSpread, column_spread

LARGEST = 1e300  # differences and products of a few such numbers are still numbers


@dataclass(frozen=True)
class Scale:
    """Centre and spread of the p = d + 1 columns (X, y); 0 and 1 for a target of labels.

    ``constant`` marks columns that never vary: they carry nothing and are never selected.
    ``constant_target`` says the same of the target.
    """

    centre: FloatArray
    spread: FloatArray
    constant: BoolArray
    constant_target: bool = False

    @property
    def divisor(self) -> FloatArray:
        """(p,) what to divide by: the spread, infinite for features that never vary.

        Rounding is all that is left of such a feature; divided away, it cannot be fitted.
        """
        return np.where(np.append(self.constant, False), np.inf, self.spread)

    def features(self, X: FloatArray) -> FloatArray:
        """Return standardised features."""
        return (X - self.centre[:-1]) / self.spread[:-1]

    def target(self, y: FloatArray) -> FloatArray:
        """Return the standardised target."""
        return (y - self.centre[-1]) / self.spread[-1]

    def coef(self, coef: FloatArray) -> FloatArray:
        """(..., d) coefficients on the user's scale from those on the standardised one."""
        return coef * (self.spread[-1] / self.spread[:-1])

    def intercept(self, coef: FloatArray, intercept: FloatArray | float) -> FloatArray:
        """(...) intercepts that go with `coef` of the same standardised coefficients."""
        moved = self.centre[-1] + self.spread[-1] * np.asarray(intercept)
        return moved - self.coef(coef) @ self.centre[:-1]


def measure_scale(rows: Blocks, family: Family, names: Sequence[str] | None = None) -> Scale:
    """Mean and standard deviation of every column, in one pass over the rows.

    ``names`` are those of the features, for messages; by default the ones the rows know.
    """
    scale = scale_of(rows.sum(column_spread))
    scale.centre[-1], scale.spread[-1] = family.standardised(scale.centre[-1], scale.spread[-1])
    _refuse_extremes(scale, rows.feature_names if names is None else names)
    return scale


def scale_of(found: ColumnSpread) -> Scale:
    """Scale of columns (X, y) measured before; a column that varies by rounding is constant."""
    constant = found.constant
    spread = np.where(constant, 1.0, found.spread)
    return Scale(found.centre, spread, constant[:-1], bool(constant[-1]))


def _refuse_extremes(scale: Scale, names: Sequence[str] | None) -> None:
    """Refuse columns whose numbers, or whose coefficients, no double can hold."""
    spread, target = scale.spread[:-1], scale.spread[-1]
    size = np.maximum(spread, np.abs(scale.centre[:-1]))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        ratio = target / spread
    if max(target, abs(scale.centre[-1])) > LARGEST:
        raise ValueError(
            f"y holds numbers as large as {max(target, abs(scale.centre[-1])):.0e}; beyond "
            f"{LARGEST:.0e} nothing can be computed: give it in a larger unit."
        )
    for bad, words in (
        (size > LARGEST, f"holds numbers beyond {LARGEST:.0e}, too large to compute with"),
        (spread < 1 / LARGEST, f"varies by less than {1 / LARGEST:.0e}, too little to divide by"),
        (
            (ratio > LARGEST) | (ratio < 1 / LARGEST),
            f"and y (spread {target:.0e}) are so far apart that no coefficient can be written",
        ),
    ):
        if bad.any():
            column = int(np.argmax(bad))
            name = f"{column}" if names is None else repr(str(names[column]))
            raise ValueError(
                f"column {name} of X (spread {spread[column]:.0e}) {words}: give it in another "
                "unit."
            )
