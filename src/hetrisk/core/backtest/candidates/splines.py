"""Splines: a piecewise linear curve for every column, shrunken by a ridge, their sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hetrisk.core.backtest.training import Training
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.predictor import HingesPart, LinearPart, Part

KNOTS = 5  # for a column of many values: sixths of its rows
FEW = 4  # values up to which a column is a line
MOST_HINGES: Budget[int] = 400  # a solve costs their cube
MOST_HINGES_LABELS: Budget[int] = 300  # times classes: there are a dozen solves


def splines(training: Training) -> tuple[Part, ...]:
    """Additive piecewise linear regression (hinges at quantiles)."""
    X, weight, K = training.rows.X, training.rows.weight, training.n_outputs
    d = X.shape[1]
    most = MOST_HINGES if K == 1 else MOST_HINGES_LABELS // K
    n_knots = min(KNOTS, most // max(d, 1) - 1)
    knots = [_knots(X[:, j], weight, n_knots) for j in range(d)]
    feature = np.repeat(np.arange(d), [len(k) for k in knots])
    part = HingesPart(
        feature, np.concatenate([*knots, []]), np.zeros((len(feature), K)), np.zeros(K), d
    )
    fitted = training.fit_basis(np.column_stack([X, part.basis(X)]))
    line = LinearPart(fitted.coef[:d], fitted.intercept, np.zeros(K))
    # Beyond the rows a curve goes on as the line it ends in.
    return line, replace(part, coef=fitted.coef[d:])


def _knots(x: FloatArray, weight: FloatArray, n_knots: int) -> list[float]:
    """Distinct quantiles between the extremes."""
    order = np.argsort(x, kind="stable")
    x, share = x[order], np.cumsum(weight[order]) / weight.sum()
    if n_knots < 1 or 1 + np.count_nonzero(np.diff(x)) <= FEW:
        return []
    at = np.searchsorted(share, np.arange(1, n_knots + 1) / (n_knots + 1) - 1e-9)
    return [float(v) for v in np.unique(x[at]) if x[0] < v < x[-1]]
