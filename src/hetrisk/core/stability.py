"""Is a coefficient the same everywhere? Evidence from one fit in each environment.

Coefficients b_k with standard errors s_k in K environments speak for a feature that is stable
(they spread by a small share of their size, as a linear model of a curved world does anyway) or
unstable (they spread by a large share). With b_k ~ N(b, (rho b)^2 + s_k^2) the two are compared
by their likelihoods at rho = `STABLE` and at the best rho of `UNSTABLE`, each at its best b::

    evidence = max_rho max_b log L(b, rho) - max_b log L(b, STABLE)

It is free of the scale of x and y, it asks for a large relative spread rather than for a
significant one (with many rows every difference is significant), and where the errors swamp
both hypotheses it is near zero: undecided.

Leaving a feature out changes the coefficients of the others. From a quadratic log likelihood in
every environment (exact for least squares, the usual expansion for labels) the new ones follow
without returning to the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from hetrisk.core.families import Family
from hetrisk.core.glm import GLMFit
from hetrisk.core.moments import Moments
from hetrisk.core.rows import BoolArray, FloatArray, IntArray

STABLE = 0.2
UNSTABLE = (0.5, 0.7, 1.0, 2.0, 4.0)
UNDECIDED = -0.4  # evidence above this speaks against keeping a feature
LEVEL = 0.002  # chance of keeping a feature of no use, before adapting to how many there are
RIDGE = 1e-9
FLOOR = 1e-9  # smallest residual variance, relative to the variance of the target


def always(before: BoolArray, after: BoolArray) -> bool:
    """Any step may be taken."""
    return True


@dataclass(frozen=True)
class Quadratics:
    """Log likelihoods of K environments, each quadratic in the same p coefficients.

    Attributes
    ----------
    bend : (K, p, p) curvatures times the residual variance.
    pull : (K, p) such that the fit on columns S solves ``bend_SS b = pull_S``.
    total : (K,) residual sum of squares of no columns; NaN for labels.
    weight : (K,) total weight.
    column : (p,) feature each coefficient belongs to.
    """

    bend: FloatArray
    pull: FloatArray
    total: FloatArray
    weight: FloatArray
    column: IntArray

    def fits(self, keep: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients and variances (K, q), and residual variances (K,), on some coefficients."""
        bend = self.bend[:, keep][:, :, keep]
        scale = np.diagonal(bend, axis1=1, axis2=2)
        root = np.sqrt(np.where(scale > 1e-100, scale, 1.0))
        inverse = np.linalg.pinv(
            bend / (root[:, :, None] * root[:, None, :]), rcond=RIDGE, hermitian=True
        )
        inverse = inverse / (root[:, :, None] * root[:, None, :])
        coef = np.einsum("kij,kj->ki", inverse, self.pull[:, keep])
        explained = np.einsum("ki,ki->k", coef, self.pull[:, keep])
        freedom = np.maximum(self.weight - int(keep.sum()) - 1.0, 1.0)
        # An environment of few rows may be fitted exactly; its errors are small, not nothing.
        floor = FLOOR * self.total.sum() / max(float(self.weight.sum()), 1e-300)
        residual = np.maximum((self.total - explained) / freedom, max(floor, 1e-300))
        residual = np.where(np.isnan(self.total), 1.0, residual)
        variance = np.diagonal(inverse, axis1=1, axis2=2) * residual[:, None]
        return coef, np.maximum(variance, 1e-300), residual


def quadratics_from_moments(m: Moments) -> Quadratics:
    """Least squares in every environment."""
    d = m.mean.shape[-1] - 1
    S = m.scatter
    return Quadratics(S[:, :d, :d], S[:, :d, d], S[:, d, d], m.weight, np.arange(d))


def quadratics_from_fits(fits: tuple[GLMFit, ...], family: Family) -> Quadratics:
    """Expand the log likelihood of labels about the fit in every environment."""
    d = fits[0].coef.shape[-1]
    bend = np.stack([np.linalg.pinv(f.covariance, rcond=RIDGE, hermitian=True) for f in fits])
    coef = np.stack([f.coef.ravel() for f in fits])
    weight = np.array([f.weight for f in fits])
    column = np.tile(np.arange(d), family.n_outputs)
    return Quadratics(
        bend, np.einsum("kij,kj->ki", bend, coef), np.full(len(fits), np.nan), weight, column
    )


def evidence(coef: FloatArray, variance: FloatArray) -> FloatArray:
    """(p,) evidence that a coefficient is unstable, from (K, p) fits and their variances."""
    unstable = np.max([_likelihood(coef, variance, rho) for rho in UNSTABLE], axis=0)
    difference: FloatArray = unstable - _likelihood(coef, variance, STABLE)
    return difference


