"""Between the user's columns and the standardised ones the searches work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.numerics.spread import ColumnSpread, column_spread

LARGEST = 1e100  # of numbers: squares of larger ones overflow, and those of its inverse vanish


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
    scale = scale_of(rows.sum(column_spread), rows.feature_names if names is None else names)
    scale.centre[-1], scale.spread[-1] = family.standardised(scale.centre[-1], scale.spread[-1])
    return scale


def scale_of(found: ColumnSpread, names: Sequence[str] | None = None) -> Scale:
    """Scale of columns (X, y) measured before; a column that varies by rounding is constant.

    Refused are numbers that are none, and those whose squares no double can hold.
    """
    largest = found.largest
    if not np.isfinite(largest).all():
        raise ValueError("X and y must be finite; they hold NaN or infinity.")
    constant = found.constant
    bad = (largest > LARGEST) | (~constant & (found.spread < 1.0 / LARGEST))
    if bad.any():
        at = int(np.argmax(bad))
        shown = [*(range(len(bad) - 1) if names is None else (repr(str(n)) for n in names)), None]
        what = "y" if shown[at] is None else f"column {shown[at]} of X"
        how = f"holds numbers beyond {LARGEST:.0e}"
        if largest[at] <= LARGEST:
            how = f"varies by less than {1.0 / LARGEST:.0e}"
        raise ValueError(f"{what} {how}, which cannot be squared: give it in another unit.")
    spread = np.where(constant, 1.0, found.spread)
    return Scale(found.centre, spread, constant[:-1], bool(constant[-1]))
