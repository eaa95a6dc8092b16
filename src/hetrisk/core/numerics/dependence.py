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
        gone = self.seen & (self.ratio < DEPENDENCE_THRESHOLDS.left)
        effect: BoolArray = gone & (self.before < DEPENDENCE_THRESHOLDS.depends)
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
        seen=error < (1.0 - DEPENDENCE_THRESHOLDS.left) * all_before,
    )


def explaining_together(
    plain: FloatArray, given: FloatArray, n_rows: float, n_known: int, groups: IntArray
) -> BoolArray:
    """(d,) causes of the target, told by each other.

    Causes explain the target together: once it is known, the larger one was, the smaller the other.
    So a cause goes along more than before with another, or with what all others together say of
    the target, and both go along with the target. (What makes an effect together with the target
    goes along with that effect more, too, but not with the target.) Arguments as for `dependence`.
    """
    own = np.maximum(np.diag(plain), TINY)
    said = 1.0 - np.where(np.diag(plain) > 0, np.diag(given), own) / own
    df, free = np.full(len(groups), float(n_known)), np.full(len(groups), n_rows - n_known - 1.0)
    of_target = _f_test(np.clip(said, 0.0, 1.0 - ROUNDING), df, free)
    cause = of_target < DEPENDENCE_THRESHOLDS.depends
    telling = np.flatnonzero(cause)
    at = np.ix_(telling, telling)
    others = groups[telling, None] != groups[telling]
    before, after = _correlation(plain[at]), _correlation(given[at])
    pair = (np.abs(after) - np.abs(before)) * others
    index = _said_by_others(plain[at], given[at], others)
    all_others = np.abs(_with_index(given[at], index)) - np.abs(_with_index(plain[at], index))
    more = np.maximum(pair.max(axis=0, initial=0.0), all_others)
    cause[telling] = more * np.sqrt(n_rows) > DEPENDENCE_THRESHOLDS.certain
    return cause


def _said_by_others(plain: FloatArray, given: FloatArray, others: BoolArray) -> FloatArray:
    """(m, m) for each column the weights of the others in what they say of the target."""
    # What knowing the target takes off the covariances is the product of those with the target.
    value, vector = np.linalg.eigh(plain - given)
    with_target = vector[:, -1:] * np.sqrt(np.maximum(value[-1:], 0.0))
    precision = np.linalg.inv(plain + NEARLY_SINGULAR * np.diag(np.maximum(np.diag(plain), TINY)))
    # Least squares on all columns, and what leaving one of them out does to the others.
    coef = precision @ with_target
    index: FloatArray = (coef - precision / np.diag(precision) * coef.T) * others
    return index


def _with_index(covariance: FloatArray, index: FloatArray) -> FloatArray:
    """(m,) correlation of each column with its index (m, m)."""
    product = covariance @ index
    size = np.diag(covariance) * (index * product).sum(axis=0)
    correlation: FloatArray = np.diag(product) / np.sqrt(np.maximum(size, TINY))
    return correlation


def effect_blocks(
    plain: FloatArray, given: FloatArray, n_rows: float, n_known: int, groups: IntArray
) -> IntArray:
    """(d,) number of the block of effects that a feature belongs to, -1 for none.

    Effects that share more than the target (an instrument, a site) depend on each other when it is
    known, so none passes for one. Together they do. Features that are linked given the target make
    up components. Where one of them and all others depend on each other through the target alone,
    the side that holds causes (`explaining_together`) is that of the causes if the other one holds
    none; and on that other side components are blocks of effects.
    Arguments as for `dependence`.
    """
    linked = np.abs(_correlation(given)) * np.sqrt(n_rows) > DEPENDENCE_THRESHOLDS.certain
    _, found = connected_components(linked | (groups[:, None] == groups), directed=False)

    def any_cause(some: BoolArray) -> bool:
        at = np.ix_(some, some)
        return bool(explaining_together(plain[at], given[at], n_rows, n_known, groups[some]).any())

    def only_through_target(some: BoolArray, others: BoolArray) -> bool:
        before, df = _shared_information(plain, some, others, n_rows)
        after, _ = _shared_information(given, some, others, n_rows - n_known)
        error, most = np.sqrt(2.0 * df), DEPENDENCE_THRESHOLDS.left * (before - df)
        # As much as before, in the rows that the target leaves.
        same = (before - df) * (1.0 - n_known / n_rows)
        return bool(
            chdtrc(df, before) < DEPENDENCE_THRESHOLDS.depends
            and after - df - error < most < same - error
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
    correlation = _correlation(covariance) + NEARLY_SINGULAR * np.eye(len(covariance))

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
    value, vector = np.linalg.eigh(targets)
    # Of a target that does not vary in an environment rounding is left, which is no direction.
    varies = value > ROUNDING * np.einsum("kii->", targets)
    n_known = int(varies.sum())
    inverse = np.divide(1.0, value, out=np.zeros_like(value), where=varies)
    known = (vector * inverse[:, None, :]) @ np.swapaxes(vector, 1, 2)
    plain = scatter.sum(axis=0)
    given = plain - np.einsum("kis,kjs->ij", cross @ known, cross, optimize=True)
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


def _correlation(covariance: FloatArray) -> FloatArray:
    scale = np.sqrt(np.maximum(np.diag(covariance), TINY))
    correlation: FloatArray = covariance / np.outer(scale, scale)
    return correlation


def _explained(covariance: FloatArray, groups: IntArray) -> FloatArray:
    """(d,) share of each column's variance that columns outside its group explain."""
    # The ridge on unit diagonals: columns that repeat each other explain each other, finitely.
    correlation = _correlation(covariance) + NEARLY_SINGULAR * np.eye(len(covariance))
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
