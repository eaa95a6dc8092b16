"""Is a coefficient the same everywhere? A likelihood ratio of one fit in each environment.

Coefficients b_k with standard errors s_k in K environments speak for a feature that is stable
(they spread by a small share of their size, as a linear model of a curved world does anyway) or
unstable (they spread by a large share). With b_k ~ N(b, (rho b)^2 + s_k^2) the two are compared
by their likelihoods at one small rho and at the best of several large ones (`stable_spread` and
`unstable_spreads` of `hetrisk.core.paper.thresholds`), each at its best b::

    ratio = max_rho max_b log L(b, rho) - max_b log L(b, stable)

It is free of the scale of x and y, it asks for a large relative spread rather than for a
significant one (with many rows every difference is significant), and where the errors swamp
both hypotheses it is near zero: undecided. A feature that plainly matters has to show that it is
stable; a weak one cannot, and has to be shown unstable: its coefficients must differ by more than
their errors (Cochran's Q).

Leaving a feature out changes the coefficients of the others. From a quadratic log likelihood in
every environment (exact for least squares, the usual expansion for labels) the new ones follow
without returning to the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln
from scipy.stats import chi2

from hetrisk.core.numerics.environment_fits import cochran_q
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import EXACT, NEARLY_SINGULAR, TINY, TINY_ROOT
from hetrisk.core.numerics.glm import GLMFit
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.paper.thresholds import GATE_THRESHOLDS

CENTRES: Budget[int] = 41  # on the grid of common coefficients


def always(before: BoolArray, after: BoolArray) -> bool:
    """Any step may be taken."""
    return True


@dataclass(frozen=True)
class Quadratics:
    """Log likelihoods of K environments, each quadratic in the same p coefficients.

    Attributes
    ----------
    curvature : (K, p, p) curvatures times the residual variance.
    right : (K, p) right-hand side: the fit on columns S solves ``curvature_SS b = right_S``.
    total : (K,) residual sum of squares of no columns; NaN for labels.
    weight : (K,) total weight.
    column : (p,) feature each coefficient belongs to.
    """

    curvature: FloatArray
    right: FloatArray
    total: FloatArray
    weight: FloatArray
    column: IntArray

    def fits(self, keep: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients and variances (K, q), and residual variances (K,), on some coefficients."""
        curvature = self.curvature[:, keep][:, :, keep]
        scale = np.diagonal(curvature, axis1=1, axis2=2)
        # Unit diagonals first: a column measured in small units must not pass for a singular one.
        root = np.sqrt(np.where(scale > TINY_ROOT, scale, 1.0))
        inverse = np.linalg.pinv(
            curvature / (root[:, :, None] * root[:, None, :]), rcond=NEARLY_SINGULAR, hermitian=True
        )
        inverse = inverse / (root[:, :, None] * root[:, None, :])
        coef = np.einsum("kij,kj->ki", inverse, self.right[:, keep])
        explained = np.einsum("ki,ki->k", coef, self.right[:, keep])
        # Responsibilities make the weight fractional, and it may fall below the number of columns.
        freedom = np.maximum(self.weight - int(keep.sum()) - 1.0, 1.0)
        # An environment of few rows may be fitted exactly; its errors are small, not nothing.
        floor = EXACT * self.total.sum() / max(float(self.weight.sum()), TINY)
        residual = np.maximum((self.total - explained) / freedom, max(floor, TINY))
        # Labels have no residual variance: their curvature is that of the log likelihood itself.
        residual = np.where(np.isnan(self.total), 1.0, residual)
        variance = np.diagonal(inverse, axis1=1, axis2=2) * residual[:, None]
        return coef, np.maximum(variance, TINY), residual


def quadratics_from_moments(m: Moments) -> Quadratics:
    """Least squares in every environment."""
    d = m.mean.shape[-1] - 1
    S = m.scatter
    return Quadratics(S[:, :d, :d], S[:, :d, d], S[:, d, d], m.weight, np.arange(d))


def quadratics_from_fits(fits: tuple[GLMFit, ...], family: Family) -> Quadratics:
    """Expand the log likelihood of labels about the fit in every environment."""
    d = fits[0].coef.shape[-1]
    curvature = np.stack(
        [np.linalg.pinv(f.covariance, rcond=NEARLY_SINGULAR, hermitian=True) for f in fits]
    )
    coef = np.stack([f.coef.ravel() for f in fits])
    weight = np.array([f.weight for f in fits])
    column = np.tile(np.arange(d), family.n_outputs)
    return Quadratics(
        curvature,
        np.einsum("kij,kj->ki", curvature, coef),
        np.full(len(fits), np.nan),
        weight,
        column,
    )


