"""The reach curve: the error to expect as the shift grows, of a model and of plain ERM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.result import ReachCurve

GRID = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Line:
    """E_k of one model: ``risk + k^2 regret``; ``own`` (K,) are the environments' own risks there.

    ``regrets`` (K,) are those of the environments, none below zero.
    """

    risk: float
    regrets: FloatArray
    own: FloatArray

    def expected(self, reach: FloatArray) -> FloatArray:
        """(G,) squared error to expect."""
        worst = float(self.regrets.max(initial=0.0))
        expected: FloatArray = self.risk + reach**2 * worst
        return expected

    def worst(self, reach: FloatArray) -> FloatArray:
        """(G,) squared error in the environment that suffers most, its own noise included."""
        if len(self.own) == 0:
            return self.expected(reach)
        each = self.own[:, None] + reach**2 * self.regrets[:, None]
        worst: FloatArray = np.maximum(each.max(axis=0), self.expected(reach))
        return worst

    def least(self, reach: FloatArray) -> FloatArray:
        """(G,) squared error in an environment like the quietest seen."""
        if len(self.own) == 0:
            return self.expected(reach)
        least: FloatArray = self.own.min() + reach**2 * self.regrets.min()
        return np.minimum(least, self.expected(reach))


def break_even(model: Line, plain: Line) -> float:
    """Smallest reach from which on the model's expected error is no more than plain ERM's."""
    price = model.risk - plain.risk
    gain = float(plain.regrets.max(initial=0.0)) - float(model.regrets.max(initial=0.0))
    if price <= 0.0:
        return 0.0 if gain >= 0.0 else np.inf
    return float(np.sqrt(price / gain)) if gain > 0.0 else np.inf


def grid(reach: float) -> FloatArray:
    """Reaches to draw: the usual ones, twice as far as the one asked for, and that one."""
    far = [k for k in (1.5 * reach, 2.0 * reach) if k > GRID[-1]]
    return np.unique(np.array([*GRID, reach, *far]))


def draw(
    reach: FloatArray,
    lines: tuple[Line, Line],
    resampled: list[tuple[Line, Line]],
    left_out: list[BoolArray],
    unit: str,
) -> ReachCurve:
    """Put the curve together; ``lines`` and each of ``resampled`` are this model's and ERM's."""
    bands = []
    for which in (0, 1):
        low = [pair[which].least(reach) for pair in resampled] or [lines[which].least(reach)]
        high = [pair[which].worst(reach) for pair in resampled] or [lines[which].worst(reach)]
        bands += [np.quantile(low, 0.05, axis=0), np.quantile(high, 0.95, axis=0)]
    root = [np.sqrt(np.maximum(line.expected(reach), 0.0)) for line in lines]
    below, above, below_erm, above_erm = (np.sqrt(np.maximum(band, 0.0)) for band in bands)
    return ReachCurve(
        reach=reach,
        error=root[0],
        error_erm=root[1],
        low=np.minimum(below, root[0]),
        high=np.maximum(above, root[0]),
        low_erm=np.minimum(below_erm, root[1]),
        high_erm=np.maximum(above_erm, root[1]),
        left_out=tuple(tuple(int(j) for j in np.flatnonzero(~s)) for s in left_out),
        unit=unit,
        break_even=break_even(*lines),
    )