def evidence_by_group(q: Quadratics, groups: IntArray) -> FloatArray:
    """(G,) evidence that a group is unstable, in a fit of everything."""
    coef, variance, _ = q.fits(np.ones(len(q.column), dtype=bool))
    return _by_group(groups[q.column], evidence(coef, variance), int(groups.max()) + 1)


def screen(
    q: Quadratics,
    groups: IntArray,
    affordable: Callable[[BoolArray, BoolArray], bool] = always,
    threshold: float = UNDECIDED,
    start: BoolArray | None = None,
) -> tuple[BoolArray, FloatArray]:
    """Leave out the most unstable group, refit, and repeat until none is left that is unstable.

    Parameters
    ----------
    q : the fits.
    groups : (d,) group of each feature.
    affordable : of the groups (G,) before and after, whether the step may be taken; else the
        next most unstable group is tried.
    threshold : evidence above which a group is unstable.
    start : (G,) groups to begin with; None for all.

    Returns
    -------
    stable : (G,) groups that stay.
    strength : (G,) evidence of instability, when the group was left out or at the end.
    """
    n_groups = int(groups.max()) + 1
    stable = np.ones(n_groups, dtype=bool) if start is None else start.copy()
    strength = np.full(n_groups, -np.inf)
    owner = groups[q.column]
    while stable.any():
        keep = stable[owner]
        coef, variance, _ = q.fits(keep)
        by_group = _by_group(owner[keep], evidence(coef, variance), n_groups)
        strength[stable] = by_group[stable]
        worst = _next(stable, by_group, threshold, affordable)
        if worst is None:
            break
        stable = worst
    return stable, strength


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
    order = np.argsort(-np.where(stable, by_group, -np.inf), kind="stable")
    for group in order[: int(stable.sum())]:
        if by_group[group] <= threshold:
            return None
        after = stable.copy()
        after[group] = False
        if affordable(stable, after):
            return after
    return None


def informative(
    q: Quadratics, groups: IntArray, open_: BoolArray, level: float = LEVEL
) -> BoolArray:
    """(G,) the open groups that predict at all, leaving out the least significant in turn.

    The level adapts to how many groups seem of no use (Storey's estimate of the share of true
    nulls): where nearly all matter, a weak one is given the benefit of the doubt.
    """
    kept = open_.copy()
    while kept.any():
        p = significance(q, groups, kept)[kept]
        nulls = min(1.0, 2.0 * ((p > 0.5).sum() + 1.0) / len(p))
        if p.max() <= level / nulls:
            break
        kept[np.flatnonzero(kept)[np.argmax(p)]] = False
    return kept


def significance(q: Quadratics, groups: IntArray, kept: BoolArray) -> FloatArray:
    """(G,) p-value of each kept group in one fit over all environments; 1 for the others."""
    owner = groups[q.column]
    keep = kept[owner]
    _, _, residual = q.fits(keep)
    bend = (q.bend[:, keep][:, :, keep] / residual[:, None, None]).sum(axis=0)
    inverse = np.linalg.pinv(bend, rcond=RIDGE, hermitian=True)
    coef = inverse @ (q.pull[:, keep] / residual[:, None]).sum(axis=0)
    p = np.ones(len(kept))
    for group in np.flatnonzero(kept):
        own = np.flatnonzero(owner[keep] == group)
        p[group] = _wald(coef[own], inverse[np.ix_(own, own)])
    return p


def _wald(coef: FloatArray, covariance: FloatArray) -> float:
    """p-value of all coefficients being zero."""
    if len(coef) == 1:
        return float(chi2.sf(coef[0] ** 2 / max(covariance[0, 0], 1e-300), 1))
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    precision = np.linalg.pinv(covariance, rcond=RIDGE, hermitian=True)
    return float(chi2.sf(coef @ precision @ coef, max(rank, 1)))


def _likelihood(coef: FloatArray, variance: FloatArray, rho: float) -> FloatArray:
    """Log likelihood of (K, p) coefficients at relative spread rho, maximised over their centre.

    The centre is sought on a grid between the smallest and the largest: outside, both terms grow.
    """
    low, high = coef.min(axis=0), coef.max(axis=0)
    centre = low + (high - low) * np.linspace(0.0, 1.0, 41)[:, None]
    spread = variance + (rho * centre[:, None]) ** 2
    value = -0.5 * ((coef - centre[:, None]) ** 2 / spread + np.log(spread)).sum(axis=1)
    best: FloatArray = value.max(axis=0)
    return best
