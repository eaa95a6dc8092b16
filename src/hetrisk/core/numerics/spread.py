"""Centre and spread of every column, whatever its unit: 1e-250 or 1e250, near zero or far from it.

The square of a number beyond 1e154 overflows, that of one below 1e-162 vanishes. So where numbers
are that far from one, a block of rows is first divided by a power of two near its largest number,
which costs no digit, and sums are kept in that unit: two of them merge, in the larger unit of the
two, by the update of Chan, Golub and LeVeque (1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import (
    WIDE_ROWS,
    BoolArray,
    FloatArray,
    IntArray,
    Rows,
    wide_view,
)

# Numbers closer than this, relatively, differ by rounding.
SAME: Constant[float] = 16 * float(np.finfo(np.float64).eps)
MODERATE: Constant[int] = 200  # powers of two up to which squares of numbers, and sums, are doubles


@dataclass(frozen=True)
class ColumnSpread:
    """Weighted mean and scatter of the p = d + 1 columns (X, y), each in a unit of its own.

    Attributes
    ----------
    weight : total weight.
    exponent : (p,) the unit of each column is 2 to this power.
    mean : (p,) weighted means, in units.
    scatter : (p,) weighted sums of squares about the mean, in squared units.
    low, high : (p,) smallest and largest number among the rows with weight.
    """

    weight: float
    exponent: IntArray
    mean: FloatArray
    scatter: FloatArray
    low: FloatArray
    high: FloatArray

    def __add__(self, other: Self) -> Self:
        # The larger unit of the two: in the smaller one a sum could overflow.
        exponent = np.maximum(self.exponent, other.exponent)
        a, b = self._in_units(exponent), other._in_units(exponent)
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        gap = b[0] - a[0]
        return type(self)(
            weight=weight,
            exponent=exponent,
            mean=a[0] + share * gap,
            scatter=a[1] + b[1] + self.weight * share * gap**2,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    def _in_units(self, exponent: IntArray) -> tuple[FloatArray, FloatArray]:
        smaller = (self.exponent - exponent).astype(np.int32)
        return np.ldexp(self.mean, smaller), np.ldexp(self.scatter, 2 * smaller)

    @property
    def centre(self) -> FloatArray:
        """(p,) means, in the columns' own units."""
        return np.ldexp(self.mean, self.exponent.astype(np.int32))

    @property
    def spread(self) -> FloatArray:
        """(p,) standard deviations, in the columns' own units."""
        variance = np.maximum(self.scatter, 0.0) / (self.weight if self.weight > 0 else 1.0)
        return np.ldexp(np.sqrt(variance), self.exponent.astype(np.int32))

    @property
    def constant(self) -> BoolArray:
        """(p,) columns whose numbers differ by rounding alone."""
        unit = -self.exponent.astype(np.int32)
        low, high = np.ldexp(self.low, unit), np.ldexp(self.high, unit)
        same: BoolArray = high - low <= SAME * np.maximum(np.abs(low), np.abs(high))
        return same | (self.scatter <= 0.0)


def column_spread(rows: Rows) -> ColumnSpread:
    """Measure a block of rows; infinite ones give NaN, for callers to refuse."""
    X, y, weight = rows.X, rows.y[:, None], rows.weight
    weighted = weight > 0
    if not weighted.all():
        X, y, weight = X[weighted], y[weighted], weight[weighted]
    total = float(weight.sum())
    if not len(y):
        nothing = np.zeros(X.shape[1] + 1)
        least = np.full(len(nothing), np.iinfo(np.int32).min // 4, dtype=np.int64)
        return ColumnSpread(0.0, least, nothing, nothing, nothing + np.inf, nothing - np.inf)
    of_X, of_y = _measured(X, weight, total), _measured(y, weight, total)
    exponent = np.append(of_X[0], of_y[0])
    sums = [np.append(a, b) for a, b in zip(of_X[1], of_y[1], strict=True)]
    return ColumnSpread(total, exponent, *sums)


def _measured(
    z: FloatArray, weight: FloatArray, total: float
) -> tuple[IntArray, tuple[FloatArray, ...]]:
    """Exponents of some columns; their mean, scatter, low and high (`ColumnSpread`)."""
    wide, n_wide = wide_view(z)
    low = wide.min(axis=0).reshape(n_wide, -1).min(axis=0)
    high = wide.max(axis=0).reshape(n_wide, -1).max(axis=0)
    exponent = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1].astype(np.int64)
    with np.errstate(invalid="ignore"):
        if np.abs(exponent).max(initial=0) < MODERATE:
            exponent[:] = 0
        else:
            z = np.ldexp(z, -exponent.astype(np.int32))
            wide, _ = wide_view(z)
        # Near enough to the mean: of n rows, that of m is at most sqrt(n / m) spreads from it.
        shift = z[:WIDE_ROWS].mean(axis=0)
        # About a rough mean first: sums of squares about zero would cancel where columns are far
        # from it.
        wide = wide - np.tile(shift, n_wide)
        offset = weight @ wide.reshape(z.shape) / total
        wide *= wide
        scatter = weight @ wide.reshape(z.shape) - total * offset**2
    return exponent, (shift + offset, scatter, low, high)
