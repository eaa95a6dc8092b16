"""Labels: where a reach curve starts, measured in the error that people are shown.

Columns are chosen by the squared error of linear probabilities, whose moments are at hand. The
model that is handed over is a logistic one, and errs less where probabilities bend. So the curve
starts at what the logistic model errs, out of fold, and rises by the regret: both are squared
errors of probabilities (Brier scores).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.numerics.cells import folds
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm, fit_glms, on_slopes
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Held, Rows, RowSource

N_FOLDS: Budget[int] = 5
MOST_ROWS: Budget[int] = 20_000  # drawn from more: an error to three digits needs no more


def brier_losses(family: Family, y: FloatArray, eta: FloatArray) -> FloatArray:
    """(n,) half the squared error of the probabilities of all classes: (y - p)^2 for two."""
    gap = family.gradient(y, eta)
    losses: FloatArray = gap**2 if gap.ndim == 1 else (gap**2).sum(axis=-1) / 2.0
    return losses


def out_of_fold_brier(rows: Rows, family: Family) -> float:
    """Mean Brier score of logistic regression on rows it was not fitted to.

    The penalty is that of the model that is handed over, ``C = 1`` on standardised columns.
    """
    ridge = on_slopes(1.0 / max(float(rows.weight.sum()), TINY), rows.X.shape[1])
    # Four fifths of the rows have nearly the fit of all: Newton starts there.
    whole = fit_glm(Held(rows), family, ridge=ridge)
    parts = fit_glms(
        Held(rows), family, partial(_others, n=N_FOLDS), ridge=ridge, starts=(whole,) * N_FOLDS
    )
    fold = folds(rows, N_FOLDS)
    coef = np.array([part.coef for part in parts])  # (F, o, d)
    intercept = np.array([part.intercept for part in parts])
    eta = np.empty((len(rows), coef.shape[1]))
    for k in range(N_FOLDS):
        eta[fold == k] = rows.X[fold == k] @ coef[k].T + intercept[k]
    losses = brier_losses(family, rows.y, eta[:, 0] if family.n_outputs == 1 else eta)
    return float(np.average(losses, weights=rows.weight))


def _others(rows: Rows, n: int) -> FloatArray:
    """(n_rows, n) one where a row is not in the fold."""
    others: FloatArray = (folds(rows, n)[:, None] != np.arange(n)).astype(np.float64)
    return others


@dataclass(frozen=True)
class BrierScores:
    """Measured errors of models of labels, on a sample of the rows."""

    rows: Rows
    family: Family

    @classmethod
    def of(cls, rows: RowSource, family: Family) -> BrierScores | None:
        """For labels; numbers have their error from moments."""
        return None if family.closed_form else cls(rows.sample(MOST_ROWS, 0), family)

    def columns(self, columns: BoolArray) -> float:
        """Mean Brier score of the model on some columns."""
        return out_of_fold_brier(self._with(self.rows.X[:, columns]), self.family)

    def directions(self, coef: FloatArray) -> float:
        """Mean Brier score of the model on the linear scores (p, t), constant first."""
        return out_of_fold_brier(self._with(self.rows.X @ coef[1:]), self.family)

    def given(self, coef: FloatArray, intercept: FloatArray | float) -> float:
        """Mean Brier score of a logistic model that is at hand, on the rows it was fitted to."""
        eta = self.rows.X @ np.asarray(coef).T + intercept
        losses = brier_losses(self.family, self.rows.y, eta)
        return float(np.average(losses, weights=self.rows.weight))

    def _with(self, X: FloatArray) -> Rows:
        return Rows(X, self.rows.y, self.rows.weight)
