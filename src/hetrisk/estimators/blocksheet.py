"""Rows in blocks (memory, Parquet, dask) as X: time and environment are columns held aside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
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

    _numbers: FloatArray | None = None  # environments, where they are numbers

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
            self._learn_time(X)
        if self._environment is not None:
            self._learn_levels(X)
        return model._encoded(X).viewed(self._view(X)), X.n_rows

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
        view = self._view(X)
        return X.collect(
            partial(_predicted, view=view, predictor=predictor, name=str(self.time_name))
        )

    def _side(self, X: Blocks, name: Any, what: str) -> SideColumn:
        columns = X.side_columns
        for column in columns:
            if column.name == name or column.position == name:
                return column
        raise ValueError(
            f"{what} must be a column that the blocks hold aside, {[c.name for c in columns]}; "
            f"got {name!r}."
        )

    def _learn_time(self, X: Blocks) -> None:
        column = self._side(X, self._time, "time")
        if column.kind == "category":
            raise ValueError(
                f"time column {column.name!r} must hold dates or numbers; it holds words "
                f"such as {column.levels[:3]}."
            )
        self.time_name = column.name
        kind = DATE if column.kind == "date" else NUMBER
        self.time_column = X.time_rule or TimeColumn(np.zeros(0), column.name, kind)
        missing = X.sum(partial(_n_missing, position=column.position))
        if missing:
            raise ValueError(
                f"time column {self.time_name!r} must say when for every row; it is missing in "
                f"{missing} of {X.n_rows}."
            )

    def _learn_levels(self, X: Blocks) -> None:
        """Names of the environments, sorted."""
        self.environment_name = str(self._environment)
        column = self._side(X, self._environment, "environment")
        if column.kind == "category":
            self.levels = column.levels + ((MISSING,) if column.missing or column.further else ())
            return
        self._numbers = X.sum(partial(_distinct, position=column.position)).value
        if len(self._numbers) > MOST_LEVELS:
            raise ValueError(
                f"environment column {self._environment!r} has more than {MOST_LEVELS} values."
            )
        spelled = [str(int(v)) if v.is_integer() else str(v) for v in self._numbers.tolist()]
        missing = X.sum(partial(_n_missing, position=column.position))
        self.levels = (*spelled, MISSING) if missing else tuple(spelled)

    def _view(self, X: Blocks) -> _View:
        """Where time and environment stand in these blocks, and what is held there means."""
        sides = {column.name: column for column in X.side_columns}
        time = None if self.time_name not in sides else sides[self.time_name].position
        level: int | None = None
        names: tuple[Any, ...] = ()
        values = np.zeros(0)
        held = [c for c in X.side_columns if self._environment in (c.name, c.position)]
        if held and held[0].kind == "category":
            level, names = held[0].position, (MISSING, *held[0].levels)
            values = np.arange(-1.0, len(held[0].levels))
        elif held and self._numbers is not None:
            level, names, values = held[0].position, self.levels, self._numbers
        place = {name: float(k) for k, name in enumerate(self.levels)}
        codes = [place.get(str(name), -1.0) for name in names[: len(values)]]
        values, code = np.append(values, np.inf), np.array([*codes, -1.0])
        return _View(time, level, values, code, place.get(MISSING, -1.0))


@dataclass(frozen=True)
class _View:
    """Block to the same block with ``aside`` = (time, code of the environment).

    Attributes
    ----------
    time, level : positions of the two among what is held aside, None for none.
    values, codes : what is held there, sorted, infinity last, and the codes these mean; what is
        not among them is new, -1.
    missing : the code of what is missing.
    """

    time: int | None
    level: int | None
    values: FloatArray
    codes: FloatArray
    missing: float

    def __call__(self, rows: Rows) -> Rows:
        aside = np.full((len(rows), 2), np.nan)
        if self.time is not None and rows.aside is not None:
            aside[:, 0] = rows.aside[:, self.time]
        if self.level is not None and rows.aside is not None:
            given = rows.aside[:, self.level]
            at = np.minimum(np.searchsorted(self.values, given), len(self.values) - 1)
            code = np.where(self.values[at] == given, self.codes[at], -1.0)
            aside[:, 1] = np.where(np.isnan(given), self.missing, code)
        return replace(rows, aside=aside, environments=None)


def _predicted(rows: Rows, view: _View, predictor: Predictor, name: str) -> FloatArray:
    aside = view(rows).aside
    assert aside is not None
    time = None if view.time is None else aside[:, 0]
    if time is not None and predictor.needs_time:
        check_time(time, name)
    level = np.nan_to_num(aside[:, 1], nan=-1.0).astype(np.int64)
    return predictor.predict(Inputs(rows.X, time, level))


def _n_missing(rows: Rows, position: int) -> int:
    return 0 if rows.aside is None else int(np.isnan(rows.aside[:, position]).sum())


@dataclass(frozen=True)
class _Values:
    value: FloatArray

    def __add__(self, other: _Values) -> _Values:
        if len(self.value) > MOST_LEVELS:
            return self
        return _Values(np.union1d(self.value, other.value))


def _distinct(rows: Rows, position: int) -> _Values:
    given = np.zeros(0) if rows.aside is None else rows.aside[:, position]
    return _Values(np.unique(given[~np.isnan(given)]))
