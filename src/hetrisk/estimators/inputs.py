"""What estimators are given, checked, as blocks of rows.

Tables in memory (arrays, pandas and polars frames of numbers) go through scikit-learn's validation,
dask collections and `hetrisk.blocks.Blocks` are taken where they live; either way the estimator
learns ``n_features_in_`` and, where columns have names, ``feature_names_in_``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from hetrisk import blocks
from hetrisk.blocks import ArrayBlocks, Blocks, is_out_of_core
from hetrisk.blocks.labels import refuse_mixed
from hetrisk.blocks.weights import as_counts
from hetrisk.core.numerics.rows import FloatArray, Rows
from hetrisk.estimators.memberships import check_length

TABLES = "encode it first: hetrisk.tables.TableEncoder does, as the first step of a pipeline"


def as_blocks(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    environments: np.ndarray | None = None,
    labels: bool = False,
    reset: bool = True,
) -> Blocks:
    """Check the rows given to ``estimator`` and return them as blocks.

    Parameters
    ----------
    estimator : learns ``n_features_in_`` and ``feature_names_in_`` when ``reset``, and is held
        to them otherwise.
    X : table (n, d): array, DataFrame, dask collection, or blocks (with ``y=None``).
    y : (n,) targets. Numbers become float; with ``labels`` they stay as they are, to be turned
        into codes by ``blocks.encoded(classes)``.
    sample_weight : (n,) non-negative weights, or None.
    environments : (n, K) responsibilities, or None.
    labels : the target holds class labels.
    reset : at fit time, when there must be two rows; False at prediction.
    """
    least = 2 if reset else 1
    if is_out_of_core(X):
        source = _scaled(blocks.as_blocks(X, y, sample_weight, environments))
        if environments is not None:
            check_length("environments", environments, source.n_rows)
        if reset and not source.has_target:
            raise ValueError("X must carry a target to be fitted; these blocks have none.")
        _learn_columns(estimator, source, reset)
        if source.n_rows < least:
            raise ValueError(
                f"Found {source.n_rows} rows in X while a minimum of {least} is required by "
                f"{type(estimator).__name__}."
            )
        return source
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    X = encoded(X)
    # Single precision stays as it is: blocks are converted one by one, the table never.
    dtypes = [np.float64, np.float32]
    X = validate_data(estimator, X, reset=reset, dtype=dtypes, ensure_min_samples=least)
    y = as_labels(y) if labels else as_numbers(y)
    check_consistent_length(X, y)
    if environments is not None:
        check_length("environments", environments, len(X))
    weight = None
    if sample_weight is not None:
        weight = as_weights(sample_weight, X)
    return ArrayBlocks(X, y, weight, environments)


def as_weights(given: Any, X: Any) -> FloatArray:
    """(n,) weights of rows in memory, checked, as counts."""
    weight: FloatArray = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
    return as_counts(weight)


def _scaled(source: Blocks) -> Blocks:
    """Rows whose weights count rows; blocks out of core have seen to that themselves."""
    if not isinstance(source, ArrayBlocks) or source.weight is None:
        return source
    weight = as_weights(source.weight, source.X)
    if weight is source.weight:
        return source
    other = copy(source)
    other.weight = weight
    return other


def by_features(
    estimator: BaseEstimator, X: Any, function: Callable[[FloatArray], np.ndarray]
) -> np.ndarray:
    """Return ``function(features)``, one entry a row; block by block for rows out of core.

    ``function`` must be picklable, to travel to the workers of a cluster.
    """
    check_is_fitted(estimator)
    if not is_out_of_core(X):
        X = completed(estimator, encoded(X))
        return function(validate_data(estimator, X, reset=False, dtype=np.float64))
    source = blocks.as_blocks(X).without_target()
    _learn_columns(estimator, source, reset=False)
    return source.collect(partial(_of_features, function=function))


def _of_features(rows: Rows, function: Callable[[FloatArray], np.ndarray]) -> np.ndarray:
    return function(rows.X)


def as_numbers(y: Any) -> FloatArray:
    """(n,) a target of finite numbers."""
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "OUS":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y must hold numbers; got values such as {str(y[0])!r}. For labels there are "
                "classifiers."
            ) from error
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    numbers: FloatArray = np.asarray(y, dtype=np.float64)
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"Input y contains NaN or infinity: row {row} holds {numbers[row]}.")
    return numbers


def as_labels(y: Any) -> np.ndarray:
    """(n,) a target of labels of one kind, none missing."""
    labels: np.ndarray = np.asarray(column_or_1d(y, warn=True))
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing) or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        raise ValueError(
            f"Input y contains NaN, None or infinity in place of labels ({len(missing)} missing)."
        )
    labels = _of_one_type(labels)
    check_classification_targets(labels)
    return labels


def check_classes(classes: np.ndarray) -> np.ndarray:
    """Return the classes of a target, at least two."""
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes; got one class, {classes.tolist()}.")
    return classes


def _of_one_type(labels: np.ndarray) -> np.ndarray:
    """Labels held as objects, as an array of the type they are; others as they are."""
    if labels.dtype != object or not len(labels):
        return labels
    refuse_mixed("y", labels)
    if isinstance(labels[0], str):
        return labels
    plain: np.ndarray = pd.Series(labels).infer_objects().to_numpy()
    if plain.dtype == object:
        raise ValueError(
            f"y must hold labels, plain numbers or text; got values such as {labels[0]!r}."
        )
    return plain


def _learn_columns(estimator: BaseEstimator, source: Blocks, reset: bool) -> None:
    columns: Any = np.empty((0, source.n_features))
    if source.feature_names is not None:
        columns = pd.DataFrame(columns=list(source.feature_names))
    _check_n_features(estimator, columns, reset=reset)
    if reset or source.feature_names is not None:
        _check_feature_names(estimator, columns, reset=reset)


def encoded(X: Any) -> Any:
    """Return the rows as they are; refuse a column that is no number or has gaps, by its name."""
    if isinstance(X, pd.DataFrame):
        for name, values in X.items():
            if not _holds_numbers(values):
                what = str(values.dtype)
            elif values.isna().any():
                what = "NaN"
            else:
                continue
            raise ValueError(f"X must hold numbers; column {str(name)!r} holds {what}: {TABLES}.")
    return X


def _holds_numbers(values: Any) -> bool:
    """Whether a column is of numbers, or of objects that are."""
    if not pd.api.types.is_object_dtype(values.dtype):
        return bool(pd.api.types.is_numeric_dtype(values.dtype))
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def completed(estimator: Any, X: Any) -> Any:
    """Return a frame of numbers with the columns that the model left out, where it lacks them.

    A prediction does not look at them; any number will do.
    """
    names, support = (vars(estimator).get(of) for of in ("feature_names_in_", "support_"))
    if names is None or support is None or not isinstance(X, pd.DataFrame):
        return X
    absent = {name for name in names if name not in X.columns}
    if not absent or not absent <= set(names[~np.asarray(support)]):
        return X
    return X.assign(**dict.fromkeys(absent, 0.0))[list(names)]
