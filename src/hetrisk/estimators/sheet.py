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
from sklearn.utils.validation import check_array, validate_data

from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import Inputs, Predictor
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
    def of(model: Any, X: Any, time: Any, environment: Any) -> Sheet:
        """Return the sheet for this kind of X, before it is read."""
        if time is not None and time == environment:
            raise ValueError(f"time and environment must be two columns; both are {time!r}.")
        kind: type[Sheet] = _ArraySheet
        if isinstance(X, Blocks):
            from hetrisk.estimators.blocksheet import BlockSheet

            kind = BlockSheet
        elif _is_frame(X):
            kind = _FrameSheet
        elif (time is not None or environment is not None) and _holds_words(X):
            return _WordSheet(time, environment)
        return kind(time, environment)

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
        missing = np.flatnonzero(np.isnan(time))
        if len(missing):
            raise ValueError(
                f"time column {str(name)!r} must say when for every row; it is missing in "
                f"{len(missing)} of {len(time)}, the first of them row {missing[0]}."
            )
        if time.min() == time.max():
            raise ValueError(
                f"time column {str(name)!r} must have several values; it is "
                f"{self.time_column.label(float(time[0]))} in every row."
            )
        return time

    def _read_later(self, values: Any, needs_time: bool) -> FloatArray:
        """(n,) times of rows to predict; none may be missing where the model needs them."""
        assert self.time_column is not None
        time = self.time_column.read(values)
        check_time(time, str(self.time_name), needs_time)
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

    def _blocks(
        self, X: FloatArray, y: FloatArray, weight: Any, time: Any, level: Any
    ) -> tuple[Any, int]:
        n = len(y)
        weight = check_weight(weight, n)
        if not (weight > 0).any():
            raise ValueError("sample_weight must have a positive entry; got all zeros.")
        if np.count_nonzero(weight) < 2:
            raise ValueError("there must be at least 2 rows of positive weight; got 1 sample.")
        largest = max(np.abs(X).max(initial=0.0), np.abs(y).max(initial=0.0))
        if largest > LARGEST:
            raise ValueError(
                f"X and y must hold numbers below {LARGEST:g}, whose squares can be added up; got "
                f"{largest:g}: take another unit."
            )
        nothing = np.full(n, np.nan)
        aside = np.column_stack(
            [nothing if time is None else time, nothing if level is None else level]
        )
        return ArrayBlocks(X, y, weight, aside=aside), n


class _ArraySheet(Sheet):
    """A numpy array of numbers; columns by position."""

    def source(self, model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int]:
        X, y = validate_data(model, X, y, dtype=np.float64, ensure_min_samples=2)
        codes = model._codes(y)
        self.n_columns = X.shape[1]
        time = level = None
        if self._time is not None:
            self.time_name = str(self._position(self._time, "time"))
            time = self._read_time(X[:, self._position(self._time, "time")], self._time)
        if self._environment is not None:
            at = self._position(self._environment, "environment")
            self.environment_name = str(at)
            level = self._read_levels(X[:, at], self._environment)
        features = self._features(X)
        self.columns = tuple(f"x{j}" for j in self._kept())
        return self._blocks(features, codes, sample_weight, time, level)

    def inputs(self, model: Any, X: Any, needs_time: bool) -> Inputs:
        X = validate_data(model, X, dtype=np.float64, reset=False)
        time = level = None
        if self.time_column is not None:
            time = self._read_later(X[:, self._position(self._time, "time")], needs_time)
        if self._environment is not None:
            level = self._codes(X[:, self._position(self._environment, "environment")])
        return Inputs(self._features(X), time, level)

    def _position(self, column: Any, what: str) -> int:
        if isinstance(column, str):
            raise ValueError(
                f"{what} must be a position where X is an array; got the name {column!r}."
            )
        if not -self.n_columns <= column < self.n_columns:
            raise ValueError(
                f"{what} must be a column of X, which has {self.n_columns}; got {column}."
            )
        return int(column) % self.n_columns

    def _kept(self) -> list[int]:
        given = [("time", self._time), ("environment", self._environment)]
        aside = {self._position(c, what) for what, c in given if c is not None}
        return [j for j in range(self.n_columns) if j not in aside]

    def _features(self, X: FloatArray) -> FloatArray:
        kept = self._kept()
        return X if len(kept) == X.shape[1] else X[:, kept]


