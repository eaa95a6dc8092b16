"""Splines: a piecewise linear curve for every column, shrunken by a ridge, their sum."""

from __future__ import annotations

import numpy as np

from hetrisk.core.backtest.candidates.base import Candidate
from hetrisk.core.backtest.training import Training
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.predictor import HingesPart, Part

KNOTS = 5  # for a column of many values: sixths of its rows
FEW = 4  # values up to which a column is a line
MOST_HINGES: Budget[int] = 400  # a solve costs their cube
MOST_HINGES_LABELS: Budget[int] = 300  # times classes: there are a dozen solves


class Splines(Candidate):
    """Additive piecewise linear regression (hinges at quantiles)."""

    name, words = "splines", "a sum of curves, one a column"
    needs_rows = True

    def fit(self, training: Training) -> tuple[Part, ...]:
        """See `Candidate.fit`."""
        X, weight = training.rows.X, training.rows.weight
        low, high = X.min(axis=0), X.max(axis=0)
        most = MOST_HINGES if training.n_outputs == 1 else MOST_HINGES_LABELS // training.n_outputs
        n_knots = min(KNOTS, most // max(X.shape[1], 1) - 1)
        feature, knot = [], []
        for j in range(X.shape[1]):
            # The first hinge, at the smallest value, is the line itself.
            knots = [low[j], *_knots(X[:, j], weight, n_knots)]
            feature += [j] * len(knots)
            knot += knots
        part = HingesPart(
            np.array(feature, dtype=np.int64),
            np.array(knot),
            np.zeros((len(knot), training.n_outputs)),
            np.zeros(training.n_outputs),
            low,
            high,
        )
        line = training.fit_basis(part.basis(X))
        return (HingesPart(part.feature, part.knot, line.coef, line.intercept, low, high),)


def _knots(x: FloatArray, weight: FloatArray, n_knots: int) -> list[float]:
    """Distinct quantiles between the extremes."""
    order = np.argsort(x, kind="stable")
    x, share = x[order], np.cumsum(weight[order]) / weight.sum()
    if n_knots < 1 or 1 + np.count_nonzero(np.diff(x)) <= FEW:
        return []
    at = np.searchsorted(share, np.arange(1, n_knots + 1) / (n_knots + 1) - 1e-9)
    return [float(v) for v in np.unique(x[at]) if x[0] < v < x[-1]]
