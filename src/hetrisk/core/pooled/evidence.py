"""The evidence on each feature: is it a stand-in, a consequence, and does its role change?

Four questions, each answered by a test that holds under one homogeneous population:

*Redundancy.* Does the linear model lean on a feature that a flexible model has no use for? Then
it stands in for a curve the linear model cannot draw, and works only as long as the features
keep their joint distribution (Stein's lemma: with elliptical features no stand-in exists).

*Fork.* Does it follow what the other features say about the target in two ways? A shortcut does.

*Consequence.* Once the target is known, is the feature independent of all others, though before
it was not? Causes of a common effect behave the other way round, so the feature is an effect of
the target (the collider rule of constraint-based causal discovery). Whether its mechanism is the
same everywhere can then be tested (`hetrisk.core.pooled.mechanism`).

*Change.* Between the environments of a partition, does the feature's slope differ? The
instability index is the spread of the slope beyond its standard error, relative to its mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from hetrisk.core.numerics.dependence import dependence
from hetrisk.core.numerics.families import Bernoulli, Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Held, IntArray, Rows
from hetrisk.core.numerics.working import MOST_LEVERAGE, WorkingFit, working_fit
from hetrisk.core.pooled.mechanism import mechanism_p_values, target_basis
from hetrisk.core.pooled.probes import Probe
from hetrisk.core.pooled.terms import Term, term_values, two_valued

LEAN = 2.5  # robust z at which the linear model leans on a feature, more than the flexible one
NEEDED = 4.0  # robust z at which the flexible model needs it
OWN_CURVE = 8.0  # robust z at which a curve of its own cannot be chance, or z above its lean
STAND_IN = 0.2  # a stand-in keeps less than this share of its coefficient in the flexible model
NO_FORK = -1.64  # robust z at which a feature does not follow the others' prediction in two ways
FORK = 5.0  # and at which it plainly does, whether or not anything leans on it
FAR = 3.0  # standard deviations beyond which distances count no further
LEAST_ROWS = 20.0  # an environment of fewer effective rows says nothing


@dataclass(frozen=True)
class Redundancy:
    """How the linear and the flexible model use each of the d features.

    Attributes
    ----------
    lean : (d,) robust z of the linear coefficient.
    shift : (d,) change of the coefficient from linear to flexible, over its standard error.
    needed : (d,) the flexible model uses the feature.
    linear, flexible : the two fits.
    """

    lean: FloatArray
    shift: FloatArray
    needed: BoolArray
    linear: WorkingFit
    flexible: WorkingFit

    @property
    def stand_in(self) -> BoolArray:
        """(d,) the linear model leans on the feature only in place of something else."""
        leaning = (np.abs(self.lean) > LEAN) & (np.abs(self.shift) > LEAN)
        stand_in: BoolArray = leaning & ~self.needed
        return stand_in


def redundancy(rows: Rows, family: Family, terms: tuple[Term, ...]) -> Redundancy:
    """Compare the fit of y on X with the fit on X and the terms."""
    d = rows.X.shape[1]
    linear = working_fit(rows, family, np.empty((len(rows), 0)))
    lean = linear.z[1:]
    if not terms:
        return Redundancy(lean, np.zeros(d), np.ones(d, dtype=bool), linear, linear)
    flexible = working_fit(rows, family, term_values(terms, rows.X))
    own, error = linear.coef[1:], np.abs(linear.coef[1:]) / np.maximum(np.abs(lean), 1e-300)
    bent, (z, of_terms) = flexible.coef[1 : d + 1].copy(), np.split(flexible.z[1:], [d])
    curved = np.zeros(d)
    for j in sorted({f for term in terms for f in term.features}):
        # What it stands in for is a curve of other features: its own curves are set aside.
        touching = np.array([j in term.features for term in terms])
        others = tuple(term for term, own_term in zip(terms, touching, strict=True) if not own_term)
        fit = working_fit(rows, family, term_values(others, rows.X))
        bent[j], z[j] = fit.coef[1 + j], fit.z[1 + j]
        curved[j] = np.abs(of_terms[touching]).max()
    used = (np.abs(z) >= NEEDED) & (bent * np.sign(own) >= STAND_IN * np.abs(own))
    needed = used | (curved > np.minimum(np.abs(lean), OWN_CURVE))
    return Redundancy(lean, (own - bent) / error, needed, linear, flexible)


def forks(rows: Rows, fit: WorkingFit, probes: list[Probe]) -> FloatArray:
    """(d,) robust z that a feature's distance from its line on s grows with |s|.

    s is what the other features say about the target (the prediction of the feature's probe). A
    shortcut that follows the target here and runs against it there leaves two lines that cross:
    the farther out, the farther apart. Its pooled slope may then be nothing at all. NaN for
    features that were not probed, and for those of two values, whose spread follows their mean.
    """
    z = np.full(rows.X.shape[1], np.nan)
    w = rows.weight / rows.weight.sum()
    for probe in probes:
        if two_valued(rows.X[:, probe.feature]):
            continue
        line = np.column_stack([np.ones(len(rows)), fit.design @ probe.prediction])
        x = _left(line, rows.X[:, probe.feature], w)
        s = line[:, 1] - w @ line[:, 1]
        far = np.column_stack([_capped(x, w), _capped(s, w)])
        score = w * _left(line, far, w).prod(axis=1)
        z[probe.feature] = score.sum() / np.sqrt(max(float((score**2).sum()), 1e-300))
    return z


def _left(design: FloatArray, columns: FloatArray, w: FloatArray) -> FloatArray:
    """Residuals of a weighted regression."""
    root = np.sqrt(w)
    rooted = (columns.T * root).T
    coef = np.linalg.lstsq(design * root[:, None], rooted, rcond=None)[0]
    left: FloatArray = columns - design @ coef
    return left


def _capped(x: FloatArray, w: FloatArray) -> FloatArray:
    size = np.sqrt(max(float(w @ x**2), 1e-300))
    capped: FloatArray = np.minimum(np.abs(x) / size, FAR)
    return capped


@dataclass(frozen=True)
class Change:
    """How the slope of each of m features differs between the two environments of its probe.

    ``index`` (m,) is tau / |mean slope| with tau^2 = max(0, (gap/2)^2 - (error/2)^2), the mean
    taken no smaller than the error of the gap; ``error`` is its standard error to first order;
    ``z`` the gap between the two slopes over its robust standard error (zero where an
    environment is too small to say).
    """

    index: FloatArray
    error: FloatArray
    z: FloatArray

    def spread_over(self, features: IntArray, m: int) -> Change:
        """Return the same for m features, nothing having changed where nothing was measured."""
        spread = [np.zeros(m) for _ in range(3)]
        for whole, part in zip(spread, (self.index, self.error, self.z), strict=True):
            whole[features] = part
        return Change(*spread)

    def updated(self, other: Change, where: BoolArray) -> Change:
        """Return the other's values where ``where`` holds, its own elsewhere."""
        return Change(
            np.where(where, other.index, self.index),
            np.where(where, other.error, self.error),
            np.where(where, other.z, self.z),
        )


def slope_change(
    fit: WorkingFit, rows: Rows, features: IntArray, second: FloatArray, others: bool = False
) -> Change:
    """Add to ``fit`` the interaction of a feature with its partition, for each on its own.

    Parameters
    ----------
    fit : a fit of y on (1, X, ...).
    rows : the rows behind it.
    features : (m,) columns of X.
    second : (n, m) probability of the second environment of each feature's partition.
    others : let the slopes of all other features change with the partition as well: slower, and
        sharper, because their changes are then not laid at this feature's door.
    """
    if others:
        parts = [
            _full_change(fit, rows, int(j), r) for j, r in zip(features, second.T, strict=True)
        ]
        return Change(*np.array(parts, dtype=float).reshape(-1, 3).T)
    x = rows.X[:, features]
    share = (rows.weight[:, None] * second).sum(axis=0) / rows.weight.sum()
    interaction = (second - share) * x
    W, e = fit.curvature[:, None], fit.residual[:, None]
    level, slope = fit.residualised(second - share), fit.residualised(interaction)
    level_size = np.maximum((W * level**2).sum(axis=0), 1e-300)
    own = slope - level * ((W * level * slope).sum(axis=0) / level_size)
    size = (W * own**2).sum(axis=0)
    told = size > 1e-6 * np.maximum((W * interaction**2).sum(axis=0), 1e-300)
    told &= _large_enough(second, rows.weight)
    size = np.where(told, size, 1.0)
    gap = (own * e).sum(axis=0) / size
    left = e - W * (own * gap + level * ((level * e).sum(axis=0) / level_size))
    leverage = fit.leverage[:, None] + W * (level**2 / level_size + own**2 / size)
    influence = own * left / (1.0 - np.minimum(leverage, MOST_LEVERAGE))
    error = np.sqrt((influence**2).sum(axis=0)) / size
    lift = (level * (e - W * slope * gap)).sum(axis=0) / level_size
    mean = _mean_slope(fit, features, (second - share) * lift + interaction * gap)
    return _change(gap, error, mean + gap * (0.5 - share), told)


def _full_change(
    fit: WorkingFit, rows: Rows, j: int, second: FloatArray
) -> tuple[float, float, float]:
    """Index, its error and z of one feature when every slope may differ between environments."""
    share = float(rows.weight @ second / rows.weight.sum())
    centred = (second - share)[:, None]
    d = rows.X.shape[1]
    full = fit.extended(np.column_stack([centred, centred * rows.X]))
    place = full.design.shape[1] - d + j
    told = _large_enough(second[:, None], rows.weight)
    error = np.sqrt(max(full.covariance[place, place], 0.0))
    gap = full.coef[place]
    mean = full.coef[1 + j] + gap * (0.5 - share)
    change = _change(np.array([gap]), np.array([error]), np.array([mean]), told)
    return float(change.index[0]), float(change.error[0]), float(change.z[0])


def _change(gap: FloatArray, error: FloatArray, mean: FloatArray, told: BoolArray) -> Change:
    tau = 0.5 * np.sqrt(np.maximum(gap**2 - error**2, 0.0))
    # A slope that cannot be told from zero is taken to be as large as its error.
    mean = np.maximum(np.hypot(mean, error), 1e-12)
    index = np.where(told, tau / mean, 0.0)
    index_error = np.where(told, 0.5 * error / mean * np.sqrt(1 + index**2), 0.0)
    return Change(index, index_error, np.where(told, gap / np.maximum(error, 1e-300), 0.0))


def _mean_slope(fit: WorkingFit, features: IntArray, added: FloatArray) -> FloatArray:
    """Weighted mean slope of each feature once ``added`` (n, m) is part of the prediction."""
    moved = fit.bread[1 + features] * (fit.design.T @ (fit.curvature[:, None] * added)).T
    mean: FloatArray = fit.coef[1 + features] - moved.sum(axis=1)
    return mean


def _large_enough(second: FloatArray, weight: FloatArray) -> BoolArray:
    """Whether both environments hold at least `LEAST_ROWS` effective rows (Kish)."""
    enough = np.ones(second.shape[1], dtype=bool)
    for part in (second, 1.0 - second):
        w = weight[:, None] * part
        enough &= w.sum(axis=0) ** 2 / np.maximum((w**2).sum(axis=0), 1e-300) >= LEAST_ROWS
    return enough


@dataclass(frozen=True)
class Consequences:
    """Which features look like effects of the target.

    Attributes
    ----------
    is_effect : (d,) depends on the others, but not once the target is known.
    is_cause : (d,) depends on the others more once the target is known, effects set aside.
    mechanism : (d,) p-value of one mechanism for effects; one for the others.
    """

    is_effect: BoolArray
    is_cause: BoolArray
    mechanism: FloatArray


def one_against_rest(rows: Rows) -> list[tuple[Rows, Family]]:
    """Rows of several labels as one problem of two labels each."""
    return [
        (replace(rows, y=(rows.y == code).astype(np.float64)), Bernoulli())
        for code in np.unique(rows.y)
    ]


def consequences(rows: Rows, family: Family, groups: IntArray) -> Consequences:
    """Compare what the features say of each other before and after the target is known."""
    w = rows.weight / rows.weight.sum()
    centred = rows.X - w @ rows.X
    known = target_basis(rows.y, family)
    known = known - w @ known
    noise = _left(known, centred, w)
    effective = 1.0 / float((w**2).sum())
    plain, left = (z.T @ (w[:, None] * z) for z in (centred, noise))
    found = dependence(plain, left, effective, known.shape[1], groups)
    effect = found.is_effect
    cause = np.zeros(len(effect), dtype=bool)
    rest = np.flatnonzero(~effect)
    at = np.ix_(rest, rest)
    cause[rest] = dependence(plain[at], left[at], effective, known.shape[1], groups[rest]).is_cause
    mechanism = np.ones(len(effect))
    mechanism[effect] = mechanism_p_values(Held(rows), family, groups, np.flatnonzero(effect))
    return Consequences(effect, cause, mechanism)


def two_sided(z: FloatArray | float) -> FloatArray:
    """p-values of normal scores."""
    p: FloatArray = 2.0 * ndtr(-np.abs(z))
    return p


def squared_correlation(rows: Rows) -> FloatArray:
    """(d,) squared correlation of each feature with the target."""
    w = rows.weight / rows.weight.sum()
    x, y = rows.X - w @ rows.X, rows.y - w @ rows.y
    spread = (w @ x**2) * (w @ y**2)
    squared: FloatArray = ((w * y) @ x) ** 2 / np.maximum(spread, 1e-300)
    return squared


def mean_log_likelihood(fit: WorkingFit, rows: Rows, family: Family) -> float:
    """Mean log likelihood of the rows under a fit, at the best variance for numbers."""
    eta, total = fit.design @ fit.coef, float(rows.weight.sum())
    variance = 1.0
    if family.closed_form:
        variance = max(float(rows.weight @ (rows.y - eta) ** 2) / total, 1e-300)
    return float(rows.weight @ family.log_density(rows.y, eta, variance)) / total


def explained_share(rows: Rows, family: Family, columns: BoolArray) -> float:
    """Share of the log likelihood that all features gain which some of them gain alone."""
    fits = [
        working_fit(replace(rows, X=rows.X[:, keep]), family, np.empty((len(rows), 0)))
        for keep in (np.zeros_like(columns), columns, np.ones_like(columns))
    ]
    null, some, every = (mean_log_likelihood(fit, rows, family) for fit in fits)
    return (some - null) / max(every - null, 1e-300)


def leaving_out_cost(fit: WorkingFit, rows: Rows, family: Family, columns: IntArray) -> float:
    """Relative rise of the error on these rows when columns of X leave the fit, to first order.

    Root mean square error for numbers, deviance for labels.
    """
    index = 1 + columns
    own = fit.coef[index]
    rise = float(own @ np.linalg.lstsq(fit.bread[np.ix_(index, index)], own, rcond=None)[0])
    if family.closed_form:
        left = float((fit.residual**2 / np.maximum(rows.weight, 1e-300)).sum())
        return float(np.sqrt(1.0 + rise / max(left, 1e-300)) - 1.0)
    eta = fit.design @ fit.coef
    deviance = -2.0 * float((rows.weight * family.log_density(rows.y, eta)).sum())
    return rise / max(deviance, 1e-300)