class _FrameSheet(Sheet):
    """A pandas or polars frame; columns by name or position; an encoder of its own."""

    def source(self, model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int]:
        frame = as_pandas(X).reset_index(drop=True)
        codes = model._codes(y)
        if len(codes) != len(frame):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[len(frame), len(codes)]}"
            )
        self.n_columns = frame.shape[1]
        self.feature_names = tuple(str(c) for c in frame.columns)
        frame = frame.set_axis(list(self.feature_names), axis=1)
        time = level = None
        if self._time is not None:
            self.time_name = self._name(self._time, "time")
            time = self._read_time(frame[self.time_name], self.time_name)
        if self._environment is not None:
            self.environment_name = self._name(self._environment, "environment")
            level = self._read_levels(frame[self.environment_name], self.environment_name)
        rest = frame.drop(columns=[c for c in (self.time_name, self.environment_name) if c])
        numbers = np.empty((len(frame), 0))
        if rest.shape[1]:
            self.encoder = TableEncoder().fit(rest)
            numbers = np.asarray(self.encoder.transform(rest), dtype=np.float64)
            self.columns = tuple(str(c) for c in self.encoder.get_feature_names_out())
        return self._blocks(numbers, codes, sample_weight, time, level)

    def inputs(self, model: Any, X: Any, needs_time: bool) -> Inputs:
        frame = self._frame(X)
        time = level = None
        if self.time_name is not None and self.time_name in frame:
            time = self._read_later(frame[self.time_name], needs_time)
        elif needs_time:
            raise ValueError(
                f"X must have the column of time {self.time_name!r}, which the model chosen "
                f"needs; got {list(frame.columns)[:10]}."
            )
        if self.environment_name is not None and self.environment_name in frame:
            level = self._codes(frame[self.environment_name])
        numbers = np.empty((len(frame), 0))
        if self.encoder is not None:
            numbers = np.asarray(self.encoder.transform(frame), dtype=np.float64)
        return Inputs(numbers, time, level)

    def _frame(self, X: Any) -> pd.DataFrame:
        if _is_frame(X):
            frame = as_pandas(X).reset_index(drop=True)
            return frame.set_axis([str(c) for c in frame.columns], axis=1)
        array = check_array(X, dtype=None, ensure_all_finite=False)
        if array.shape[1] != self.n_columns:
            raise ValueError(
                f"X has {array.shape[1]} features, but the model is expecting {self.n_columns} "
                "features as input."
            )
        return pd.DataFrame(array, columns=list(self.feature_names or ()))

    def _name(self, column: Any, what: str) -> str:
        names = self.feature_names or ()
        if isinstance(column, str):
            if column not in names:
                raise ValueError(
                    f"{what} must be a column of X; got {column!r}, X has {list(names)[:20]}."
                )
            return column
        if not -len(names) <= column < len(names):
            raise ValueError(f"{what} must be a column of X, which has {len(names)}; got {column}.")
        return names[column]


class _WordSheet(_FrameSheet):
    """An array that holds words: a frame without names, its columns called by position."""

    def source(self, model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, int]:
        frame = pd.DataFrame(np.asarray(X)).infer_objects()
        found = super().source(model, frame, y, sample_weight)
        self.feature_names_of_array, self.feature_names = self.feature_names, None
        return found

    def _frame(self, X: Any) -> pd.DataFrame:
        self.feature_names = self.feature_names_of_array
        try:
            return super()._frame(pd.DataFrame(np.asarray(X)).infer_objects())
        finally:
            self.feature_names = None


def check_time(time: FloatArray, name: str, needs_time: bool) -> None:
    """Refuse missing times where the model needs them: its predictions would be missing too."""
    missing = np.flatnonzero(np.isnan(time))
    if needs_time and len(missing):
        raise ValueError(
            f"time column {name!r} must say when for every row, since the model chosen needs it; "
            f"it is missing in {len(missing)} of {len(time)}, the first of them row {missing[0]}."
        )


def check_weight(weight: Any, n: int) -> FloatArray:
    """(n,) weights that count rows; a mean below one is scaled to one."""
    if weight is None:
        return np.ones(n)
    array = np.asarray(weight, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},); got {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("sample_weight must be finite and not negative.")
    largest = array.max(initial=0.0)
    if largest <= 0:
        return array
    mean = float((array / largest).mean()) * largest
    return array if mean >= 1.0 - 1e-12 else (array / largest) / (array / largest).mean()


def _is_frame(X: Any) -> bool:
    return type(X).__name__ == "DataFrame"  # of a library that is not known: refused by name


def _holds_words(X: Any) -> bool:
    return not issparse(X) and X is not None and np.asarray(X).dtype.kind in "OUSMm"