def log_likelihood_ratio(coef: FloatArray, variance: FloatArray) -> FloatArray:
    """(p,) log likelihood ratio of unstable to stable, of (K, p) fits and their variances."""
    # The likeliest of several spreads: how unstable a feature is, nobody knows beforehand.
    unstable = np.max(
        [_likelihood(coef, variance, rho) for rho in GATE_THRESHOLDS.unstable_spreads], axis=0
    )
    difference: FloatArray = unstable - _likelihood(coef, variance, GATE_THRESHOLDS.stable_spread)
    return difference


def ratio_by_group(q: Quadratics, groups: IntArray, open_: BoolArray | None = None) -> FloatArray:
    """(G,) log ratio of unstable to stable of each group in a fit of the open ones (None: all).

    It is minus infinity for a weak group whose coefficients differ by no more than their errors.
    """
    n_groups = int(groups.max()) + 1
    open_ = np.ones(n_groups, dtype=bool) if open_ is None else open_
    owner = groups[q.column]
    keep = open_[owner]
    coef, variance, _ = q.fits(keep)
    ratio = _by_group(owner[keep], log_likelihood_ratio(coef, variance), n_groups)
    apart = _by_group(owner[keep], cochran_q(coef, variance), n_groups)
    freedom = (len(coef) - 1) * np.bincount(owner[keep], minlength=n_groups)
    # A group's coefficients are taken as independent: their Q and their degrees add up.
    real = chi2.sf(apart, np.maximum(freedom, 1)) < GATE_THRESHOLDS.chance
    statistic, rank = wald(q, groups, open_)
    return np.where(real | (statistic > GATE_THRESHOLDS.weak_z**2 * rank), ratio, -np.inf)


def screen(
    q: Quadratics,
    groups: IntArray,
    affordable: Callable[[BoolArray, BoolArray], bool] = always,
    threshold: float = GATE_THRESHOLDS.unstable_ratio,
    start: BoolArray | None = None,
) -> tuple[BoolArray, FloatArray]:
    """Leave out the most unstable group, refit, and repeat until none is left that is unstable.

    Parameters
    ----------
    q : the fits.
    groups : (d,) group of each feature.
    affordable : of the groups (G,) before and after, whether the step may be taken; else the
        next most unstable group is tried.
    threshold : log ratio above which a group is unstable.
    start : (G,) groups to begin with; None for all.

    Returns
    -------
    stable : (G,) groups that stay.
    ratio : (G,) log ratio of unstable to stable, when the group was left out or at the end.
    """
    n_groups = int(groups.max()) + 1
    stable = np.ones(n_groups, dtype=bool) if start is None else start.copy()
    ratio = np.full(n_groups, -np.inf)
    while stable.any():
        by_group = ratio_by_group(q, groups, stable)
        ratio[stable] = by_group[stable]
        worst = _next(stable, by_group, threshold, affordable)
        if worst is None:
            break
        stable = worst
    return stable, ratio


