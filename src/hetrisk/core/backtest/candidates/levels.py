"""Levels of known environments, shrunken to their mean: random intercepts."""

from __future__ import annotations

import numpy as np

from hetrisk.core.backtest.training import Training
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import LevelPart, Part


def levels(training: Training) -> tuple[Part, ...]:
    """Plain slopes, and for each environment a level of its own as far as its rows carry one."""
    part, rows = training.fit(), training.rows
    residual = rows.y - part.scores(rows.inputs)[:, 0]
    return part, LevelPart(shrunken(residual, rows.level, rows.weight), np.zeros(1))


def shrunken(residual: FloatArray, level: IntArray, weight: FloatArray) -> FloatArray:
    """(L, 1) posterior means of levels: n / (n + s^2 / tau^2) of the mean residual.

    s^2 is the variance within levels, tau^2 that of the levels: the variance of the means less
    what is noise in them (method of moments; Efron and Morris 1975).
    """
    n_levels = int(level.max(initial=-1)) + 1
    known = level >= 0
    at, w, r = level[known], weight[known], residual[known]
    rows = np.bincount(at, w, n_levels)
    held = rows > 0
    mean = np.bincount(at, w * r, n_levels) / np.where(held, rows, 1.0)
    freedom = float(w.sum()) - held.sum()
    noise = float(w @ (r - mean[at]) ** 2) / freedom if freedom > 0 else np.inf
    n = rows[held]
    between = float(np.mean(mean[held] ** 2) - noise * np.mean(1.0 / n)) if held.any() else 0.0
    if not between > 0:
        return np.zeros((n_levels, 1))
    share = np.where(held, rows / (rows + noise / between), 0.0)
    return (share * mean)[:, None]
