"""The final model: fitted on the features a search selected, over all rows.

By default a linear or logistic model, kept as a scikit-learn `LinearRegression` or
`LogisticRegression` on the selected columns; any other estimator is cloned and fitted there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.comparison import EnvironmentFits, environment_fits
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.linear import least_squares
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows
from hetrisk.core.result import Discovery

SAMPLE_ROWS = 200_000  # most rows an estimator that is not linear is fitted on, out of core


def linear_fit(rows: Blocks, family: Family, found: Discovery) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercept of the linear model of a search, on standardised rows.

    The search's own, where it gives them; else a refit on the support by least squares or
    logistic regression. A gate of g < 1 on a feature in the support lets a share of its
    coefficient through: the refit carries a ridge of (1 - g) / g on that standardised
    feature, which alone would shrink its coefficient to g times itself; for labels the
    coefficients of the refit are scaled by the gates.
    """
    if found.coef is not None and found.intercept is not None:
        return found.coef, np.asarray(found.intercept, dtype=float)
    if not family.closed_form:
        fits = logistic_fit(rows, family, found.support)
        gates = np.where(found.support, found.gates, 1.0)
        return fits.coef[0] * gates, fits.intercept[0]
    m = rows.sum(moments)
    soft = np.where(found.support, 1.0 / np.maximum(found.gates, 1e-6) - 1.0, 0.0)
    scatter = m.scatter.copy()
    scatter[np.diag_indices(len(soft))] += soft * np.diag(m.scatter)[:-1]
    fit = least_squares(Moments(m.weight, m.mean, scatter), found.support)
    return fit.coef, np.asarray(fit.intercept)


def logistic_fit(rows: Blocks, family: Family, columns: BoolArray | None = None) -> EnvironmentFits:
    """Logistic regression on all rows with the penalty scikit-learn has by default.

    ``C = 1`` on standardised features: half the squared coefficients against the sum of the log
    losses. It vanishes as rows are added, and keeps labels that can be separated finite.
    """
    weight = float(rows.sum(_weight))
    return environment_fits(rows, family, None, columns, ridge=1.0 / max(weight, 1e-300))


def _weight(rows: Rows) -> float:
    return float(rows.weight.sum())


def linear_regression(coef: FloatArray, intercept: FloatArray) -> LinearRegression:
    """Return a fitted `LinearRegression` with these coefficients."""
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = coef, float(intercept), len(coef)
    return model


def logistic_regression(
    coef: FloatArray, intercept: FloatArray, classes: np.ndarray
) -> LogisticRegression:
    """Return a fitted `LogisticRegression` with these coefficients."""
    model = LogisticRegression(C=np.inf)
    model.coef_, model.intercept_ = np.atleast_2d(coef), np.atleast_1d(intercept)
    model.classes_, model.n_features_in_ = classes, model.coef_.shape[1]
    model.n_iter_ = np.zeros(1, dtype=np.int32)
    return model


def fit_estimator(estimator: Any, rows: Rows, support: BoolArray, y: np.ndarray) -> Any:
    """Fit a clone on the selected columns; a constant prediction where none is selected."""
    if not support.any():
        constant = (
            DummyClassifier(strategy="prior") if is_classifier(estimator) else DummyRegressor()
        )
        return constant.fit(rows.X[:, support], y, sample_weight=rows.weight)
    model = clone(estimator)
    if has_fit_parameter(model, "sample_weight"):
        return model.fit(rows.X[:, support], y, sample_weight=rows.weight)
    if not np.all(rows.weight == rows.weight[0]):
        raise ValueError(
            f"sample_weight was given, but final_estimator={estimator!r} does not take weights."
        )
    return model.fit(rows.X[:, support], y)
