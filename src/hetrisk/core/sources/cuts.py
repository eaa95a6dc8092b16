"""Where to cut rows in two along an index, so that a regression on either side explains most."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.floors import RIDGE
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.thresholds import THRESHOLDS


def best_cuts(
    index: FloatArray, Z: FloatArray, Y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(B,) values of an index (B, n) where two fits on Z (n, 2), one a side, explain most of Y.

    Also (B,) what they explain.
    """
    n = len(Z)
    order = np.argsort(index, axis=1, kind="stable")
    values = np.take_along_axis(index, order, axis=1)
    least = max(int(THRESHOLDS.least_share * n), 1)
    # A cut lies between two values; ties stay on one side.
    allowed = values[:, :-1] < values[:, 1:]
    allowed[:, : least - 1] = allowed[:, n - least :] = False
    weighted = weight[:, None] * Z
    plain = [weighted[:, 0] * Z[:, 0], weighted[:, 0] * Z[:, 1], weighted[:, 1] * Z[:, 1]]
    parts = [part[order] for part in plain]
    parts += [np.take_along_axis(Y * part, order, axis=1) for part in weighted.T]
    # Running sums along the index: both sides of every cut are differences of two of them.
    near = np.cumsum(parts, axis=2)
    ridge = RIDGE * weight.sum()
    near, whole = near[..., :-1], near[..., -1:]
    explained = _explained(near, ridge) + _explained(whole - near, ridge)
    explained = np.where(allowed, explained, 0.0)
    best, every = np.argmax(explained, axis=1), np.arange(len(Y))
    middle = (values[every, best] + values[every, best + 1]) / 2.0
    return np.where(allowed.any(axis=1), middle, np.median(index, axis=1)), explained[every, best]


def _explained(sums: FloatArray, ridge: float) -> FloatArray:
    """What least squares on two columns explains: b' A^-1 b, for sums (5, ...) of A and b."""
    a, c, b, first, second = sums
    a, b = a + ridge, b + ridge
    explained: FloatArray = (b * first**2 - 2.0 * c * first * second + a * second**2) / (
        a * b - c**2
    )
    return explained
