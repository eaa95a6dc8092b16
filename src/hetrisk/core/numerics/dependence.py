"""What features say of each other, before and after the target is known.

Causes of the target become dependent once it is known (they explain it together); effects of it
become independent. Everything here needs covariances alone, so environments that are given can
be asked through their moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc, fdtrc, ndtri

from hetrisk.core.numerics.floors import NEARLY_SINGULAR, ROUNDING, TINY
from hetrisk.core.numerics.named_numbers import measured, threshold
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

LOG = "[the search of 0.1.0](research/pooled.md), effects"


@dataclass(frozen=True)
class DependenceThresholds:
    """What tells an effect of the target from a cause."""

    depends: float = threshold(
        1e-6, "p-value at which a feature depends on the others", measured(LOG)
    )
    left: float = threshold(
        0.05,
        "share of the dependence that may be left once the target is known, what chance explains "
        "taken off",
        measured(
            "effects keep at most 0.02 of it, a weak cause beside strong effects a third; at 0.1 "
            "columns of clustered tables pass for effects (docs/research/hidden.md)"
        ),
    )

    @property
    def certain(self) -> float:
        """Normal score, two sided, at which a feature depends on another."""
        return float(ndtri(1.0 - self.depends / 2.0))


DEPENDENCE_THRESHOLDS: Final = DependenceThresholds()


@dataclass(frozen=True)
class Dependence:
    """How each of d features depends on those outside its group.

    ``before`` and ``after`` are (d,) p-values of independence, without and given the target;
    ``share`` is the part of the explained variance that is left once the target is known,
    ``ratio`` the share of its variance that the others explain then, less a standard error,
    relative to before, both less what chance explains: a cause that all but determines the target
    has little variance left, most of which they explain.
    """

    before: FloatArray
    after: FloatArray
    share: FloatArray
    ratio: FloatArray

    @property
    def is_effect(self) -> BoolArray:
        """(d,) depends on the others, but not once the target is known."""
        effect: BoolArray = (self.before < DEPENDENCE_THRESHOLDS.depends) & (
            self.ratio < DEPENDENCE_THRESHOLDS.left
        )
        return effect

    @property
    def is_cause(self) -> BoolArray:
        """(d,) depends on the others more once the target is known."""
        cause: BoolArray = (self.after < DEPENDENCE_THRESHOLDS.depends) & (self.share > 1.0)
        return cause


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
    remaining = after * np.diag(given)
    share = remaining / np.maximum(before * np.diag(plain), ROUNDING)
    # What is left is known up to its noise: where nothing is, a standard error of sqrt(2 df) / n.
    error = np.sqrt(2.0 * others) / np.maximum(free - n_known, 1.0)
    left = np.maximum(_adjusted(after, others, free - n_known) - error, 0.0)
    return Dependence(
        before=_f_test(before, others, free),
        after=_f_test(after, others, free - n_known),
        share=share,
        ratio=left / np.maximum(_adjusted(before, others, free), ROUNDING),
    )


def effect_blocks(
    plain: FloatArray, given: FloatArray, n_rows: float, n_known: int, groups: IntArray
) -> IntArray:
    """(d,) number of the block of effects that a feature belongs to, -1 for none.

    Effects that share more than the target (an instrument, a site) depend on each other when it is
    known, so none passes for one. Together they do. Features that are linked given the target make
    up components. Where one of them and all others depend on each other through the target alone,
    the side that holds causes, which depend on each other more once the target is known, is that of
    the causes if the other one holds none; and on that other side components are blocks of effects.
    Arguments as for `dependence`.
    """
    size = np.sqrt(np.maximum(np.diag(given), TINY))
    certain = DEPENDENCE_THRESHOLDS.certain * np.outer(size, size)
    linked = np.abs(given) * np.sqrt(n_rows) > certain
    _, found = connected_components(linked | (groups[:, None] == groups), directed=False)

    def any_cause(some: BoolArray) -> bool:
        at = np.ix_(some, some)
        return bool(dependence(plain[at], given[at], n_rows, n_known, groups[some]).is_cause.any())

    def only_through_target(some: BoolArray, others: BoolArray) -> bool:
        before, df = _shared_information(plain, some, others, n_rows)
        after, _ = _shared_information(given, some, others, n_rows - n_known)
        left = after - df - np.sqrt(2.0 * df)
        return bool(
            chdtrc(df, before) < DEPENDENCE_THRESHOLDS.depends
            and left < DEPENDENCE_THRESHOLDS.left * (before - df)
        )

    block = np.full(len(groups), -1, dtype=np.int64)
    several = [found == c for c in np.unique(found) if len(np.unique(groups[found == c])) > 1]
    for own in several:
        if own.all() or not only_through_target(own, ~own):
            continue
        causal = [any_cause(side) for side in (own, ~own)]
        if causal[0] != causal[1]:
            causes = own if causal[0] else ~own
            for other in several:
                if not (other & causes).any() and only_through_target(other, causes):
                    block[other] = found[other]
    return block


def _shared_information(
    covariance: FloatArray, some: BoolArray, others: BoolArray, n_rows: float
) -> tuple[float, float]:
    """Likelihood ratio of independence of two sets of columns, and its degrees of freedom."""
    scale = np.sqrt(np.maximum(np.diag(covariance), TINY))
    correlation = covariance / np.outer(scale, scale) + NEARLY_SINGULAR * np.eye(len(scale))

    def log_det(part: BoolArray) -> float:
        return float(np.linalg.slogdet(correlation[np.ix_(part, part)])[1])

    def rank(part: BoolArray) -> int:
        at = np.ix_(part, part)
        return int(
            np.linalg.matrix_rank(correlation[at], tol=2.0 * NEARLY_SINGULAR, hermitian=True)
        )

    information = log_det(some) + log_det(others) - log_det(some | others)
    # Bartlett's factor brings the likelihood ratio close to chi square.
    rows = n_rows - 0.5 * (rank(some) + rank(others) + 3)
    return max(rows, 0.0) * max(information, 0.0), float(rank(some) * rank(others))


def effects_of(
    scatter: FloatArray, cross: FloatArray, targets: FloatArray, n_rows: float, groups: IntArray
) -> BoolArray:
    """(d,) features that depend on the others, but not once the targets are known.

    Alone or as a block (`effect_blocks`). A line in the targets is taken out in each environment.

    Parameters
    ----------
    scatter, cross, targets : (K, d, d), (K, d, t), (K, t, t) what each environment adds to the
        covariances of the features, of features with targets, and of targets.
    n_rows : effective rows.
    groups : (d,) columns of one group are not asked about each other.
    """
    # Indicators of all classes sum to one: the shortest solution takes them out all the same.
    known = np.linalg.pinv(targets, hermitian=True)
    n_known = int(np.linalg.matrix_rank(targets, hermitian=True).sum())
    plain = scatter.sum(axis=0)
    given = plain - (cross @ known @ np.swapaxes(cross, 1, 2)).sum(axis=0)
    # Of a column that the targets determine rounding is left, which seems to depend on anything.
    gone = np.diag(given) <= NEARLY_SINGULAR * np.diag(plain)
    given[gone], given[:, gone] = 0.0, 0.0
    block = effect_blocks(plain, given, n_rows, n_known, groups)
    return dependence(plain, given, n_rows, n_known, groups).is_effect | (block >= 0)


def shifting_effects(
    curvature: FloatArray,
    right: FloatArray,
    total: FloatArray,
    weight: FloatArray,
    groups: IntArray,
    level: float,
) -> BoolArray:
    """(d,) effects of the target whose spread about it differs between given environments.

    Effects are recognised within environments; Bartlett's test then compares their residual
    variances on the target.

    Parameters
    ----------
    curvature, right, total : (K, d, d), (K, d), (K,) scatter of x, of x with y, and of y.
    weight : (K,) rows.
    groups : (d,) columns of one group are not asked about each other.
    level : of Bartlett's test.
    """
    K, d = right.shape
    rows = float(weight.sum())
    freedom = weight - 2.0
    if K < 2 or rows < 3 * d + 10 or np.any(freedom < 1) or np.any(total <= 0):
        return np.zeros(d, dtype=bool)
    # Within environments: scatters are about each environment's own mean, so that a shift of
    # means is not taken for dependence.
    parts = (curvature, right[..., None], total[:, None, None])
    plain, cross, target = (part.sum(axis=0, keepdims=True) / rows for part in parts)
    effect = effects_of(plain, cross, target, rows - K + 1, groups)
    squares = np.diagonal(curvature, axis1=1, axis2=2) - right**2 / total[:, None]
    variance = np.maximum(squares, TINY) / freedom[:, None]
    pooled = (freedom[:, None] * variance).sum(axis=0) / freedom.sum()
    excess = freedom.sum() * np.log(pooled) - (freedom[:, None] * np.log(variance)).sum(axis=0)
    # Bartlett's factor, which brings the statistic close to chi square for few rows.
    correction = 1 + ((1 / freedom).sum() - 1 / freedom.sum()) / (3 * (K - 1))
    shifting: BoolArray = effect & (chdtrc(K - 1, excess / correction) < level)
    return shifting


def _explained(covariance: FloatArray, groups: IntArray) -> FloatArray:
    """(d,) share of each column's variance that columns outside its group explain."""
    scale = np.sqrt(np.maximum(np.diag(covariance), TINY))
    # The ridge on unit diagonals: columns that repeat each other explain each other, finitely.
    correlation = covariance / np.outer(scale, scale) + NEARLY_SINGULAR * np.eye(len(scale))
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
