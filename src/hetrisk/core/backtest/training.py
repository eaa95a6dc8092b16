"""What a candidate may ask of the rows it learns from: fits on any weighting of cells, and shifts.

Numbers are answered from the moments of cells (`NumbersTraining`): every linear fit is a solve of a
weighted sum of them, so no candidate and no cut costs a pass over the rows. Labels are answered by
logistic regression on rows (`LabelsTraining`). A candidate is written once for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from hetrisk.core.backtest.cuts import ROUNDING
from hetrisk.core.backtest.logistic import logistic
from hetrisk.core.backtest.solve import Pooled, combine, solve, within_environments
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.predictor import Inputs, LinearPart, Part, softmax

LAST_ROWS = 30  # rows at least that a level is taken from: known to a fifth of the noise


@dataclass(frozen=True)
class SampleRows:
    """Rows at hand, in an order that follows from their content.

    Attributes
    ----------
    X : (n, d), time : (n,) NaN without, y : (n,) numbers or class codes, weight : (n,).
    cell : (n,) which cell each falls into.
    level : (n,) code of the environment as the user names it, -1 for none.
    columns : (d,) an order of the columns that follows from their content.
    """

    X: FloatArray
    time: FloatArray
    y: FloatArray
    weight: FloatArray
    cell: IntArray
    level: IntArray
    columns: IntArray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, chosen: BoolArray) -> SampleRows:
        """Some of the rows."""
        return SampleRows(
            self.X[chosen],
            self.time[chosen],
            self.y[chosen],
            self.weight[chosen],
            self.cell[chosen],
            self.level[chosen],
            self.columns,
        )

    @property
    def inputs(self) -> Inputs:
        """What models are asked with."""
        return Inputs(self.X, self.time, self.level)


class Training(ABC):
    """Rows to learn from, seen through what linear candidates ask.

    Attributes
    ----------
    weight : (C,) rows in each cell, zero for cells that are not learned from.
    period : (C,) of each cell; all the same without time.
    time : (C,) mean time of each cell's period.
    rows : those at hand of the cells learned from, for candidates that need rows.
    n_outputs : scores a model gives: 1 for numbers, K for labels.
    """

    weight: FloatArray
    period: IntArray
    time: FloatArray
    rows: SampleRows
    n_outputs: int

    @abstractmethod
    def fit(
        self,
        cells: FloatArray | None = None,
        *,
        columns: BoolArray | None = None,
        time: bool = False,
        shrink: bool = False,
        within: bool = False,
    ) -> LinearPart:
        """Fit y on x.

        Parameters
        ----------
        cells : (C,) what the rows of each cell count for; None for one each.
        columns : (d,) those that may be used.
        time : whether time is a column.
        shrink : whether by a ridge, of a strength that cross-validation chooses.
        within : whether differences between the means of environments (periods, or sites) count
            for nothing: each has a level of its own, which the part averages.
        """

    @abstractmethod
    def shift(self, parts: tuple[Part, ...], cells: FloatArray) -> FloatArray:
        """(K,) what is to be added to the scores so that they fit the rows of these cells."""

    @abstractmethod
    def fit_basis(self, basis: FloatArray) -> LinearPart:
        """Fit y on (n, H) functions of the rows at hand by a ridge that is cross-validated."""

    @property
    def n_features(self) -> int:
        """Columns, time not among them."""
        return int(self.rows.X.shape[1])

    @property
    def environment(self) -> IntArray:
        """(C,) environment of each cell: its period, or without time the cell itself."""
        timed = bool((self.period != self.period[0]).any())
        return self.period if timed else np.arange(len(self.period))

    @property
    def periods(self) -> IntArray:
        """Those learned from, in order."""
        return np.unique(self.period[self.weight > 0])

    def last(self) -> FloatArray:
        """(C,) one for the last period, and for those before it until there are enough rows."""
        rows = {p: self.weight[self.period == p].sum() for p in self.periods}
        chosen: list[int] = []
        for p in reversed(self.periods.tolist()):
            chosen.append(p)
            # A little less: sums of weights differ in their last digits with the order of rows.
            if sum(rows[c] for c in chosen) >= LAST_ROWS * (1.0 - ROUNDING):
                break
        return np.isin(self.period, chosen).astype(np.float64)

    def recent(self, half_life: float) -> FloatArray:
        """(C,) weights that halve with every such share of the periods, going back."""
        periods = self.periods
        age = (periods[-1] - self.period) / max(half_life * len(periods), 0.5)
        return np.where(self.weight > 0, 0.5 ** np.maximum(age, 0.0), 0.0)

    def nothing(self) -> LinearPart:
        """Return the part that is zero everywhere."""
        K = self.n_outputs
        return LinearPart(np.zeros((self.n_features, K)), np.zeros(K), np.zeros(K))


@dataclass(frozen=True)
class NumbersTraining(Training):
    """Numbers: see `Training`. ``cells`` are moments of (x, time, y) in each cell."""

    cells: Moments
    weight: FloatArray
    period: IntArray
    time: FloatArray
    rows: SampleRows
    n_outputs: int = 1

    def fit(
        self,
        cells: FloatArray | None = None,
        *,
        columns: BoolArray | None = None,
        time: bool = False,
        shrink: bool = False,
        within: bool = False,
    ) -> LinearPart:
        """Least squares from moments: see `Training.fit`."""
        scale = np.where(self.weight > 0, 1.0, 0.0) if cells is None else cells
        pooled = combine(self.cells, scale)
        used = np.ones(self.n_features, dtype=bool) if columns is None else columns
        used = np.append(used, time)
        inner = within_environments(self.cells, scale, self.environment) if within else pooled
        n = pooled.effective(self.cells.weight, scale)
        coef = solve(inner, used, n, shrink)
        d = self.n_features
        origin = float(pooled.mean[d])
        intercept = pooled.mean[-1] - pooled.mean[:d] @ coef[:d]
        return LinearPart(coef[:d, None], np.atleast_1d(intercept), coef[d:], origin)

    def fit_basis(self, basis: FloatArray) -> LinearPart:
        """Ridge regression: see `Training.fit_basis`."""
        rows, H = self.rows, basis.shape[1]
        all_rows = moments(Rows(basis, rows.y, rows.weight))
        m = Pooled(float(all_rows.weight), all_rows.mean, all_rows.covariance)
        coef = solve(m, np.ones(H, dtype=bool), m.weight, True)
        intercept = np.atleast_1d(m.mean[-1] - m.mean[:-1] @ coef)
        return LinearPart(coef[:, None], intercept, np.zeros(1))

    def shift(self, parts: tuple[Part, ...], cells: FloatArray) -> FloatArray:
        """Mean residual: see `Training.shift`; from moments where all parts are linear."""
        pooled = combine(self.cells, cells)
        d = self.n_features
        linear = [p for p in parts if type(p) is LinearPart]
        left = pooled.mean[-1] - sum(
            float(pooled.mean[:d] @ p.coef[:, 0])
            + p.intercept[0]
            + p.slope[0] * (pooled.mean[d] - p.origin)
            for p in linear
        )
        others = tuple(p for p in parts if type(p) is not LinearPart)
        if others:
            chosen = cells[self.rows.cell] > 0
            rows = self.rows.take(chosen)
            weight = rows.weight * cells[rows.cell]
            for part in others:
                left -= float(np.average(part.scores(rows.inputs)[:, 0], weights=weight))
        return np.atleast_1d(left)


@dataclass(frozen=True)
class LabelsTraining(Training):
    """Labels: see `Training`; class shares are never taken below those of one row."""

    weight: FloatArray
    period: IntArray
    time: FloatArray
    rows: SampleRows
    n_outputs: int

    def fit(
        self,
        cells: FloatArray | None = None,
        *,
        columns: BoolArray | None = None,
        time: bool = False,
        shrink: bool = False,
        within: bool = False,
    ) -> LinearPart:
        """Logistic regression: see `Training.fit`."""
        scale = np.ones(len(self.weight)) if cells is None else cells
        weight = self.rows.weight * scale[self.rows.cell]
        used = np.ones(self.n_features, dtype=bool) if columns is None else columns
        origin = 0.0
        X = np.where(used, self.rows.X, 0.0)
        if time:
            origin = float(np.average(self.rows.time, weights=self.rows.weight))
            X = np.column_stack([X, self.rows.time - origin])
        free = self.environment[self.rows.cell] if within else None
        coef, intercept = logistic(X, self.rows.y, weight, self.n_outputs, shrink, free)
        d = self.n_features
        slope = coef[d] if time else np.zeros(self.n_outputs)
        return LinearPart(coef[:d], intercept, slope, origin)

    def fit_basis(self, basis: FloatArray) -> LinearPart:
        """Logistic regression: see `Training.fit_basis`."""
        coef, intercept = logistic(basis, self.rows.y, self.rows.weight, self.n_outputs, True)
        return LinearPart(coef, intercept, np.zeros(self.n_outputs))

    def shift(self, parts: tuple[Part, ...], cells: FloatArray) -> FloatArray:
        """Shift of the log odds with which expected and observed class shares agree."""
        chosen = cells[self.rows.cell] > 0
        rows = self.rows.take(chosen)
        weight = rows.weight * cells[rows.cell]
        scores = sum((p.scores(rows.inputs) for p in parts), np.zeros((len(rows), self.n_outputs)))
        hot = np.equal.outer(rows.y, np.arange(self.n_outputs)).astype(np.float64)
        # A class that the last rows do not hold keeps the odds of one row.
        target = (weight @ hot + 1.0 / self.n_outputs) / (weight.sum() + 1.0)
        shift = np.zeros(self.n_outputs)
        for _ in range(50):
            p = softmax(scores + shift)
            step = np.log(target) - np.log(np.maximum(weight @ p / weight.sum(), 1e-300))
            shift += step
            if np.abs(step).max() < 1e-10:
                break
        return shift
