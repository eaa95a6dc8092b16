"""What each environment looks like, on the user's scale: fits, errors and distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.environment_fits import (
    EnvironmentFits,
    environment_fits,
    environment_moments,
    membership,
    moment_fits,
)
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.linear import mean_squared_error
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import FloatArray, Rows, Summed
from hetrisk.estimators.scales import Scale

Losses = Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class EnvironmentSummary:
    """The environments a search settled on, side by side.

    Attributes
    ----------
    weight : (K,) share of the training weight.
    coef, coef_error : (K, d), or (K, C, d) for C > 2 classes: a linear fit on all features in
        each environment, and its standard errors.
    intercept : (K,) or (K, C).
    risk : (K,) error of the fitted model in each environment, named by ``risk_name``.
    risk_erm : (K,) error there of the plain linear model on all features and all rows.
    risk_name : ``"RMSE"`` or ``"error rate"``.
    feature_mean, feature_sd : (K, d).
    distance : (K, K) root mean square difference between the linear predictions of two
        environments over all rows: in standard deviations of y, or in log odds for labels
        (averaged over classes).
    """

    weight: FloatArray
    coef: FloatArray
    coef_error: FloatArray
    intercept: FloatArray
    risk: FloatArray
    risk_erm: FloatArray
    risk_name: str
    feature_mean: FloatArray
    feature_sd: FloatArray
    distance: FloatArray


@dataclass(frozen=True)
class _LossSums(Summed):
    weight: FloatArray
    loss: FloatArray


def summarise(
    rows: Blocks,
    family: Family,
    partition: Partition,
    scale: Scale,
    model: Losses,
    plain: tuple[FloatArray, FloatArray],
    linear: tuple[FloatArray, float] | None = None,
    environments: Moments | None = None,
) -> EnvironmentSummary:
    """Describe the environments of a partition of standardised rows.

    ``model`` returns the loss of the fitted model on each row of a block (squared error or
    0/1), on the standardised scale; ``plain`` are coefficients and intercept of plain ERM on
    that scale. Where the model is ``linear`` (coefficients and intercept, on
    that scale) and the moments of the ``environments`` are known, no row is looked at.
    """
    if linear is not None and environments is not None:
        m, fits = environments, moment_fits(environments)
        models = (linear, (plain[0], float(plain[1])))
        risk, risk_erm = np.array(
            # From moments a fit that misses nothing may miss less than nothing.
            [
                [max(mean_squared_error(m[k], *one), 0.0) for k in range(len(m.weight))]
                for one in models
            ]
        )
    else:
        fits, m = environment_fits(rows, family, partition), environment_moments(rows, partition)
        erm = partial(linear_losses, family=family, coef=plain[0], intercept=plain[1])
        sums = rows.sum(partial(_loss_pass, partition=partition, models=(model, erm)))
        risk, risk_erm = sums.loss / np.maximum(sums.weight, TINY)
    risk, risk_erm = (family.risk(r, float(scale.spread[-1])) for r in (risk, risk_erm))
    variances = np.diagonal(m.covariance, axis1=1, axis2=2)[:, :-1]
    return EnvironmentSummary(
        weight=fits.weight / fits.weight.sum(),
        coef=scale.coef(fits.coef),
        coef_error=scale.coef(fits.error),
        intercept=scale.intercept(fits.coef, fits.intercept),
        risk=risk,
        risk_erm=risk_erm,
        risk_name=family.risk_name,
        feature_mean=scale.centre[:-1] + scale.spread[:-1] * m.mean[:, :-1],
        feature_sd=scale.spread[:-1] * np.sqrt(np.maximum(variances, 0.0)),
        distance=_distances(fits, m.pooled()),
    )


def linear_losses(
    rows: Rows, family: Family, coef: FloatArray, intercept: FloatArray
) -> FloatArray:
    """Squared error, or 0/1 error, of a linear model on each row."""
    eta = rows.X @ coef.T + intercept
    if eta.ndim == 2 and eta.shape[1] == 1:  # two classes: one row of coefficients, one margin
        eta = eta[:, 0]
    return family.loss(rows.y, eta)


def model_losses(
    rows: Rows, model: Any, support: Any, scale: Scale, labels: Callable[[FloatArray], np.ndarray]
) -> FloatArray:
    """Squared error on the standardised scale, or 0/1 error, of a fitted estimator."""
    X = rows.X * scale.spread[:-1] + scale.centre[:-1]
    predicted = model.predict(X[:, support])
    if is_classifier(model):
        return (predicted != labels(rows.y)).astype(np.float64)
    return (rows.y - scale.target(predicted)) ** 2


def _loss_pass(rows: Rows, partition: Partition, models: tuple[Losses, ...]) -> _LossSums:
    weight = membership(rows, partition) * rows.weight[:, None]
    return _LossSums(weight.sum(axis=0), np.stack([model(rows) @ weight for model in models]))


def _distances(fits: EnvironmentFits, pooled: Moments) -> FloatArray:
    raw = pooled.covariance[:-1, :-1] + np.outer(pooled.mean[:-1], pooled.mean[:-1])
    full = np.block([[np.ones((1, 1)), pooled.mean[None, :-1]], [pooled.mean[:-1, None], raw]])
    K = len(fits.weight)
    coef = fits.coef.reshape(K, -1, fits.coef.shape[-1])
    theta = np.concatenate([fits.intercept.reshape(K, -1, 1), coef], axis=2)
    gap = theta[:, None] - theta[None, :]
    square = np.einsum("klcp,pq,klcq->klc", gap, full, gap).mean(axis=2)
    return np.sqrt(np.maximum(square, 0.0))
