"""Risk in one environment of a model fitted in another: the paper's cross-environment information.

Everything here needs the moments of the environments alone. Labels are treated as numbers (the
linear probability model): what is wanted is which features carry over, not the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hetrisk.core.numerics.linear import least_squares, risk
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

LEAST_ROWS_A_FEATURE = 3.0  # an environment is fitted only with this many rows for each feature
LEAST_ROWS = 20.0
GATES = (1.0, 0.75, 0.5, 0.25)  # never shut: that takes evidence
GUARD = 1.02  # a soft gate may raise the error on the training mixture by at most this factor


def saving(pool: list[Moments], support: BoolArray) -> FloatArray:
    """(d,) relative fall of the error across environments when a feature is left out.

    For every partition of the pool the model is fitted in one environment and tested in another,
    with and without the feature; features outside the support are judged by adding them to it.
    Log ratios of root mean square errors are averaged, each pair weighing as much as the rows
    it is tested on, so that a few odd rows do not rule.
    """
    d = len(support)
    total, weight = np.zeros(d), 0.0
    for fitted, tested, share in _pairs(pool, int(support.sum())):
        total += share * _log_ratios(fitted, tested, support)
        weight += share
    relative: FloatArray = 1.0 - np.exp(total / weight) if weight > 0 else total
    return relative


def soft_gate(
    pool: list[Moments],
    pooled: Moments,
    support: BoolArray,
    gates: FloatArray,
    members: IntArray,
) -> float:
    """Share of a doubtful feature to let through, chosen by risk across environments.

    A gate g < 1 is a ridge of (1 - g) / g on the standardised feature. Gates that raise the
    error on the training mixture beyond the guard are not considered.

    Parameters
    ----------
    pool : moments of the environments of each partition.
    pooled : moments of the training mixture.
    support : (d,) features of the model.
    gates : (d,) gates so far; the guard holds for all of them together.
    members : columns of the feature: one, or a group.
    """
    best, chosen = np.inf, 1.0
    ceiling = GUARD**2 * _risk_of(pooled, pooled, support, np.ones(len(gates)))
    for gate in GATES:
        tried = gates.copy()
        tried[members] = gate
        if _risk_of(pooled, pooled, support, tried) > ceiling:
            break
        risks = [
            (share, _risk_of(fitted, tested, support, tried))
            for fitted, tested, share in _pairs(pool, int(support.sum()))
        ]
        mean = sum(share * value for share, value in risks)
        if risks and mean < best:
            best, chosen = mean, gate
    return chosen


def gated(m: Moments, gates: FloatArray) -> Moments:
    """Moments whose least squares fit lets a share of each feature through; shut gates pass."""
    scatter = m.scatter.copy()
    place = np.arange(len(gates))
    scatter[place, place] /= np.where(gates > 0, gates, 1.0)
    return Moments(m.weight, m.mean, scatter)


def _risk_of(fitted: Moments, tested: Moments, support: BoolArray, gates: FloatArray) -> float:
    fit = least_squares(gated(fitted, gates), support)
    return risk(tested, fit.coef, fit.intercept)


def _pairs(pool: list[Moments], n_features: int) -> Iterator[tuple[Moments, Moments, float]]:
    """Environments to fit in and to test in, with the share of rows tested on."""
    for partition in pool:
        every = float(partition.weight.sum())
        for a, size in enumerate(partition.weight):
            if size < max(LEAST_ROWS, LEAST_ROWS_A_FEATURE * n_features):
                continue
            for b, tested in enumerate(partition.weight):
                if b != a and tested >= LEAST_ROWS:
                    yield partition[a], partition[b], float(tested) / every


def _log_ratios(fitted: Moments, tested: Moments, support: BoolArray) -> FloatArray:
    """(d,) log of the error without each feature over the error with it."""
    base = least_squares(fitted, support)
    base_risk = max(risk(tested, base.coef, base.intercept), 1e-300)
    ratios = np.zeros(len(support))
    inside = np.flatnonzero(support)
    without = base.coef[:, None] - _pull(base.coef_covariance, base.coef, inside)
    ratios[inside] = 0.5 * np.log(_risks(fitted, tested, without) / base_risk)
    for j in np.flatnonzero(~support):
        wider = support.copy()
        wider[j] = True
        fit = least_squares(fitted, wider)
        with_it = max(risk(tested, fit.coef, fit.intercept), 1e-300)
        ratios[j] = 0.5 * np.log(base_risk / with_it)
    return ratios


def _pull(covariance: FloatArray, coef: FloatArray, features: IntArray) -> FloatArray:
    """(d, m) change of all coefficients when each of m features is taken out on its own."""
    own = np.diag(covariance)[features]
    # A column that does not vary in this environment has no coefficient to take out.
    told = own > 1e-12 * max(float(own.max(initial=0.0)), 1e-300)
    pull: FloatArray = covariance[:, features] * (told * coef[features] / np.where(told, own, 1.0))
    return pull


def _risks(fitted: Moments, tested: Moments, coef: FloatArray) -> FloatArray:
    """(m,) risk in one environment of m fits of another, the columns of ``coef``."""
    direction = np.vstack([-coef, np.ones((1, coef.shape[1]))])
    bias = (tested.mean - fitted.mean) @ direction
    spread = np.einsum("ij,ij->j", direction, tested.covariance @ direction)
    risks: FloatArray = np.maximum(spread + bias**2, 1e-300)
    return risks
