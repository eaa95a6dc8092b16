"""What features say of each other, before and after the target is known.

Causes of the target become dependent once it is known (they explain it together); effects of it
become independent. Everything here needs covariances alone, so environments that are given can
be asked through their moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from hetrisk.core.numerics.floors import NEARLY_SINGULAR, ROUNDING, TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

DEPENDS = 1e-6  # p-value at which a feature depends on the others
# Share of the dependence that may be left once the target is known, what chance explains taken off:
# effects keep at most 0.06 of it, a weak cause beside strong effects a third.
LEFT = 0.1


@dataclass(frozen=True)
class Dependence:
    """How each of d features depends on those outside its group.

    ``before`` are (d,) p-values of independence. ``ratio`` is the share of its variance that the
    others explain once the target is known, less a standard error, relative to before, both less
    what chance explains: a cause that all but determines the target has little variance left, most
    of which they explain. ``seen`` says whether as much as before would stand out of that error:
    with few rows, or many that know the target by a line of their own, nothing would.
    """

    before: FloatArray
    ratio: FloatArray
    seen: BoolArray

    @property
    def is_effect(self) -> BoolArray:
        """(d,) depends on the others, but not once the target is known."""
        gone = self.seen & (self.ratio < LEFT)
        effect: BoolArray = gone & (self.before < DEPENDS)
        return effect


def dependence(
    plain: FloatArray, given: FloatArray, n_rows: float, n_known: int, groups: IntArray
) -> Dependence:
    """Compare the covariance of the features with their covariance given the target.

    ``n_rows`` is the effective number of rows, ``n_known`` how many functions of the target
    were taken out.
    """
    before, after = _explained(plain, groups), _explained(given, groups)
    # Columns of one group (levels of a category) depend on each other by construction.
    others = np.array([(groups != g).sum() for g in groups], dtype=np.float64)
    free = n_rows - others - 1
    # What is left is known up to its noise: where nothing is, a standard error of sqrt(2 df) / n.
    error = np.sqrt(2.0 * others) / np.maximum(free - n_known, 1.0)
    left = np.maximum(_adjusted(after, others, free - n_known) - error, 0.0)
    all_before = np.maximum(_adjusted(before, others, free), ROUNDING)
    return Dependence(
        before=_f_test(before, others, free),
        ratio=left / all_before,
        seen=error < (1.0 - LEFT) * all_before,
    )


def _explained(covariance: FloatArray, groups: IntArray) -> FloatArray:
    """(d,) share of each column's variance that columns outside its group explain."""
    # The ridge on unit diagonals: columns that repeat each other explain each other, finitely.
    scale = np.sqrt(np.maximum(np.diag(covariance), TINY))
    correlation = covariance / np.outer(scale, scale) + NEARLY_SINGULAR * np.eye(len(covariance))
    # Alone in its group, a column keeps the reciprocal of its entry of the inverse: all of these
    # at once, one inverse in place of a system for each.
    explained = np.diag(correlation) - 1.0 / np.diag(np.linalg.inv(correlation))
    names, size = np.unique(groups, return_counts=True)
    for group in names[size > 1]:
        own, other = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        cross = correlation[np.ix_(other, own)]
        solved = np.linalg.solve(correlation[np.ix_(other, other)], cross)
        explained[own] = (cross * solved).sum(axis=0)
    clipped: FloatArray = np.clip(explained, 0.0, 1.0 - ROUNDING)
    return clipped


def _adjusted(explained: FloatArray, df: FloatArray, freedom: FloatArray) -> FloatArray:
    """Share explained less what chance explains (adjusted R^2), not below zero."""
    # With many columns chance alone explains df / n of any column, before and after.
    beyond = 1.0 - (1.0 - explained) * (freedom + df) / np.maximum(freedom, 1.0)
    return np.maximum(beyond, 0.0)


def _f_test(explained: FloatArray, df: FloatArray, freedom: FloatArray) -> FloatArray:
    """p-value of no linear dependence, one where there are too few rows to say."""
    sound = (freedom > 0) & (df > 0)
    df, freedom = np.where(sound, df, 1.0), np.where(sound, freedom, 1.0)
    p: FloatArray = np.where(
        sound, fdtrc(df, freedom, explained / (1 - explained) * freedom / df), 1.0
    )
    return p
