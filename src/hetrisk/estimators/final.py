"""The final model: fitted on the features a search selected, over all rows.

By default a linear or logistic model, kept as a scikit-learn `LinearRegression` or
`LogisticRegression` on the selected columns; any other estimator is cloned and fitted there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import ROUNDING, TINY
from hetrisk.core.numerics.glm import fit_glm, on_slopes
from hetrisk.core.numerics.linear import cross_validated_ridge, least_squares
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows
from hetrisk.core.result import SearchResult

FINAL_ROWS = 200_000  # most rows an estimator that is not linear is fitted on, out of core


def linear_fit(
    rows: Blocks,
    family: Family,
    found: SearchResult,
    plain: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercept of the linear model of a search, on standardised rows.

    The search's own, where it gives them; else a refit on the support, or on the directions, by
    least squares (the shortest solution, where columns repeat each other) or logistic regression.
    On all columns that is ``plain``.
    """
    if found.coef is not None and found.intercept is not None:
        return found.coef, np.asarray(found.intercept, dtype=float)
    if found.directions is not None and found.offsets is not None:
        return _direction_fit(rows, family, found.directions, found.offsets)
    if found.support.all():
        return plain
    return plain_fit(rows, family, found.support, found.pooled)


def plain_fit(
    rows: Blocks,
    family: Family,
    columns: BoolArray | None = None,
    known: Moments | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Least squares or logistic regression on some columns, the others at zero.

    ``known`` are the moments of all rows, where y is a number and they are at hand. Labels get the
    penalty scikit-learn has by default, ``C = 1`` on standardised features: half the squared
    coefficients, not the intercept's, against the sum of the log losses. It vanishes as rows are
    added, and keeps labels that can be separated finite. All rows are one, whatever environments
    they carry. Where there are no more rows than columns, numbers get a ridge chosen by
    cross-validation.
    """
    if family.closed_form and few_rows(rows, columns):
        m = rows.sum(moments)
        ridge = cross_validated_ridge(m, rows.n_rows, columns)
        line = least_squares(m, columns, ridge)
        return line.coef, np.asarray(line.intercept)
    if known is not None:
        line = least_squares(known, columns)
        return line.coef, np.asarray(line.intercept)
    if family.closed_form:
        fit = fit_glm(rows, family, columns=columns, ridge=0.0)
    else:
        used = rows.n_features if columns is None else int(columns.sum())
        penalty = on_slopes(1.0 / max(float(rows.sum(_weight)), TINY), used)
        fit = fit_glm(rows, family, columns=columns, ridge=penalty)
    if family.n_outputs == 1:
        return fit.coef[0], fit.intercept[0]
    return fit.coef, fit.intercept


def of_all_rows(found: SearchResult, weight: float) -> SearchResult:
    """What was found, with the pooled moments where these hold the ``weight`` of all rows."""
    # Rows without a value of a hint are in none of its levels.
    held = 0.0 if found.pooled is None else float(found.pooled.weight)
    return found if held >= (1.0 - ROUNDING) * weight else replace(found, pooled=None)


def few_rows(rows: Blocks, columns: BoolArray | None = None) -> bool:
    """Whether least squares on these columns would repeat its rows."""
    d = rows.n_features if columns is None else int(columns.sum())
    return rows.n_rows <= d + 1


def _direction_fit(
    rows: Blocks, family: Family, directions: FloatArray, offsets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The linear scores themselves for numbers; for labels, logistic regression on them."""
    if family.closed_form:
        return directions[:, 0], np.asarray(offsets[0])
    coef, intercept = plain_fit(rows.viewed(Project(directions), directions.shape[1]), family)
    return coef @ directions.T, intercept


@dataclass(frozen=True)
class Project:
    """Rows with linear scores (d, t) in place of features."""

    directions: FloatArray

    def __call__(self, rows: Rows) -> Rows:
        return replace(rows, X=rows.X @ self.directions)


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
