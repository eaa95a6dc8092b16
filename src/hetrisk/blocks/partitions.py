"""Collections of dask, split by rows into the partitions that hold the features."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed


def check_features(X: Any) -> tuple[str, ...] | None:
    """Raise unless X is a two-dimensional dask collection of numbers; return its names."""
    if not is_dask_collection(X):
        raise TypeError(f"X must be a dask array or dataframe; got {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got {X.ndim}.")
    if isinstance(X, da.Array):
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must hold numbers; got {X.dtype}.")
        return None
    for name, dtype in X.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise ValueError(f"column {name!r} must hold numbers; it holds {dtype}.")
    return tuple(map(str, X.columns))


def partitions(collection: Any) -> list[Delayed]:
    """Return the partitions by rows: all columns of an array in one chunk."""
    if isinstance(collection, da.Array) and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    parts = collection.to_delayed()
    return parts.ravel().tolist() if isinstance(parts, np.ndarray) else list(parts)


def aligned(value: Any, lengths: list[int], name: str) -> list[Any]:
    """Split a column into the partitions of X; None stays None in each."""
    if value is None:
        return [None] * len(lengths)
    if not is_dask_collection(value):
        values = value if isinstance(value, pd.DataFrame) else np.asarray(value)
        if len(values) != sum(lengths):
            raise ValueError(
                f"{name} must have length n_samples={sum(lengths)}; got {len(values)}."
            )
        cuts = np.cumsum([0, *lengths]).tolist()
        return [delayed(values[first:end]) for first, end in pairwise(cuts)]
    if isinstance(value, da.Array) and not np.isnan(value.shape[0]):
        if value.shape[0] != sum(lengths):
            raise ValueError(
                f"{name} must have length n_samples={sum(lengths)}; got {value.shape[0]}."
            )
        value = value.rechunk({0: tuple(lengths)})
    parts = partitions(value)
    if len(parts) != len(lengths):
        raise ValueError(
            f"{name} must have the partitions of X ({len(lengths)} of them); got {len(parts)}."
        )
    return parts


def one_column(environments: Any) -> Any:
    """Labels (n,), also where they are one column, or else (n, K) responsibilities."""
    if environments is None:
        return None
    if not is_dask_collection(environments):
        environments = np.asarray(environments)
    if environments.ndim == 1 or environments.shape[1] != 1:
        return environments
    columns = getattr(environments, "columns", None)
    return environments[:, 0] if columns is None else environments[columns[0]]


def are_label_columns(environments: Any) -> bool:
    """Whether these are several columns of labels: responsibilities are floating point."""
    if not hasattr(environments, "columns") or environments.ndim != 2:
        return False
    return environments.shape[1] > 1 and any(kind.kind != "f" for kind in environments.dtypes)


def beside(aside: Any, labels: Any) -> Any:
    """Side columns and columns of labels as one frame."""
    if aside is None:
        return labels
    if is_dask_collection(aside) != is_dask_collection(labels):
        raise TypeError("aside and environments must both be dask collections, or neither.")
    if isinstance(aside, pd.DataFrame):
        return pd.concat([aside.reset_index(drop=True), labels.reset_index(drop=True)], axis=1)
    if not hasattr(aside, "columns"):
        aside = aside.to_frame()
    return aside.assign(**{name: labels[name] for name in labels.columns})
