"""What carries over: the one criterion by which penalties, starts and whole runs are compared.

A run of the loop measures itself in environments of its own making, so objectives of two runs do
not compare. What they share are the rows. With the partitions P that all runs have found, a set of
columns S is judged by the paper's objective with regret in place of the variance of gradients,

    X_p(S)   = own_p(S) + REACH regret_p(S) + alpha |S|
    own_p    = mean over environments e of p, by their rows, of the squared error in e of a fit in e
    regret_p = mean over e, each counted alike, of how much more a fit without e errs in e,

as shares of the variance of the target, corrected for the weights that are fitted (Akaike's final
prediction error, 1 + 2 df / n). Its score is the mean over P of X_p(S) over the least X_p of any
selection: a partition that disturbs every selection alike says little, however large its losses.

Regret is the paper's cross mutual information (Assumption 4.1): what a column tells within an
environment, less what it tells across. A column that follows y otherwise elsewhere has regret in
every partition that shows it; one that does not has none.

Labels are numbers here, one indicator a class: least squares on them is enough to compare by, and
its error stays bounded where a log loss told by its second derivatives would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import FLAT, TINY
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.partition import Partition, membership
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource

REACH = 2.0  # regret counts so many times: 1.5 to 4 choose alike on simulated tables
DIGITS: Constant[int] = 7


def target_moments(rows: RowSource, family: Family, partition: Partition | None) -> Moments:
    """Moments of (x, targets of the family) in each environment, in one pass."""
    return rows.sum(partial(_pass, family=family, partition=partition))


def carry_over(pool: Sequence[Moments], columns: BoolArray, price: float) -> FloatArray:
    """(S,) scores of selections (S, d), from the moments of each partition; smaller is better."""
    losses = np.array([[_partition_loss(m, mask) for m in pool] for mask in columns])
    losses = np.maximum(losses + price * columns.sum(axis=1)[:, None], FLAT)
    # Rounded, so that of equals the first is taken wherever scores are compared.
    scores: FloatArray = (losses / losses.min(axis=0)).mean(axis=1).round(DIGITS)
    return scores


def contested(m: Moments, columns: BoolArray, leaving: BoolArray) -> float:
    """Loss (without price) when some columns leave over that when they stay: below 1, they do."""
    return _partition_loss(m, columns & ~leaving) / max(_partition_loss(m, columns), FLAT)


def usefulness(m: Moments, d: int) -> FloatArray:
    """(d,) rise of the squared error over all rows when each column alone leaves."""
    share = m.weight / max(m.weight.sum(), TINY)
    raw = np.tensordot(share, _products(m, d), axes=1)
    inverse = np.linalg.inv(raw[: d + 1, : d + 1] + FLAT * np.eye(d + 1))
    weights = inverse @ raw[: d + 1, d + 1 :]
    rise: FloatArray = ((weights**2).sum(axis=1) / np.diag(inverse))[1:]
    return rise


def unexplained(m: Moments, d: int) -> float:
    """Share of the target's variance that least squares on all columns and rows leaves."""
    share = m.weight / max(m.weight.sum(), TINY)
    raw = np.tensordot(share, _products(m, d), axes=1)[None]
    nothing = np.diagonal(raw[0])[d + 1 :].sum()
    left = _losses(raw, np.arange(d + 1), d, np.ones((1, 1)))[0]
    return float(max(left, 0.0) / max(nothing, TINY))


def _pass(rows: Rows, family: Family, partition: Partition | None) -> Moments:
    shares, t = membership(rows, partition), family.targets(rows.y)
    if t.shape[1] > 1:
        rows = replace(rows, X=np.column_stack([rows.X, t[:, :-1]]))
    return moments(replace(rows, y=t[:, -1]), shares)


def _partition_loss(m: Moments, columns: BoolArray) -> float:
    d, weight = len(columns), m.weight
    raw = _products(m, d)
    keep = np.append(0, 1 + np.flatnonzero(columns))
    own = np.eye(len(weight))
    inside = _losses(raw, keep, d, own)
    # An environment of fewer rows than weights is fitted exactly: that says nothing of it.
    optimism = inside * (2.0 * len(keep) / np.maximum(weight, len(keep)))
    share = weight / max(weight.sum(), TINY)
    regret = 0.0
    if len(weight) > 1:
        outside = _losses(raw, keep, d, weight * (1.0 - own))
        regret = max(float((outside - inside - optimism).mean()), 0.0)
    nothing = float(np.tensordot(share, np.diagonal(raw, axis1=1, axis2=2), axes=1)[d + 1 :].sum())
    return (float(share @ (inside + optimism)) + REACH * regret) / max(nothing, TINY)


def _products(m: Moments, d: int) -> FloatArray:
    """(K, q, q) mean products of (1, x, t), targets about their mean over all environments."""
    mean = m.mean.copy()
    mean[:, d:] -= m.weight @ mean[:, d:] / max(m.weight.sum(), TINY)
    first = np.concatenate([np.ones((len(mean), 1)), mean], axis=1)
    raw: FloatArray = first[:, :, None] * first[:, None, :]
    raw[:, 1:, 1:] += m.covariance
    return raw


def _losses(raw: FloatArray, keep: IntArray, d: int, mixing: FloatArray) -> FloatArray:
    """(K,) squared error in environment k of the fit on the mixture ``mixing[k]`` of them."""
    A, B = raw[:, keep[:, None], keep], raw[:, keep, d + 1 :]
    share = mixing / np.maximum(mixing.sum(axis=1, keepdims=True), TINY)
    curvature = np.tensordot(share, A, axes=1) + FLAT * np.eye(len(keep))
    v = np.linalg.solve(curvature, np.tensordot(share, B, axes=1))
    square = np.diagonal(raw, axis1=1, axis2=2)[:, d + 1 :].sum(axis=1)
    losses: FloatArray = square + (v * (A @ v - 2.0 * B)).sum(axis=(1, 2))
    return losses
