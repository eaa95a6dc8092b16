"""The reach curve of any fitted model: how far the world can move before it breaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.core.numerics.cells import CellMoments, cell_moments
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.rows import FloatArray, Held, IntArray, Rows
from hetrisk.core.reach.curve import FARTHEST, GRID, draw
from hetrisk.core.reach.residuals import Moments, residual_lines
from hetrisk.core.result import BRIER, RMSE, NamedEnvironments, ReachCurve, SearchSettings
from hetrisk.core.sources.levels import n_folds
from hetrisk.core.sources.named import assignment
from hetrisk.core.sources.tested import test_sources
from hetrisk.core.thresholds import THRESHOLDS
from hetrisk.estimators.memberships import check_length
from hetrisk.estimators.side_information import read_side
from hetrisk.tables.frames import as_pandas, is_frame

LOOKED_AT = 500  # rows on which it is seen whether a model uses a column


def reach_curve(
    model: Any, X: Any, y: Any, environments: Any, reach: Sequence[float] | None = None
) -> ReachCurve:
    """How far the world can move before a fitted model breaks: the reach curve of any model.

    The model is asked what it predicts; nothing else is known of it. In each environment its
    residuals are regressed on its prediction and the columns it uses: what that would correct
    there, beyond what it would correct over all rows, is the model's regret. For least squares
    this is the curve that `HRMRegressor` draws of it, and environments too thin to be judged one
    by one are put together as there. Beside it stands plain ERM: a linear model on all columns.
    Classifiers are judged by the Brier score of their probabilities.

    Parameters
    ----------
    model : fitted classifier or regressor, or a pipeline of one.
    X : (n, d) array, pandas or polars DataFrame, as the model takes it; columns that are not
        numbers are left to the model.
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
    at = _reaches(reach)
    labels, codes = _labels(environments, len(X))
    outcome = _outcome(model, X, y)
    features, used = _numbers_of(X), _numbers_of(X, model)
    moments = _in_environments(features, outcome, labels, codes)
    lines = residual_lines(used, features, outcome.predicted, outcome.observed, moments)
    none = np.ones((len(at), features.shape[1]), dtype=bool)
    return draw(at, lines, None, none, outcome.unit).scaled(outcome.spread)


def _reaches(reach: Any) -> FloatArray:
    """(G,) reaches to draw."""
    at = np.asarray(GRID if reach is None else reach, dtype=np.float64)
    if at.ndim != 1 or not len(at) or not ((at >= 0.0) & (at <= FARTHEST)).all():
        raise ValueError(f"reach must be a list of numbers from 0 to {FARTHEST:g}; got {reach!r}.")
    return at


def _labels(environments: Any, n_rows: int) -> tuple[NamedEnvironments, FloatArray]:
    """The environments named, and the (n,) codes of the rows."""
    if environments is None:
        raise ValueError("environments must be labels (n,), one for each row; got None.")
    side = read_side(environments, None, n_rows)
    if side.labels is None or side.values is None:
        raise ValueError("environments must be labels (n,); got responsibilities.")
    return side.labels, side.values[:, 0]


def _in_environments(
    features: FloatArray, outcome: _Outcome, labels: NamedEnvironments, codes: FloatArray
) -> Moments:
    """What makes the moments of columns and a target in the environments a search would judge."""
    rows = Rows(features, outcome.target, np.ones(len(features)), aside=codes[:, None])
    groups, settings = np.arange(features.shape[1]), SearchSettings(environments=labels)
    (tested,) = test_sources(Held(rows), outcome.family, groups, settings, THRESHOLDS.sure)
    merged = tested.proposal.merged
    if int(merged.cells.held.sum()) < 2:  # nothing to compare: all rows are one environment
        lookup = np.zeros_like(merged.lookup)
        merged = replace(merged, lookup=lookup, names=("all",), kinds=None)
    base, folds = assignment(labels), n_folds(len(labels.names))

    def moments(columns: FloatArray, target: FloatArray) -> CellMoments:
        those = Held(replace(rows, X=columns, y=target))
        return merged.of(cell_moments(those, Gaussian(), base, folds))

    return moments


