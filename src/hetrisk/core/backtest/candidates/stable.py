"""Stable columns: least squares or logistic regression on those that leave no environment worse."""

from __future__ import annotations

import numpy as np

from hetrisk.core.backtest.cells import cell_moments
from hetrisk.core.backtest.training import Training
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.predictor import Part
from hetrisk.core.stable.decision import stable_columns

MOST_COLUMNS: Budget[int] = 80  # beyond, all stay: a search costs their fourth power, and memory
REACH = 1.0  # that of the backtest's default: the worst environment seen


def stable(training: Training) -> tuple[Part, ...]:
    """Plain on the columns whose relation to the target is the same in all environments."""
    if training.rows.X.shape[1] > MOST_COLUMNS:
        return (training.fit(),)
    return (training.fit(columns=stable_columns(*_moments(training))),)


def _moments(training: Training) -> tuple[Moments, float, None, int]:
    """Moments of (x, y) in the cells learned from, y as zeros and ones but for numbers."""
    rows, K = training.rows, training.n_outputs
    targets = rows.y[:, None]
    if K > 1:
        targets = np.equal.outer(rows.y, np.arange(1, K)).astype(np.float64)
    Z = np.column_stack([rows.X, targets])
    centre = rows.weight @ Z / rows.weight.sum()
    held = np.unique(rows.cell)
    cell = np.searchsorted(held, rows.cell)
    moments = cell_moments(Z - centre, rows.weight, cell, len(held), centre)
    return moments, REACH, None, targets.shape[1]
