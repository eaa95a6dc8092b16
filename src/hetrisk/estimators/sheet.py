"""What `BacktestRegressor` is given as X: which column says when, which says where, and the rest.

A `Sheet` is what was learned of the columns in the fit; it reads further tables in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import Inputs, Predictor
from hetrisk.estimators.inputs import as_weights
from hetrisk.estimators.scales import LARGEST
from hetrisk.tables import TableEncoder
from hetrisk.tables.frames import as_pandas
from hetrisk.tables.time import TimeColumn, read_environment, read_time

MISSING = "(missing)"  # the environment of rows that name none


@dataclass
class Sheet(ABC):
    """The columns of X.

    Attributes
    ----------
    n_columns : of X; feature_names : their names, where it has them.
    columns : names of the numbers that models take; encoder : makes them of a frame, else None.
    time_name, environment_name : as the user calls them, None for none.
    time_column : how time is read; levels : the environments seen, in order.
    """

    n_columns: int = 0
    feature_names: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()
    encoder: TableEncoder | None = None
    time_name: str | None = None
    environment_name: str | None = None
    time_column: TimeColumn | None = None
    levels: tuple[str, ...] = ()

    @staticmethod
    def of(X: Any, time: Any, environment: Any) -> Sheet:
        """Return the sheet for this kind of X, before it is read."""
        if time is not None and time == environment:
            raise ValueError(f"time and environment must be two columns; both are {time!r}.")
        if isinstance(X, Blocks):
            from hetrisk.estimators.blocksheet import BlockSheet

            return BlockSheet(time, environment)
        return TableSheet(time, environment)

    def __init__(self, time: Any, environment: Any) -> None:
        self._time, self._environment = time, environment

    @abstractmethod
    def source(self, model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int]:
        """Read X; return rows whose ``aside`` holds time and environment, and their number."""

    def predicted(self, X: Blocks, predictor: Predictor) -> FloatArray:
        """(n, K) predictions for the rows of blocks, block by block."""
        raise ValueError(
            "the model was fitted to a table in memory: predict needs one, not blocks."
        )

    @abstractmethod
    def inputs(self, model: Any, X: Any, needs_time: bool) -> Inputs:
        """Read a further X."""

    def _read_time(self, values: Any, name: Any) -> FloatArray:
        self.time_column = read_time(values, str(name))
        time = self.time_column.value
        check_time(time, str(name))
        if time.min() == time.max():
            raise ValueError(
                f"time column {str(name)!r} must have several values; it is "
                f"{self.time_column.label(float(time[0]))} in every row."
            )
        return time

    def _read_levels(self, values: Any, name: Any) -> FloatArray:
        codes, levels = read_environment(values, str(name))
        codes = np.asarray(codes, dtype=np.int64)
        if (codes < 0).any():
            codes = np.where(codes < 0, len(levels), codes)
            levels = (*levels, MISSING)
        self.levels = tuple(str(v) for v in levels)
        return codes.astype(np.float64)

    def _codes(self, values: Any) -> IntArray:
        """(n,) positions among the levels of the fit, -1 for new ones."""
        codes, levels = read_environment(values, str(self.environment_name))
        place = {name: k for k, name in enumerate(self.levels)}
        known = np.array([*(place.get(str(v), -1) for v in levels), place.get(MISSING, -1)])
        return known[np.where(np.asarray(codes) < 0, len(levels), codes)]


class TableSheet(Sheet):
    """A table in memory: an array of numbers, or a frame (or words), which gets an encoder.

    Columns go by name or position, those of an array by position.
    """

    _framed: bool  # a frame, or words
    _names: tuple[str, ...]  # of all columns

    def source(self, model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int]:
        named = self._time is not None or self._environment is not None
        self._framed = _is_frame(X) or (named and _holds_words(X))
        if self._framed:
            frame = _as_frame(X)
            if _is_frame(X):
                self.feature_names = tuple(map(str, frame.columns))
        else:
            X, y = validate_data(model, X, y, dtype=np.float64, ensure_min_samples=2)
            frame = pd.DataFrame(X)
        target = model._codes(y)
        check_consistent_length(frame, target)
        self.n_columns, self._names = frame.shape[1], tuple(map(str, frame.columns))
        frame = frame.set_axis(list(self._names), axis=1)
        time = level = None
        if self._time is not None:
            self.time_name = self._name(self._time, "time")
            time = self._read_time(frame[self.time_name], self._time)
        if self._environment is not None:
            self.environment_name = self._name(self._environment, "environment")
            level = self._read_levels(frame[self.environment_name], self._environment)
        rest = frame.drop(columns=self._aside())
        if not self._framed:
            self.columns = tuple(f"x{name}" for name in rest)
        elif rest.shape[1]:
            self.encoder = TableEncoder().fit(rest)
            self.columns = tuple(str(c) for c in self.encoder.get_feature_names_out())
        weight = np.ones(len(target))
        if sample_weight is not None:
            weight = as_weights(sample_weight, rest)
        if np.count_nonzero(weight) < 2:
            raise ValueError("there must be at least 2 rows of positive weight; got 1 sample.")
        numbers = self._numbers(rest)
        largest = max(np.abs(numbers).max(initial=0.0), np.abs(target).max(initial=0.0))
        if largest > LARGEST:
            raise ValueError(
                f"X and y must hold numbers below {LARGEST:g}, whose squares can be added up; got "
                f"{largest:g}: take another unit."
            )
        nothing = np.full(len(target), np.nan)
        aside = [nothing if given is None else given for given in (time, level)]
        return ArrayBlocks(numbers, target, weight, aside=np.column_stack(aside)), len(target)

    def inputs(self, model: Any, X: Any, needs_time: bool) -> Inputs:
        if not self._framed:
            frame = pd.DataFrame(validate_data(model, X, dtype=np.float64, reset=False))
        elif _is_frame(X):
            frame = _as_frame(X)
        else:
            frame = _as_frame(check_array(X, dtype=None, ensure_all_finite=False))
            if frame.shape[1] != self.n_columns:
                raise ValueError(
                    f"X has {frame.shape[1]} features, but the model is expecting "
                    f"{self.n_columns} features as input."
                )
            frame = frame.set_axis(list(self._names), axis=1)
        frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
        time = level = None
        if self.time_name is not None and self.time_name in frame:
            assert self.time_column is not None
            time = self.time_column.read(frame[self.time_name])
            if needs_time:  # or predictions would be missing too
                check_time(time, self.time_name)
        elif needs_time:
            raise ValueError(
                f"X must have the column of time {self.time_name!r}, which the model chosen "
                f"needs; got {list(frame.columns)[:10]}."
            )
        if self.environment_name is not None and self.environment_name in frame:
            level = self._codes(frame[self.environment_name])
        return Inputs(
            self._numbers(frame.drop(columns=self._aside(), errors="ignore")), time, level
        )

    def _numbers(self, rest: pd.DataFrame) -> FloatArray:
        if not self._framed:
            return rest.to_numpy()
        if self.encoder is None:
            return np.empty((len(rest), 0))
        return np.asarray(self.encoder.transform(rest), dtype=np.float64)

    def _aside(self) -> list[str]:
        return [c for c in (self.time_name, self.environment_name) if c is not None]

    def _name(self, column: Any, what: str) -> str:
        names = self._names
        if isinstance(column, str):
            if self.feature_names is None:
                raise ValueError(
                    f"{what} must be a position where X is an array; got the name {column!r}."
                )
            if column not in names:
                raise ValueError(
                    f"{what} must be a column of X; got {column!r}, X has {list(names)[:20]}."
                )
            return column
        if not -len(names) <= column < len(names):
            raise ValueError(f"{what} must be a column of X, which has {len(names)}; got {column}.")
        return names[column]


def _as_frame(X: Any) -> pd.DataFrame:
    """A frame of pandas or polars, or an array of anything, as one of pandas."""
    if _is_frame(X):
        return as_pandas(X).reset_index(drop=True)
    return pd.DataFrame(np.asarray(X)).infer_objects()


def check_time(time: FloatArray, name: str) -> None:
    """Refuse missing times."""
    missing = np.flatnonzero(np.isnan(time))
    if len(missing):
        raise ValueError(
            f"time column {name!r} must say when for every row; it is missing in {len(missing)} "
            f"of {len(time)}, the first of them row {missing[0]}: leave these rows out, or fill "
            "their time in."
        )


def _is_frame(X: Any) -> bool:
    return type(X).__name__ == "DataFrame"  # of a library that is not known: refused by name


def _holds_words(X: Any) -> bool:
    return not issparse(X) and X is not None and np.asarray(X).dtype.kind in "OUSMm"