def _numbers_of(X: Any, model: Any = None) -> FloatArray:
    """(n, d) the columns that are numbers, standardised: all, or those a model looks at."""
    frame = as_pandas(X) if is_frame(X) else pd.DataFrame(np.asarray(X)).infer_objects()
    names = list(frame.select_dtypes(["number", "bool"]))
    used = names if model is None else [name for name in names if _uses(model, X, name)]
    numbers = frame[used].to_numpy(np.float64, na_value=np.nan)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    centre = np.nanmean(numbers, axis=0) if numbers.size else np.empty(0)
    filled = np.where(np.isnan(numbers), centre, numbers) - centre
    spread = filled.std(axis=0)
    return np.asarray(filled[:, spread > 0] / spread[spread > 0])


def _uses(model: Any, X: Any, column: Any) -> bool:
    """Whether predictions change when the values of a column change places."""
    rows = np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT)).astype(int)
    predict = getattr(model, "predict_proba", model.predict)
    some, turned = _some(X, rows), _turned(X, rows, column)
    return not np.array_equal(np.asarray(predict(turned)), np.asarray(predict(some)))


def _some(X: Any, rows: IntArray) -> Any:
    """Some rows of a table, which stays of the kind the model was given."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows].copy()
    return X[rows] if is_frame(X) else np.array(np.asarray(X)[rows])


def _turned(X: Any, rows: IntArray, column: Any) -> Any:
    """The same rows, the values of one column in other places."""
    some, places = _some(X, rows), np.roll(rows, len(rows) // 2)
    if isinstance(X, pd.DataFrame):
        some[column] = X[column].iloc[places].to_numpy()
    elif is_frame(X):
        return some.with_columns(X[column][places])
    else:
        some[:, column] = np.asarray(X)[places, column]
    return some


@dataclass(frozen=True)
class _Outcome:
    """What came, and what the model expected.

    Attributes
    ----------
    observed, predicted : (n, t) what squared errors are taken of, in units of ``spread``.
    target : (n,) what came, as ``family`` takes it.
    unit : of the errors.
    """

    observed: FloatArray
    predicted: FloatArray
    target: FloatArray
    family: Family
    unit: str
    spread: float


def _outcome(model: Any, X: Any, y: Any) -> _Outcome:
    """What came, checked, beside what the model expected."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one value for each row (n,); got shape {y.shape}.")
    check_length("y", y, len(X))
    return _of_labels(model, X, y) if hasattr(model, "classes_") else _of_numbers(model, X, y)


def _of_labels(model: Any, X: Any, y: np.ndarray) -> _Outcome:
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            "model must have predict_proba, since labels are judged by probabilities; got "
            f"{type(model).__name__} without it (CalibratedClassifierCV gives it one)."
        )
    classes = np.asarray(model.classes_)
    # As objects: labels of another type than the classes compare as unequal, and nothing more.
    came = y.astype(object)[:, None] == classes.astype(object)
    unknown = ~came.any(axis=1)
    if unknown.any():
        raise ValueError(
            f"y must hold classes the model was fitted to, {classes.tolist()}; got "
            f"{y[unknown].tolist()[0]!r} in {unknown.sum()} of {len(y)} rows."
        )
    observed, target = came.astype(np.float64), came.argmax(axis=1).astype(np.float64)
    shares = np.asarray(model.predict_proba(X), dtype=np.float64)
    if len(classes) == 2:
        return _Outcome(observed[:, 1:], shares[:, 1:], target, Bernoulli(), BRIER, 1.0)
    # Half the squared error over all classes: the Brier score of two with one indicator.
    root, family = np.sqrt(2.0), Multinomial(len(classes))
    return _Outcome(observed / root, shares / root, target, family, BRIER, 1.0)


def _of_numbers(model: Any, X: Any, y: np.ndarray) -> _Outcome:
    known = pd.to_numeric(pd.Series(y), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    finite = np.isfinite(known)
    if not finite.all():
        raise ValueError(
            f"y must hold finite numbers; got {y[~finite].tolist()[0]!r} in {(~finite).sum()} of "
            f"{len(y)} rows."
        )
    centre, spread = known.mean(), float(known.std()) or 1.0
    expected = np.asarray(model.predict(X), dtype=np.float64).ravel()
    observed, predicted = ((part - centre) / spread for part in (known, expected))
    return _Outcome(observed[:, None], predicted[:, None], observed, Gaussian(), RMSE, spread)
