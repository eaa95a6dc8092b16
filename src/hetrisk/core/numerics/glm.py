"""One generalised linear model, or one for each of several environments at once.

Gaussian fits are least squares from moments, in one pass over the rows. Labels take damped
Newton steps, each one pass; a small stated ridge keeps separable data finite. Columns should
be of order one (the estimators standardise), for the ridge is on the coefficients as given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hetrisk.core.numerics.ensemble import (
    Climb,
    Evaluate,
    Expectation,
    Mixtures,
    Rules,
    expectation,
    run,
)
from hetrisk.core.numerics.families import LOG_2PI, Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.linear import least_squares
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows, RowSource

TOL: Budget[float] = 1e-11  # gain in mean log likelihood at which Newton has arrived
MAX_ITER: Budget[int] = 60
Weigh = Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class GLMFit:
    """A fitted model: eta = intercept + coef @ x.

    Attributes
    ----------
    coef : (n_outputs, d), zero outside the columns chosen; multinomial rows sum to zero.
    intercept : (n_outputs,).
    covariance : (n_outputs * d, n_outputs * d) covariance of ``coef.ravel()``.
    log_likelihood : weighted sum over rows, without the penalty.
    variance : residual variance (1 for labels).
    weight : total weight of the rows behind the fit.
    status : how the fit was found, as a sentence.
    """

    coef: FloatArray
    intercept: FloatArray
    covariance: FloatArray
    log_likelihood: float
    variance: float
    weight: float
    status: str

    @property
    def standard_error(self) -> FloatArray:
        """(n_outputs, d) standard errors of the coefficients."""
        error: FloatArray = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return error.reshape(self.coef.shape)


def fit_glm(
    source: RowSource,
    family: Family,
    *,
    columns: BoolArray | None = None,
    ridge: float | FloatArray | None = None,
) -> GLMFit:
    """Maximise the weighted log likelihood over all rows of the source.

    Parameters
    ----------
    source : the rows.
    family : distribution of the target.
    columns : (d,) features used, the coefficients of the others held at zero; None for all.
    ridge : penalty; None for the family's own. For the Gaussian it is added to the covariance
        of the features; for labels ``ridge / 2`` times the squared coefficients (intercepts
        included) is taken off the mean log likelihood, or one number for each column used, the
        intercept first (`on_slopes`).
    """
    return fit_glms(source, family, _ones, columns=columns, ridge=ridge)[0]


def fit_glms(
    source: RowSource,
    family: Family,
    responsibilities: Weigh,
    *,
    columns: BoolArray | None = None,
    ridge: float | FloatArray | None = None,
) -> tuple[GLMFit, ...]:
    """One `fit_glm` for each of the K columns of ``responsibilities(rows)``, in shared passes."""
    # Shared passes: K fits cost one reading of the rows an iteration, not K.
    keep = np.ones(source.n_features, dtype=bool) if columns is None else np.asarray(columns)
    penalty = family.ridge if ridge is None else ridge
    if family.closed_form:
        parts = source.sum(partial(_block_moments, weigh=responsibilities))
        return tuple(_gaussian(parts[k], keep, float(penalty)) for k in range(len(parts.weight)))

    def evaluate(mixtures: Mixtures) -> Expectation:
        return source.sum(
            partial(_block, weigh=responsibilities, mixtures=mixtures, family=family, keep=keep)
        )

    # Asked of one row: the weighing function alone knows how many environments there are.
    n_fits = int(responsibilities(source.sample(1, 0)).shape[1])
    return _newton(evaluate, family, keep, penalty, n_fits)


def on_slopes(ridge: float, n_columns: int) -> FloatArray:
    """(1 + n_columns,) a ridge on coefficients, and none on the intercept.

    What is rare would otherwise be expected too often: a penalty draws the intercept to even odds.
    """
    return np.append(0.0, np.full(n_columns, ridge))


def _gaussian(m: Moments, keep: BoolArray, ridge: float) -> GLMFit:
    """Least squares from moments, as a `GLMFit`."""
    fit = least_squares(m, keep, ridge)
    weight, variance = float(m.weight), max(fit.variance, TINY)
    return GLMFit(
        coef=fit.coef[None],
        intercept=np.asarray([fit.intercept]),
        covariance=fit.coef_covariance,
        log_likelihood=-0.5 * weight * (LOG_2PI + float(np.log(variance)) + 1.0),
        variance=fit.variance,
        weight=weight,
        status=f"Least squares in closed form ({fit.status}).",
    )


def _newton(
    evaluate: Evaluate,
    family: Family,
    keep: BoolArray,
    ridge: float | FloatArray,
    n_fits: int,
) -> tuple[GLMFit, ...]:
    """Climb the K penalised likelihoods together: mixtures of one component each."""
    # A regression is a mixture of one component: the same climb, with Newton's step as its M-step.
    rules = Rules(family, tied_variance=False, ridge=ridge, squared_steps=False)
    theta = np.zeros((n_fits, 1, len(family.coding), 1 + int(keep.sum())))
    ones = np.ones((n_fits, 1))

    solution = run(evaluate, Mixtures(ones, theta, ones), rules, tol=TOL, max_iter=MAX_ITER)
    return tuple(
        _newton_fit(solution.value, k, family, keep, ridge, solution.status.value)
        for k in range(n_fits)
    )


def _newton_fit(
    state: Climb, k: int, family: Family, keep: BoolArray, ridge: float | FloatArray, status: str
) -> GLMFit:
    """The k-th of the fits, its covariance the inverse of the penalised curvature."""
    theta = state.mixtures.theta[k, 0]
    outputs, d = family.n_outputs, len(keep)
    public = family.coding.T @ theta
    coef = np.zeros((outputs, d))
    coef[:, keep] = public[:, 1:]
    weight = float(state.expectation.weight[k])
    curvature = state.expectation.sums.curvature[k, 0]
    penalty = np.broadcast_to(np.maximum(np.multiply(ridge, weight), TINY), theta.shape)
    # The penalised curvature: for labels that can be separated the plain one is singular.
    inverse = np.linalg.inv(curvature + np.diag(penalty.ravel()))
    # Intercepts are cut off after inverting: their uncertainty is part of the coefficients'.
    blocks = inverse.reshape(*theta.shape, *theta.shape)[:, 1:, :, 1:]
    spread = np.zeros((outputs, d, outputs, d))
    every = np.ones(outputs, dtype=bool)
    # One contraction after the other: both at once is a loop over four axes of classes.
    spread[np.ix_(every, keep, every, keep)] = np.einsum(
        "ac,aibj,be->ciej", family.coding, blocks, family.coding, optimize=True
    )
    return GLMFit(
        coef=coef,
        intercept=public[:, 0],
        covariance=spread.reshape(outputs * d, outputs * d),
        log_likelihood=float(state.expectation.log_likelihood[k]),
        variance=1.0,
        weight=weight,
        status=f"Newton: {status}",
    )


def _ones(rows: Rows) -> FloatArray:
    return np.ones((len(rows), 1))


def _block_moments(rows: Rows, weigh: Weigh) -> Moments:
    return moments(rows, weigh(rows))


def _block(
    rows: Rows, weigh: Weigh, mixtures: Mixtures, family: Family, keep: BoolArray
) -> Expectation:
    weight = rows.weight[None] * weigh(rows).T
    design = family.design(Rows(rows.X[:, keep], rows.y, rows.weight))
    return expectation(design, mixtures, family, weight)
