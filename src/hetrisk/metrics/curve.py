"""The reach curve of any fitted model: how far the world can move before it breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.reach.curve import GRID, draw
from hetrisk.core.reach.residuals import residual_lines
from hetrisk.core.result import BRIER, RMSE, ReachCurve
from hetrisk.estimators.side_information import read_side

LOOKED_AT = 500  # rows on which it is seen whether a model uses a column


def reach_curve(
    model: Any, X: Any, y: Any, environments: Any, reach: Sequence[float] | None = None
) -> ReachCurve:
    """How far the world can move before a fitted model breaks: the reach curve of any model.

    The model is asked what it predicts; nothing else is known of it. In each environment its
    residuals are regressed on its prediction and the columns it uses: what that would correct
    there, beyond what it would correct over all rows, is the model's regret. For least squares
    this is the curve that `HRMRegressor` draws of it. Beside it stands plain ERM: a linear model
    on all columns. Classifiers are judged by the Brier score of their probabilities.

    Parameters
    ----------
    model : fitted classifier or regressor, or a pipeline of one.
    X : (n, d) array or DataFrame, as the model takes it; columns that are not numbers are left to
        the model.
    y : (n,) target.
    environments : (n,) labels.
    reach : reaches to draw; None for a grid from 0 to 5.

    Returns
    -------
    ReachCurve

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from hetrisk.datasets import load_task
    >>> train = load_task("selection_bias", seed=0).train
    >>> model = LinearRegression().fit(train.X, train.y)
    >>> curve = reach_curve(model, train.X, train.y, train.environments)
    >>> bool(curve.error[-1] > curve.error[0])
    True
    """
    features, used = _numbers_of(X), _numbers_of(X, model)
    observed, predicted = _outputs(model, X, y)
    side = read_side(environments, None, len(features))
    if side.labels is None or side.values is None:
        raise ValueError("environments must be labels (n,); got responsibilities.")
    at = np.asarray(GRID if reach is None else reach, dtype=np.float64)
    codes = side.values[:, 0].astype(np.int64)
    lines = residual_lines(used, features, predicted, observed, codes)
    unit = BRIER if hasattr(model, "classes_") else RMSE
    none = np.ones((len(at), features.shape[1]), dtype=bool)
    return draw(at, lines, None, none, unit)


def _numbers_of(X: Any, model: Any = None) -> FloatArray:
    """(n, d) the columns that are numbers, standardised: all, or those a model looks at."""
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    names = list(frame.select_dtypes(["number", "bool"]))
    used = names if model is None else [name for name in names if _uses(model, X, name)]
    numbers = frame[used].to_numpy(np.float64)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    centre = np.nanmean(numbers, axis=0) if numbers.size else np.empty(0)
    filled = np.where(np.isnan(numbers), centre, numbers) - centre
    spread = filled.std(axis=0)
    return np.asarray(filled[:, spread > 0] / spread[spread > 0])


def _uses(model: Any, X: Any, column: Any) -> bool:
    """Whether predictions change when the values of a column change places."""
    rows = np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT)).astype(int)
    some = X.iloc[rows].copy() if isinstance(X, pd.DataFrame) else np.array(np.asarray(X)[rows])
    predict = getattr(model, "predict_proba", model.predict)
    before = np.asarray(predict(some))
    turned = np.roll(rows, len(rows) // 2)
    if isinstance(some, pd.DataFrame):
        some[column] = X[column].iloc[turned].to_numpy()
    else:
        some[:, column] = np.asarray(X)[turned, column]
    return not np.array_equal(np.asarray(predict(some)), before)


def _outputs(model: Any, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """(n, t) what came, as numbers, and what the model expected."""
    if hasattr(model, "classes_"):
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        observed = (np.asarray(y)[:, None] == np.asarray(model.classes_)).astype(np.float64)
        if shares.shape[1] == 2:
            return observed[:, 1:], shares[:, 1:]
        # Half the squared error over all classes: the Brier score of two with one indicator.
        return observed / np.sqrt(2.0), shares / np.sqrt(2.0)
    values = np.asarray(y, dtype=np.float64)
    return values[:, None], np.asarray(model.predict(X), dtype=np.float64).reshape(-1, 1)
