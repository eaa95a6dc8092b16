"""Partitions that probe one feature each, and never look at the target's noise.

A feature x_j is set against s_j, what the other features say about the target: a mixture of
two regressions of x_j on s_j. A shortcut shows as two slopes (it follows the target here and
not there), a mechanism that weakens as two spreads. Because s_j and x_j are functions of the
features alone, such a partition selects no rows by their noise: under one homogeneous
population, coefficients compared between its environments differ by chance only, and ordinary
tests are valid. Mixtures of y on x have no such guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.numerics.working import WorkingFit
from hetrisk.core.pooled.terms import Term, term_values

ITERATIONS = 40
PROBE_ROWS = 2000  # rows the mixtures are fitted on
TOL = 1e-4
FLOOR = 0.01  # smallest variance of a component, relative to one regression
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class Probe(Partition):
    """Two environments told apart by how feature ``feature`` follows the prediction s.

    ``prediction`` (1 + d + q,) gives s = (1, X, terms) @ prediction; in environment k the
    feature is normal about ``intercept[k] + slope[k] * s`` with variance ``variance[k]``.
    """

    feature: int
    prediction: FloatArray
    terms: tuple[Term, ...]
    weights: FloatArray
    intercept: FloatArray
    slope: FloatArray
    variance: FloatArray

    @property
    def n_environments(self) -> int:
        """Two."""
        return 2

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, 2) probabilities given the features; the target is not used."""
        s = np.column_stack([np.ones(len(X)), X, term_values(self.terms, X)]) @ self.prediction
        parts = (self.weights, self.intercept, self.slope, self.variance)
        x = X[None, :, self.feature]
        first, second = _log_densities(x, s[None], *(part[:, None] for part in parts))
        share = _share(second - first)[0]
        return np.column_stack([1.0 - share, share])


def fit_probes(
    rows: Rows,
    fit: WorkingFit,
    terms: tuple[Term, ...],
    groups: IntArray,
    features: IntArray,
    tied: bool,
) -> list[Probe]:
    """One probe for each of ``features``, all fitted side by side.

    ``fit`` is the flexible fit of y on (1, X, terms); s_j is that fit without feature j, its
    group and the terms it takes part in. ``tied`` variances look for two slopes, free ones
    (from equal slopes) for two spreads.
    """
    if len(features) == 0:
        return []
    predictions = np.column_stack([_without(fit, terms, groups, j) for j in features])
    head = slice(0, PROBE_ROWS)
    x = np.ascontiguousarray(rows.X[head, features].T)
    s = np.ascontiguousarray((fit.design[head] @ predictions).T)
    starts = (-1.0, 0.0) if tied else (1.0,)
    runs = [_mixtures(x, s, rows.weight[head], tied, ratio) for ratio in starts]
    best = np.argmax([run[0] for run in runs], axis=0)
    return [
        Probe(int(j), predictions[:, i], terms, *(part[:, i].copy() for part in runs[best[i]][1:]))
        for i, j in enumerate(features)
    ]


def _without(fit: WorkingFit, terms: tuple[Term, ...], groups: IntArray, j: int) -> FloatArray:
    own = 1 + np.flatnonzero(groups == groups[j])
    touching = [
        1 + len(groups) + i
        for i, term in enumerate(terms)
        if any(groups[f] == groups[j] for f in term.features)
    ]
    return fit.without(np.append(own, touching).astype(np.int64))


def _mixtures(
    x: FloatArray, s: FloatArray, weight: FloatArray, tied: bool, ratio: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """EM for two regressions of each row of x (m, n) on the same row of s.

    Starts from the single regression and a second one of ``ratio`` times its slope (or, for
    free variances, of ten times its variance). Returns (m,) mean log likelihoods, and (2, m)
    weights, intercepts, slopes and variances.
    """
    w = np.broadcast_to(weight / weight.sum(), x.shape)
    _, intercept, slope, one = _regression(x, s, w)
    one = np.maximum(one, 1e-12)
    a = np.array([intercept, intercept + (1 - ratio) * slope * (w * s).sum(axis=1)])
    b = np.array([slope, ratio * slope])
    v = np.array([0.5 * one, 0.5 * one]) if tied else np.array([0.3 * one, 3.0 * one])
    q = np.array([[0.5], [0.5]]) if tied else np.array([[0.7], [0.3]])
    q = q * np.ones_like(slope)
    before = np.full(len(x), -np.inf)
    for _ in range(ITERATIONS):
        first, second = _log_densities(x, s, q, a, b, v)
        second -= first
        likelihood = np.einsum("ij,ij->i", w, first + np.logaddexp(0.0, second))
        if np.all(likelihood - before < TOL):
            break
        before = likelihood
        part = w * _share(second)
        fits = [_regression(x, s, r) for r in (w - part, part)]
        share, a, b, v = (np.array(piece) for piece in zip(*fits, strict=True))
        q = np.clip(share, LEAST_SHARE, 1.0)
        v = np.maximum(v, FLOOR * one)
        if tied:
            v = np.broadcast_to((q * v).sum(axis=0) / q.sum(axis=0), v.shape)
    return likelihood, q, a, b, v


def _regression(
    x: FloatArray, s: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Weighted simple regressions, row by row: weights, intercepts, slopes, residual variances.

    Both sides are of order one, so raw second moments lose no digits that matter here.
    """
    total = np.maximum(w.sum(axis=1), 1e-300)
    ws, wx = w * s, w * x
    ms, mx = ws.sum(axis=1) / total, wx.sum(axis=1) / total
    ss = np.einsum("ij,ij->i", ws, s) / total - ms**2
    xs = np.einsum("ij,ij->i", ws, x) / total - ms * mx
    xx = np.einsum("ij,ij->i", wx, x) / total - mx**2
    slope = xs / np.maximum(ss, 1e-12)
    variance = np.maximum(xx - slope * xs, 0.0)
    return total, mx - slope * ms, slope, variance


def _log_densities(
    x: FloatArray, s: FloatArray, q: FloatArray, a: FloatArray, b: FloatArray, v: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Log of weight times density of each row of x (m, n) under either component."""
    first, second = (
        (x - a[k, :, None] - b[k, :, None] * s) ** 2 * (-0.5 / v[k, :, None])
        + (np.log(q[k]) - 0.5 * np.log(v[k]))[:, None]
        for k in (0, 1)
    )
    return first, second


def _share(gap: FloatArray) -> FloatArray:
    share: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(gap, -500.0, 500.0)))
    return share