def _by_group(owner: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    total: FloatArray = np.zeros(n_groups)
    np.add.at(total, owner, values)
    return total


def _next(
    stable: BoolArray,
    by_group: FloatArray,
    threshold: float,
    affordable: Callable[[BoolArray, BoolArray], bool],
) -> BoolArray | None:
    """Return the groups without the most unstable one that may go; None if none may."""
    # The most unstable first, and one at a time: leaving it out may steady all the others.
    order = np.argsort(-np.where(stable, by_group, -np.inf), kind="stable")
    for group in order[: int(stable.sum())]:
        if by_group[group] <= threshold:
            return None
        after = stable.copy()
        after[group] = False
        if affordable(stable, after):
            return after
    return None


def informative(q: Quadratics, groups: IntArray, open_: BoolArray) -> BoolArray:
    """(G,) the open groups that predict at all, leaving out the least significant in turn.

    A table may have useless features, each as often as an unknown share, or none. Estimates b of
    a useless group are N(0, V), V their covariance; of the useful ones N(0, s V), s chosen to fit
    them best. So the odds of being useless depend on the others: one weak feature among strong
    ones gets the benefit of the doubt, several give each other away. The last one stays if it is
    significant on its own.
    """
    kept = open_.copy()
    n_open = int(open_.sum())
    for n_out in range(n_open):
        statistic, rank = (part[kept] for part in wald(q, groups, kept))
        if len(rank) == 1 and chi2.sf(statistic[0], rank[0]) < GATE_THRESHOLDS.last_level:
            break
        order = np.argsort(statistic / rank, kind="stable")
        k = np.arange(len(order) + 1)
        # The most useless ones together: alone, the first of several may pass for useful.
        fit = _two_kinds(statistic[order], rank[order]) - k * np.log(GATE_THRESHOLDS.useless_odds)
        if np.argmax(fit + _log_prior(n_open, n_out + k)) == 0:
            break
        # Only the least significant leaves; the others are judged again without it, for what it
        # shared with them is now theirs.
        kept[np.flatnonzero(kept)[order[0]]] = False
    return kept


def _two_kinds(statistic: FloatArray, rank: FloatArray) -> FloatArray:
    """(m + 1,) log likelihood of the first k of m groups being useless and the others useful."""
    # Under N(0, V) twice the negative log likelihood of b is its Wald statistic, up to what both
    # kinds have in common; under N(0, s V) it is the statistic over s, plus rank log s.
    useless = np.append(0.0, np.cumsum(statistic))
    left = np.append(np.cumsum(rank[::-1])[::-1], 0.0)
    # The best s is the mean statistic per degree of freedom; below one, useful would be the
    # narrower of the two kinds.
    scale = np.maximum((useless[-1] - useless) / np.maximum(left, 1.0), 1.0)
    useful = (useless[-1] - useless) / scale + left * np.log(scale)
    likelihood: FloatArray = -0.5 * (useless + useful)
    return likelihood


def _log_prior(n: int, k: IntArray) -> FloatArray:
    """Log prior probability that a given k of n features are useless, and no others.

    With probability `all_useful` none is; else each is with the same, uniform, probability.
    """
    # The integral of p^k (1 - p)^(n - k) over a uniform p.
    some = np.log(1.0 - GATE_THRESHOLDS.all_useful) + betaln(k + 1.0, n - k + 1.0)
    prior: FloatArray = np.where(
        k == 0, np.logaddexp(some, np.log(GATE_THRESHOLDS.all_useful)), some
    )
    return prior


def wald(q: Quadratics, groups: IntArray, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
    """(G,) Wald statistics of the kept groups in one fit over all environments, and their ranks.

    Without effect a statistic is chi square with as many degrees as its rank; 0 and 1 for the
    groups not kept.
    """
    owner = groups[q.column]
    keep = kept[owner]
    _, _, residual = q.fits(keep)
    curvature = (q.curvature[:, keep][:, :, keep] / residual[:, None, None]).sum(axis=0)
    inverse = np.linalg.pinv(curvature, rcond=NEARLY_SINGULAR, hermitian=True)
    coef = inverse @ (q.right[:, keep] / residual[:, None]).sum(axis=0)
    statistic, rank = np.zeros(len(kept)), np.ones(len(kept))
    for group in np.flatnonzero(kept):
        own = np.flatnonzero(owner[keep] == group)
        covariance = inverse[np.ix_(own, own)]
        if len(own) == 1:
            statistic[group] = coef[own[0]] ** 2 / max(covariance[0, 0], TINY)
            continue
        rank[group] = max(int(np.linalg.matrix_rank(covariance, hermitian=True)), 1)
        precision = np.linalg.pinv(covariance, rcond=NEARLY_SINGULAR, hermitian=True)
        statistic[group] = coef[own] @ precision @ coef[own]
    return statistic, rank


def _likelihood(coef: FloatArray, variance: FloatArray, rho: float) -> FloatArray:
    """Log likelihood of (K, p) coefficients at relative spread rho, maximised over their centre.

    The centre is sought on a grid between the smallest and the largest: outside, both terms grow.
    """
    # No closed form: the spread grows with the centre. A grid is exact enough, and the same for
    # every column at once.
    low, high = coef.min(axis=0), coef.max(axis=0)
    centre = low + (high - low) * np.linspace(0.0, 1.0, CENTRES)[:, None]
    spread = variance + (rho * centre[:, None]) ** 2
    value = -0.5 * ((coef - centre[:, None]) ** 2 / spread + np.log(spread)).sum(axis=1)
    best: FloatArray = value.max(axis=0)
    return best
