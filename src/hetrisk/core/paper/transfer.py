"""What carries over: the one criterion by which penalties, starts and whole runs are compared.

A run of the loop measures itself in environments of its own making, so objectives of two runs do
not compare. What they share are the rows. With the partitions P that all runs have found, a set of
columns S is judged by the error in environments that the fit has not seen,

    X_p(S) = mean over environments e of p, each counted alike, of the squared error in e of least
             squares on S without the rows of e, in shares of the target's variance, + alpha |S|.

Its score is the mean over P of X_p(S) over the least X_p of any selection: a partition that
disturbs every selection alike says little, however large its losses.

It is the paper's cross mutual information (Assumption 4.1): what a column tells across
environments. A column that follows y otherwise elsewhere misleads in every partition that shows it.

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
    """Mean over environments of the error of a fit without it, as a share of the variance."""
    d, seen = len(columns), m.weight > TINY
    raw, weight = _products(m, d)[seen], m.weight[seen]
    share = weight / max(weight.sum(), TINY)
    keep = np.append(0, 1 + np.flatnonzero(columns))
    # An environment alone is judged on its own rows.
    others = weight * (1.0 - np.eye(len(weight))) if len(weight) > 1 else np.ones((1, 1))
    nothing = float(np.tensordot(share, np.diagonal(raw, axis1=1, axis2=2), axes=1)[d + 1 :].sum())
    return float(_losses(raw, keep, d, others).mean()) / max(nothing, TINY)


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
