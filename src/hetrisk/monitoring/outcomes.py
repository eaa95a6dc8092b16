"""What the targets of new rows say: errors, the place on the reach curve, relations that broke."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import is_classifier

from hetrisk.core.drift.strength import (
    Estimate,
    Origin,
    reach_of,
    strength_of_labels,
    strength_of_numbers,
)
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import BRIER, INVARIANT, RMSE
from hetrisk.estimators.quality import with_names
from hetrisk.monitoring.findings import OutcomeCheck
from hetrisk.report.summary import Curve


def check_outcomes(
    final: Any, Z: FloatArray, y: np.ndarray, curve: Curve | None, whole: bool
) -> OutcomeCheck:
    """Hold the targets of new rows against the model.

    Parameters
    ----------
    final : the fitted HRM estimator.
    Z : (n, d) new rows in its columns.
    y : (n,) their targets; labels among its classes.
    curve : its reach curve.
    whole : whether the rows have every column; plain ERM says nothing about those that do not.
    """
    # Of a model that is plain ERM there is no other beside it.
    beside = whole and final.verdict_ == INVARIANT and _carries_erm(final)
    losses = _label_losses if is_classifier(final) else _number_losses
    this, plain, strength, unit = losses(final, Z, y, beside)
    if final.support_.all() and final.form == "columns":
        strength = None  # nothing was left out: where weights differ, so do all columns a little
    error, error_plain = _root(this), None if plain is None else _root(plain)
    expected = float(curve.error[0]) if curve else np.nan
    limit = float(np.interp(curve.asked, curve.reach, curve.high)) if curve else np.nan
    chance = 1.0 / np.sqrt(2 * final.reference_.n_rows)  # of an error, relative, in normal noise
    return OutcomeCheck(
        unit=unit,
        error=error,
        plain=error_plain,
        expected=expected,
        limit=limit,
        expected_error=expected * chance,
        limit_error=limit * chance,
        plain_worse=None if plain is None else _mean(plain - this),
        reach=_reach(curve, error, error_plain),
        strength=strength,
    )


def _number_losses(
    final: Any, Z: FloatArray, y: np.ndarray, beside: bool
) -> tuple[FloatArray, FloatArray | None, Estimate | None, str]:
    """Squared errors of this model and, ``beside``, plain ERM's; the strength of what left."""
    predicted = np.asarray(final.predict(with_names(final, Z)), dtype=float)
    this = (y - predicted) ** 2
    if not beside:
        return this, None, None, RMSE
    plain = Z @ np.ravel(final.erm_coef_) + float(np.ravel(final.erm_intercept_)[0])
    return this, (y - plain) ** 2, strength_of_numbers(y, predicted, plain, _origin(final)), RMSE


def _label_losses(
    final: Any, Z: FloatArray, y: np.ndarray, beside: bool
) -> tuple[FloatArray, FloatArray | None, Estimate | None, str]:
    unit = BRIER
    codes = np.searchsorted(final.classes_, y)
    hot = np.eye(len(final.classes_))[codes]

    def brier(shares: FloatArray) -> FloatArray:
        loss: FloatArray = ((shares - hot) ** 2).sum(axis=1) / 2
        return loss

    this = brier(np.asarray(final.predict_proba(with_names(final, Z)), dtype=float))
    if not beside:
        return this, None, None, unit
    eta = _log_odds(Z, final.coef_, final.intercept_)
    plain = _log_odds(Z, final.erm_coef_, final.erm_intercept_)
    strength = strength_of_labels(codes, eta, plain, _origin(final))
    return this, brier(softmax(plain, axis=1)), strength, unit


def _origin(final: Any) -> Origin:
    """Training rows, and the coefficients the model does without (all, where none left)."""
    left = int((~final.support_).sum()) or len(final.support_)
    return Origin(final.reference_.n_rows, left)


def _log_odds(Z: FloatArray, coef: Any, intercept: Any) -> FloatArray:
    eta = Z @ np.atleast_2d(coef).T + np.atleast_1d(intercept)
    return eta if eta.shape[1] > 1 else np.hstack([np.zeros_like(eta), eta])


def _carries_erm(final: Any) -> bool:
    """Whether the model is linear, and kept plain ERM's coefficients."""
    return final.final_estimator is None


def _mean(values: FloatArray) -> Estimate:
    n = len(values)
    return Estimate(
        float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    )


def _root(losses: FloatArray) -> Estimate:
    """Root of the mean, and its standard error by the delta method."""
    mean = _mean(losses)
    root = float(np.sqrt(mean.value))
    return Estimate(root, mean.error / (2 * root) if root > 0 else 0.0)


def _reach(curve: Curve | None, error: Estimate, plain: Estimate | None) -> Estimate | None:
    """By the curve that rises more: on a flat one no error has a place."""
    if curve is None:
        return None
    rise, rise_plain = (v[-1] ** 2 - v[0] ** 2 for v in (curve.error, curve.error_erm))
    if plain is not None and rise_plain >= rise:
        return reach_of(plain, curve.reach, curve.error_erm)
    return reach_of(error, curve.reach, curve.error)
