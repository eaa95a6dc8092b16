"""What a candidate may ask of the rows it learns from: fits on any weighting of cells, and shifts.

Numbers are answered from the moments of cells (`NumbersTraining`): every linear fit is a solve of a
weighted sum of them, so no candidate and no cut costs a pass over the rows. Labels are answered by
logistic regression on rows (`LabelsTraining`). A candidate is written once for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.backtest.cuts import ROUNDING
from hetrisk.core.backtest.logistic import logistic
from hetrisk.core.backtest.solve import Pooled, combine, solve, within_environments
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.predictor import Inputs, LinearPart, softmax

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

    def take(self, chosen: BoolArray | IntArray) -> SampleRows:
        """Some of the rows."""
        taken = {name: held[chosen] for name, held in vars(self).items() if name != "columns"}
        return SampleRows(**taken, columns=self.columns)

    @property
    def inputs(self) -> Inputs:
        """What models are asked with."""
        return Inputs(self.X, self.time, self.level)


@dataclass(frozen=True)
class Training(ABC):
    """Rows to learn from, seen through what linear candidates ask.

    Attributes
    ----------
    cells : moments of (x, time, y) in each of C cells; none in those that are not learned from.
    period : (C,) of each cell; all the same without time.
    rows : those at hand of the cells learned from, for candidates that need rows.
    n_outputs : scores a model gives: 1 for numbers, K for labels.
    """

    cells: Moments
    period: IntArray
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
        used = np.ones(self.n_features, dtype=bool) if columns is None else columns
        return self._fit(self._scale(cells), np.append(used, time), shrink, within)

    def at_level(self, part: LinearPart, cells: FloatArray | None = None) -> LinearPart:
        """Return the part with the intercept that fits the rows of these cells; None for all."""
        shift = self._shift(part, self._scale(cells))
        return replace(part, intercept=part.intercept + shift)

    @abstractmethod
    def fit_basis(self, basis: FloatArray) -> LinearPart:
        """Fit y on (n, H) functions of the rows at hand by a ridge that is cross-validated."""

    @abstractmethod
    def _fit(self, scale: FloatArray, used: BoolArray, shrink: bool, within: bool) -> LinearPart:
        """See `fit`; ``used`` (d + 1,) are columns, time the last of them."""

    @abstractmethod
    def _shift(self, part: LinearPart, scale: FloatArray) -> FloatArray:
        """(K,) what is to be added to the scores: see `at_level`."""

    def _scale(self, cells: FloatArray | None) -> FloatArray:
        return (self.cells.weight > 0).astype(np.float64) if cells is None else cells

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
        return np.unique(self.period[self.cells.weight > 0])

    def last(self) -> FloatArray:
        """(C,) one for the last period, and for those before it until there are enough rows."""
        chosen: list[int] = []
        for p in reversed(self.periods.tolist()):
            chosen.append(p)
            # A little less: sums of weights differ in their last digits with the order of rows.
            held = self.cells.weight[np.isin(self.period, chosen)].sum()
            if held >= LAST_ROWS * (1.0 - ROUNDING):
                break
        return np.isin(self.period, chosen).astype(np.float64)

    def recent(self, half_life: float) -> FloatArray:
        """(C,) weights that halve with every such share of the periods, going back."""
        periods = self.periods
        age = (periods[-1] - self.period) / max(half_life * len(periods), 0.5)
        return np.where(self.cells.weight > 0, 0.5 ** np.maximum(age, 0.0), 0.0)

    def nothing(self) -> LinearPart:
        """Return the part that is zero everywhere."""
        K = self.n_outputs
        return LinearPart(np.zeros((self.n_features, K)), np.zeros(K), np.zeros(K))


class NumbersTraining(Training):
    """Numbers: see `Training`; least squares from the moments of cells."""

    def _fit(self, scale: FloatArray, used: BoolArray, shrink: bool, within: bool) -> LinearPart:
        pooled, d = combine(self.cells, scale), self.n_features
        inner = within_environments(self.cells, scale, self.environment) if within else pooled
        coef = solve(inner, used, pooled.effective(self.cells.weight, scale), shrink)
        intercept = pooled.mean[-1] - pooled.mean[:d] @ coef[:d]
        origin = float(pooled.mean[d])
        return LinearPart(coef[:d, None], np.atleast_1d(intercept), coef[d:], origin)

    def fit_basis(self, basis: FloatArray) -> LinearPart:
        """Ridge regression: see `Training.fit_basis`."""
        rows, H = self.rows, basis.shape[1]
        all_rows = moments(Rows(basis, rows.y, rows.weight))
        m = Pooled(float(all_rows.weight), all_rows.mean, all_rows.covariance)
        coef = solve(m, np.ones(H, dtype=bool), m.weight, True)
        intercept = np.atleast_1d(m.mean[-1] - m.mean[:-1] @ coef)
        return LinearPart(coef[:, None], intercept, np.zeros(1))

    def _shift(self, part: LinearPart, scale: FloatArray) -> FloatArray:
        mean, d = combine(self.cells, scale).mean, self.n_features
        # The mean residual.
        moved = part.intercept + part.slope * (mean[d] - part.origin)
        shift: FloatArray = mean[-1] - mean[:d] @ part.coef - moved
        return shift


class LabelsTraining(Training):
    """Labels: see `Training`; logistic regression, class shares never below those of one row."""

    def _fit(self, scale: FloatArray, used: BoolArray, shrink: bool, within: bool) -> LinearPart:
        rows, d = self.rows, self.n_features
        weight, origin, slope = rows.weight * scale[rows.cell], 0.0, np.zeros(self.n_outputs)
        X = np.where(used[:d], rows.X, 0.0)
        if used[d]:
            origin = float(np.average(rows.time, weights=rows.weight))
            X = np.column_stack([X, rows.time - origin])
        free = self.environment[rows.cell] if within else None
        coef, intercept = logistic(X, rows.y, weight, self.n_outputs, shrink, free)
        return LinearPart(coef[:d], intercept, coef[d] if used[d] else slope, origin)

    def fit_basis(self, basis: FloatArray) -> LinearPart:
        """Logistic regression: see `Training.fit_basis`."""
        coef, intercept = logistic(basis, self.rows.y, self.rows.weight, self.n_outputs, True)
        return LinearPart(coef, intercept, np.zeros(self.n_outputs))

    def _shift(self, part: LinearPart, scale: FloatArray) -> FloatArray:
        # The shift of the log odds with which expected and observed class shares agree.
        rows = self.rows.take(scale[self.rows.cell] > 0)
        weight, scores = rows.weight * scale[rows.cell], part.scores(rows.inputs)
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
