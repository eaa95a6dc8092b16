"""Rows in blocks (memory, Parquet, dask) as X: time and environment are columns held aside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.rows import FloatArray, Rows
from hetrisk.core.predictor import Inputs, Predictor
from hetrisk.core.result import SideColumn
from hetrisk.estimators.sheet import MISSING, Sheet, check_time
from hetrisk.tables.time import DATE, NUMBER, TimeColumn

MOST_LEVELS = 10_000  # environments that are told apart


class BlockSheet(Sheet):
    """Blocks whose features are numbers: see `Sheet`."""

    def source(self, model: Any, X: Blocks, y: Any, sample_weight: Any) -> tuple[Any, int]:
        if y is not None or sample_weight is not None:
            raise ValueError(
                "blocks hold the target and the weights: y and sample_weight are None."
            )
        if not X.has_target:
            raise ValueError("the blocks hold no target: name it where they are made.")
        self.n_columns = X.n_features
        self.feature_names = X.feature_names
        self.columns = X.feature_names or tuple(f"x{j}" for j in range(X.n_features))
        if self._time is not None:
            column = self._side(X, self._time, "time")
            if column.kind == "category":
                raise ValueError(
                    f"time column {column.name!r} must hold dates or numbers; it holds words "
                    f"such as {column.levels[:3]}."
                )
            self.time_name = column.name
            kind = DATE if column.kind == "date" else NUMBER
            self.time_column = X.time_rule or TimeColumn(np.zeros(0), column.name, kind)
        view = self._view(X)
        if self._time is not None:
            missing = X.sum(_Missing(view.time))
            if missing:
                raise ValueError(
                    f"time column {self.time_name!r} must say when for every row; it is missing in "
                    f"{int(missing)} of {X.n_rows}."
                )
        if self._environment is not None:
            self._learn_levels(X, view)
            view = self._view(X)
        return model._encoded(X).viewed(view), X.n_rows

    def inputs(self, model: Any, X: Any, needs_time: bool) -> Inputs:
        """Rows in memory: an array of the features, without time or environment."""
        if needs_time:
            raise ValueError(
                f"the model chosen needs the column of time {self.time_name!r}: pass blocks that "
                "hold it aside."
            )
        array = np.asarray(X, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.n_columns:
            raise ValueError(
                f"X must have the {self.n_columns} features of the fit; got shape {array.shape}."
            )
        return Inputs(array)

    def predicted(self, X: Blocks, predictor: Predictor) -> FloatArray:
        if X.n_features != self.n_columns:
            raise ValueError(
                f"X has {X.n_features} features, but the model is expecting {self.n_columns}."
            )
        return X.collect(_Predict(self._view(X), predictor, str(self.time_name)))

    def _side(self, X: Blocks, name: Any, what: str) -> SideColumn:
        columns = X.side_columns
        for column in columns:
            if column.name == name or column.position == name:
                return column
        raise ValueError(
            f"{what} must be a column that the blocks hold aside, {[c.name for c in columns]}; "
            f"got {name!r}."
        )

    def _view(self, X: Blocks) -> _View:
        """Where time and environment stand in these blocks, and what their codes mean here."""
        time, level, codes = -1, -1, np.zeros(0)
        if self._time is not None and self.time_name in [c.name for c in X.side_columns]:
            time = self._side(X, self.time_name, "time").position
        shares = False
        if self._environment is not None:
            place = {name: k for k, name in enumerate(self.levels)}
            self.environment_name = str(self._environment)
            if X.environment_name == self._environment and X.environment_labels is not None:
                names, shares = [str(v) for v in X.environment_labels], True
            else:
                side = [c for c in X.side_columns if c.name == self._environment]
                if not side and self.levels:
                    return _View(time, -1, codes, False, -1)
                column = side[0] if side else self._side(X, self._environment, "environment")
                level, names = column.position, list(column.levels)
                if column.kind != "category":
                    numbers = np.array(self._numbers)
                    missing = place.get(MISSING, -1)
                    return _View(time, level, numbers, False, len(numbers), missing)
            codes = np.array([place.get(v, -1) for v in names], dtype=np.float64)
            return _View(time, level, codes, shares, -1, place.get(MISSING, -1))
        return _View(time, level, codes, shares, -1)

    _numbers: tuple[float, ...] = ()

    def _learn_levels(self, X: Blocks, view: _View) -> None:
        """Names of the environments, sorted."""
        if view.numeric >= 0:
            found = X.sum(_Distinct(view.level)).value
            if len(found) > MOST_LEVELS:
                raise ValueError(
                    f"environment column {self._environment!r} has more than {MOST_LEVELS} values."
                )
            self._numbers = tuple(found.tolist())
            names = [str(int(v)) if v.is_integer() else str(v) for v in found.tolist()]
            missing = X.sum(_Missing(view.level)) > 0
            self.levels = (*names, MISSING) if missing else tuple(names)
            return
        if view.shares:
            labels = () if X.environment_labels is None else X.environment_labels
            self.levels = tuple(str(v) for v in labels)
            return
        column = self._side(X, self._environment, "environment")
        self.levels = column.levels + ((MISSING,) if column.missing or column.further else ())


@dataclass(frozen=True)
class _View:
    """Block to the same block with ``aside`` = (time, code of the environment)."""

    time: int
    level: int
    codes: FloatArray
    shares: bool
    numeric: int
    missing: float = -1.0

    def __call__(self, rows: Rows) -> Rows:
        aside = np.full((len(rows), 2), np.nan)
        if self.time >= 0 and rows.aside is not None:
            aside[:, 0] = rows.aside[:, self.time]
        if self.shares and rows.environments is not None:
            aside[:, 1] = self.codes[rows.environments.argmax(axis=1)]
        elif self.level >= 0 and rows.aside is not None:
            given = rows.aside[:, self.level]
            held = ~np.isnan(given)
            if self.numeric >= 0:
                at = np.minimum(np.searchsorted(self.codes, given), max(self.numeric - 1, 0))
                same = held & (self.numeric > 0) & (self.codes[at] == given)
                aside[:, 1] = np.where(same, at, np.where(held, -1.0, self.missing))
            else:
                found = np.where(held & (given >= 0), np.nan_to_num(given), 0).astype(np.int64)
                known = held & (given >= 0)
                aside[:, 1] = np.where(known, self.codes[found], self.missing)
        return replace(rows, aside=aside, environments=None)


@dataclass(frozen=True)
class _Predict:
    view: _View
    predictor: Predictor
    name: str

    def __call__(self, rows: Rows) -> FloatArray:
        aside = self.view(rows).aside
        assert aside is not None
        time = None if self.view.time < 0 else aside[:, 0]
        if time is not None:
            check_time(time, self.name, self.predictor.needs_time)
        level = np.nan_to_num(aside[:, 1], nan=-1.0).astype(np.int64)
        return self.predictor.predict(Inputs(rows.X, time, level))


@dataclass(frozen=True)
class _Missing:
    position: int

    def __call__(self, rows: Rows) -> float:
        return 0.0 if rows.aside is None else float(np.isnan(rows.aside[:, self.position]).sum())


@dataclass(frozen=True)
class _Values:
    value: FloatArray

    def __add__(self, other: _Values) -> _Values:
        if len(self.value) > MOST_LEVELS:
            return self
        return _Values(np.union1d(self.value, other.value))


@dataclass(frozen=True)
class _Distinct:
    position: int

    def __call__(self, rows: Rows) -> _Values:
        given = np.zeros(0) if rows.aside is None else rows.aside[:, self.position]
        return _Values(np.unique(given[~np.isnan(given)]))
