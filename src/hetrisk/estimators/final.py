"""The model on the columns that stay, over all rows: plain, or an estimator of the user's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import has_fit_parameter

from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm, on_slopes
from hetrisk.core.numerics.linear import cross_validated_ridge, least_squares
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows

FINAL_ROWS = 200_000  # most rows an estimator that is not linear is fitted on, out of core


def plain_fit(rows: Blocks, family: Family, columns: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Least squares or logistic regression on some columns, the others at zero.

    Labels get the penalty scikit-learn has by default, ``C = 1`` on standardised features: half the
    squared coefficients, not the intercept's, against the sum of the log losses. It vanishes as
    rows are added, and keeps labels that can be separated finite. All rows are one, whatever
    environments they carry. Where there are no more rows than columns, numbers get a ridge chosen
    by cross-validation.
    """
    used = int(columns.sum())
    if family.closed_form and rows.n_rows <= used + 1:  # least squares would repeat its rows
        m = rows.sum(moments)
        ridge = cross_validated_ridge(m, rows.n_rows, columns)
        line = least_squares(m, columns, ridge)
        return line.coef, np.asarray(line.intercept)
    if family.closed_form:
        fit = fit_glm(rows, family, columns=columns, ridge=0.0)
    else:
        penalty = on_slopes(1.0 / max(total_weight(rows), TINY), used)
        fit = fit_glm(rows, family, columns=columns, ridge=penalty)
    if family.n_outputs == 1:
        return fit.coef[0], fit.intercept[0]
    return fit.coef, fit.intercept


def total_weight(rows: Blocks) -> float:
    """Weight of all rows."""
    if isinstance(rows, ArrayBlocks) and rows.weight is None:
        return float(rows.n_rows)
    return float(rows.sum(_weight))


def _weight(rows: Rows) -> float:
    return float(rows.weight.sum())


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
