"""Mixture of K regressions of the target on the features: heterogeneity identification (M_c).

Minimises -1/N sum_i log sum_k q_k h_k(y_i | x_i) (paper, section 3.2) by EM, where h_k is a
regression of one `Family`. Started badly, EM settles on K equal components; so many short runs
start from least squares on small random subsets of the rows, side by side on a sample held in
memory, and only the best go on: to convergence on the sample, then over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.numerics.ensemble import (
    Evaluate,
    Expectation,
    Mixtures,
    Rules,
    expectation,
    joint_log_density,
    normalised,
    run,
)
from hetrisk.core.numerics.families import Design, Family
from hetrisk.core.numerics.floors import (
    FREE_VARIANCE,
    ROUNDING,
    SINGULAR,
    START_RIDGE,
    TIED_VARIANCE,
    TINY,
)
from hetrisk.core.numerics.iteration import Solution
from hetrisk.core.numerics.linear import least_squares
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource

SHORT_ITERATIONS: Budget[int] = 6
SHORT_ROWS: Budget[int] = 300
SHORT_ROWS_A_COEFFICIENT: Budget[int] = 15
TOL: Budget[float] = 1e-7  # gain in mean log likelihood at which EM has arrived
MAX_ITER: Budget[int] = 500
STARTS: Budget[int] = 24
SAMPLE_ROWS: Budget[int] = 4000  # that starts are compared on
COARSER: Budget[int] = 100  # times the tolerance, before all rows are looked at
FINAL_ITERATIONS: Budget[int] = 40


@dataclass(frozen=True)
class MixtureParameters(Partition):
    """A mixture of K regressions, which is a partition of rows.

    Attributes
    ----------
    weights : (K,) shares.
    coef : (K, d), or (K, C, d) for a multinomial with C classes (summing to zero over classes).
    intercept : (K,) or (K, C).
    variance : (K,) residual variances; ones where the family has none.
    family : distribution of the target.
    """

    weights: FloatArray
    coef: FloatArray
    intercept: FloatArray
    variance: FloatArray
    family: Family

    @property
    def n_environments(self) -> int:
        """Number of components K."""
        return len(self.weights)

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, K) probabilities of the components given each row."""
        return np.ascontiguousarray(normalised(self._joint(X, y))[0].T)

    def log_density(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n,) log density of y given x under the mixture."""
        return normalised(self._joint(X, y))[1]

    def relabelled(self, order: IntArray) -> MixtureParameters:
        """Return the same mixture with its components in another order."""
        return MixtureParameters(
            self.weights[order],
            self.coef[order],
            self.intercept[order],
            self.variance[order],
            self.family,
        )

    def unstandardised(self, centre: FloatArray, scale: FloatArray) -> MixtureParameters:
        """Undo (z - centre) / scale of the d + 1 columns (X, y): the mixture of the raw rows."""
        coef = self.coef * (scale[-1] / scale[:-1])
        intercept = centre[-1] + scale[-1] * self.intercept - coef @ centre[:-1]
        return replace(
            self, coef=coef, intercept=intercept, variance=self.variance * scale[-1] ** 2
        )

    def _joint(self, X: FloatArray, y: FloatArray) -> FloatArray:
        rows = Rows(X, y, np.ones(len(y)))
        mixtures = _internal(self)
        design = Design(rows, X, np.empty(0), None)
        eta = self.family.predictor(rows, mixtures.theta)
        joint: FloatArray = joint_log_density(self.family, design, mixtures, eta)[0]
        return joint


def em(
    source: RowSource,
    start: MixtureParameters,
    *,
    tied_variance: bool = True,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    variance_floor: float = SINGULAR,
) -> Solution[MixtureParameters]:
    """Climb the likelihood from ``start``, one pass over all rows an iteration.

    The path is the objective (mean log likelihood, less the ridge penalty for labels) after
    each pass; it never falls. Stops when it rises by at most ``tol``.
    """
    rules = Rules(start.family, tied_variance, variance_floor, start.family.ridge)
    first = _internal(start)
    variance = np.maximum(first.variance, variance_floor)
    if tied_variance:  # a start outside the rules could only be left by a fall
        variance = np.broadcast_to(np.average(variance, weights=first.weights), variance.shape)
    every = np.ones(source.n_features, dtype=bool)
    evaluate = partial(_over_rows, source=source, family=start.family, keep=every)
    return _climbed(evaluate, replace(first, variance=variance), rules, tol, max_iter)


def fit_mixture(
    source: RowSource,
    n_environments: int,
    family: Family,
    *,
    columns: BoolArray | None = None,
    tied_variance: bool = True,
    n_init: int = STARTS,
    seed: int = 0,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    sample_size: int = SAMPLE_ROWS,
) -> Solution[MixtureParameters]:
    """Fit a mixture from many starts.

    Parameters
    ----------
    source : rows, their columns of order one.
    n_environments : number of components K.
    family : distribution of the target.
    columns : (d,) features used, the coefficients of the others held at zero; None for all.
    tied_variance : one variance for all components.
    n_init : number of short runs.
    seed : of the sample and of the starts. The starts depend on the values of the rows in the
        sample, not on their order, and a row of weight two counts as two rows.
    tol, max_iter : of the last run, over all rows.
    sample_size : rows held in memory for the short runs.

    Returns
    -------
    Solution whose components are in order of decreasing weight, and whose path is that of the
    last run.
    """
    keep = np.ones(source.n_features, dtype=bool) if columns is None else np.asarray(columns)
    rows = _canonical(_select(source.sample(sample_size, seed), keep))
    least = TIED_VARIANCE if tied_variance else FREE_VARIANCE
    rules = Rules(family, tied_variance, _floor(rows, family, least), family.ridge)
    best = _best_of_many(rows, n_environments, rules, n_init, seed, tol)
    evaluate = _in_memory(rows, family)
    # A sample that holds all rows is the last run's data already.
    if source.n_rows > sample_size:
        evaluate = partial(_over_rows, source=source, family=family, keep=keep)
    solution = _climbed(evaluate, best, rules, tol, max_iter)
    order = np.argsort(-solution.value.weights, kind="stable")
    return replace(solution, value=_expanded(solution.value.relabelled(order), keep))


def _best_of_many(
    rows: Rows, n_components: int, rules: Rules, n_init: int, seed: int, tol: float
) -> Mixtures:
    """Short runs from every start on few rows, the best of them carried on over all of them."""
    size = SHORT_ROWS + SHORT_ROWS_A_COEFFICIENT * n_components * (1 + rows.X.shape[1])
    few = _thinned(rows, size)
    starts = _starts(few, n_components, rules, n_init, seed)
    if n_components == 1:
        # One component needs no luck: its likelihood is concave, and zero is a safe start.
        only = starts.take(np.zeros(1, dtype=np.int64))
        return replace(only, theta=0.0 * only.theta)
    short = run(_in_memory(few, rules.family), starts, rules, tol=0.0, max_iter=SHORT_ITERATIONS)
    # Short runs rank the starts well, not perfectly: a few are carried on.
    best = np.argsort(-short.value.objective, kind="stable")[: rules.family.finalists]
    final = run(
        _in_memory(rows, rules.family),
        short.value.mixtures.take(best),
        rules,
        tol=COARSER * tol,
        max_iter=FINAL_ITERATIONS,
    ).value
    return final.mixtures.take(np.argmax(final.objective, keepdims=True))


def _in_memory(rows: Rows, family: Family) -> Evaluate:
    design = family.design(rows, keep_products=True)
    return partial(expectation, design, family=family, weight=rows.weight[None])


def _thinned(rows: Rows, size: int) -> Rows:
    """``size`` rows at even steps of the cumulative weight, or all where there are no more."""
    if len(rows) <= size:
        return rows
    # Even steps of weight: a row of weight two stands for two, wherever they are.
    cumulative = np.cumsum(rows.weight)
    steps = (np.arange(size) + 0.5) * (cumulative[-1] / size)
    index = np.searchsorted(cumulative, steps)
    return Rows(rows.X[index], rows.y[index], np.ones(size))


def _climbed(
    evaluate: Evaluate, start: Mixtures, rules: Rules, tol: float, max_iter: int
) -> Solution[MixtureParameters]:
    solution = run(evaluate, start, rules, tol=tol, max_iter=max_iter)
    value = _public(solution.value.mixtures, 0, rules.family)
    path = np.append(solution.path, solution.value.objective[0])
    return Solution(value, solution.status, path)


def _starts(rows: Rows, n_components: int, rules: Rules, n_init: int, seed: int) -> Mixtures:
    """Least squares of the working response on random subsets of d + 3 rows, all at once.

    Rows are drawn by their place in the cumulative weight, so that a row of weight two is drawn
    like two rows. The first variance is the mean squared distance to the nearest component.
    """
    (n, d), family = rows.X.shape, rules.family
    random = np.random.default_rng(seed)
    shape = (n_init, n_components, d + 3)
    cumulative = np.cumsum(rows.weight)
    drawn = np.searchsorted(cumulative, random.random(shape) * cumulative[-1], side="right")
    drawn = np.minimum(drawn, n - 1)
    design = np.concatenate([np.ones((n, 1)), rows.X], axis=1)[drawn]
    response = family.working_response(rows.y)[drawn]
    gram = np.swapaxes(design, -1, -2) @ design
    # d + 3 rows leave a nearly singular system: without a ridge the start is wild.
    gram += START_RIDGE * np.trace(gram, axis1=-2, axis2=-1)[..., None, None] * np.eye(d + 1)
    theta = np.linalg.solve(gram, np.swapaxes(design, -1, -2) @ response)
    theta = np.ascontiguousarray(np.swapaxes(theta, -1, -2))
    weights = np.full((n_init, n_components), 1.0 / n_components)
    variance = np.ones((n_init, n_components))
    if family.has_variance:
        # As if each row belonged to its nearest component: from a larger variance all would blur
        # into one.
        nearest = ((rows.y - family.predictor(rows, theta)) ** 2).min(axis=1)
        mean = np.average(nearest, axis=-1, weights=rows.weight)
        variance *= np.maximum(mean, rules.variance_floor)[:, None]
    return Mixtures(weights, theta, variance)


def _canonical(rows: Rows) -> Rows:
    """Rows of positive weight in an order of their values, so that starts ignore row order.

    Sorted by target, then distance from the origin (which ignores the order of the columns).
    """
    keys = (*rows.X.T, (rows.X**2).sum(axis=1), rows.y)
    # Starts are drawn by place in this order: shuffled rows must give the same mixture.
    order = np.lexsort(keys)
    order = order[rows.weight[order] > 0]
    return Rows(rows.X[order], rows.y[order], rows.weight[order])


def _floor(rows: Rows, family: Family, relative: float) -> float:
    if not family.has_variance:
        return 0.0
    m = moments(rows)
    residual = least_squares(m).variance
    spread = float(m.covariance[-1, -1])
    return max(relative * residual, ROUNDING * spread, TINY)


def _over_rows(
    mixtures: Mixtures, source: RowSource, family: Family, keep: BoolArray
) -> Expectation:
    return source.sum(partial(_block, mixtures=mixtures, family=family, keep=keep))


def _block(rows: Rows, mixtures: Mixtures, family: Family, keep: BoolArray) -> Expectation:
    return expectation(family.design(_select(rows, keep)), mixtures, family, rows.weight[None])


def _internal(parameters: MixtureParameters) -> Mixtures:
    """One mixture in the coding of its family."""
    coding = parameters.family.coding
    K, d = len(parameters.weights), parameters.coef.shape[-1]
    coef = parameters.coef.reshape(K, -1, d)
    public = np.concatenate([parameters.intercept.reshape(K, -1, 1), coef], axis=-1)
    return Mixtures(parameters.weights[None], (coding @ public)[None], parameters.variance[None])


def _public(mixtures: Mixtures, index: int, family: Family) -> MixtureParameters:
    """One of the mixtures with a coefficient for every output, as users know them."""
    public = family.coding.T @ mixtures.theta[index]
    intercept, coef = public[..., 0], public[..., 1:]
    if family.n_outputs == 1:
        intercept, coef = intercept[:, 0], coef[:, 0]
    return MixtureParameters(
        mixtures.weights[index].copy(), coef, intercept, mixtures.variance[index].copy(), family
    )


def _expanded(parameters: MixtureParameters, keep: BoolArray) -> MixtureParameters:
    coef = np.zeros((*parameters.coef.shape[:-1], len(keep)))
    coef[..., keep] = parameters.coef
    return replace(parameters, coef=coef)


def _select(rows: Rows, keep: BoolArray) -> Rows:
    return rows if keep.all() else replace(rows, X=np.ascontiguousarray(rows.X[:, keep]))
