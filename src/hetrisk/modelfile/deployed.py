"""A model as it is deployed: everything a prediction needs, and nothing a fit does.

`Deployed` is what a model file holds. It is made from a fitted estimator of hetrisk, and predicts
without it: a table goes through the encoder, time and environment are read beside it, and the
`hetrisk.core.predictor.Predictor` adds up plain arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from hetrisk.columns.words import listed, quoted
from hetrisk.core.backtest.foretell import half_width
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import Inputs, Predictor
from hetrisk.modelfile.errors import ModelFileError
from hetrisk.tables.encoding import Encoding
from hetrisk.tables.errors import TableError
from hetrisk.tables.frames import as_frame
from hetrisk.tables.time import ABSENT, TimeColumn, read_environment

NUMBERS, LABELS = "numbers", "labels"
NUMBERS_AT_ONCE = 1 << 24  # columns and scores of the rows that are predicted in one go
MOST_HINGES = 2_000  # that a part of a model may have: each is a number a row


@dataclass(frozen=True)
class Deployed:
    """A fitted model that predicts tables, and what is known about it.

    Attributes
    ----------
    kind : "numbers" or "labels".
    target : name of what is predicted.
    predictor : plain arrays that predict.
    columns : (d,) names of the predictor's columns, after encoding.
    encoder : from a table to these columns; None where the table holds them as numbers.
    time_name, time : the column of time and how it is read; None without.
    environment_name : the column that says where rows come from; None without.
    environment_levels : (E,) environments the predictor has levels for.
    classes : (K,) for labels.
    intervals : (H, 1 + L) horizons, and half widths at ``LEVELS`` of
        `hetrisk.core.backtest.foretell`; None for labels, and where there were too few rows.
    last_time, period : the end of what was learned from, and how long a period is; NaN without.
    adaptation : ``sentence`` and ``figures`` of what adapting changed; None where it did not.
    summary : what the page is made of; fields of ``SUMMARY`` in `hetrisk.modelfile.schema`.
    reference : what later rows are held against; fields of ``REFERENCE`` there.
    """

    kind: str
    target: str
    predictor: Predictor
    columns: tuple[str, ...]
    encoder: Encoding | None = None
    time_name: str | None = None
    time: TimeColumn | None = None
    environment_name: str | None = None
    environment_levels: tuple[str, ...] = ()
    classes: np.ndarray | None = None
    intervals: FloatArray | None = None
    last_time: float = np.nan
    period: float = np.nan
    adaptation: Mapping[str, Any] | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    reference: Mapping[str, Any] | None = None

    @classmethod
    def from_model(
        cls,
        model: Any,
        *,
        target: str = "y",
        encoder: Any = None,
        time: TimeColumn | None = None,
        summary: Mapping[str, Any] | None = None,
        reference: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the model of a fitted estimator.

        Parameters
        ----------
        model : BacktestRegressor, BacktestClassifier, StableRegressor or StableClassifier.
        target : name of what is predicted.
        encoder : the fitted `TableEncoder` that made the model's columns from a table; the
            model's own by default.
        time : how the column of time is read; as the model does by default.
        summary, reference : records to keep with it.
        """
        known: dict[str, Any] = {name: getattr(model, name, None) for name in _READ}
        if known["predictor_"] is None:
            raise ModelFileError(
                f"the model cannot be written: {type(model).__name__} is not fitted, or deploys an "
                "estimator of your own, which a model file has no place for"
            )
        encoder = known["encoder_"] if encoder is None else encoder
        names, periods, told = known["feature_names_in_"], known["periods_"], known["adaptation_"]
        columns = known["columns_"] if encoder is None else encoder.encoding_.feature_names
        if columns is None:
            columns = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
        # Columns of an array are called by position, and here as their frame calls them.
        called = {
            role: f"x{name}" if names is None and str(name).isdigit() else name
            for role, name in known.items()
            if role in ("time_name_", "environment_name_")
        }
        levels = known["environment_levels_"]
        return cls(
            kind=NUMBERS if known["classes_"] is None else LABELS,
            target=target,
            predictor=known["predictor_"],
            columns=tuple(str(name) for name in columns),
            encoder=None if encoder is None else encoder.encoding_,
            time_name=called["time_name_"],
            time=known["time_column_"] if time is None else time,
            environment_name=called["environment_name_"],
            environment_levels=() if levels is None else tuple(str(level) for level in levels),
            classes=known["classes_"],
            intervals=known["quantiles_"],
            last_time=np.nan if periods is None else float(periods.time[-1]),
            period=np.nan if periods is None else periods.step,
            adaptation=None if told is None else {"sentence": str(told), "figures": vars(told)},
            summary={} if summary is None else summary,
            reference=reference,
        )

    @property
    def n_scores(self) -> int:
        """Numbers the predictor gives for a row."""
        return 1 if self.classes is None else len(self.classes)

    def inputs(self, frame: Any) -> Inputs:
        """Return a table as the predictor takes it."""
        table = as_frame(frame)
        table = table.set_axis([str(name) for name in table.columns], axis=1)
        X = self._numbers(table) if self.encoder is None else self.encoder.encode(table)[0]
        return Inputs(X, self._time(table), self._environment(table))

    def predict(self, frame: Any) -> np.ndarray:
        """(n,) predicted numbers, or labels."""
        if self.classes is None:
            return np.concatenate([scores[:, 0] for _, scores in self._pieces(frame)])
        codes = [scores.argmax(axis=1) for _, scores in self._pieces(frame)]
        labels: np.ndarray = self.classes[np.concatenate(codes)]
        return labels

    def predict_proba(self, frame: Any) -> FloatArray:
        """(n, K) probabilities of the classes."""
        if self.classes is None:
            raise ValueError("the model predicts numbers: there are no probabilities of classes.")
        return np.concatenate([scores for _, scores in self._pieces(frame)])

    def predict_interval(self, frame: Any, level: float = 0.9) -> FloatArray:
        """(n, 2) lower and upper ends that hold the target in a share ``level`` of environments."""
        if self.intervals is None:
            why = "was not backtested" if self.classes is None else "predicts labels"
            raise ValueError(f"the model {why}: it has no intervals.")
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
        ends = []
        for rows, scores in self._pieces(frame):
            time = np.full(len(rows), np.nan) if rows.time is None else rows.time
            horizon = np.fmax((time - self.last_time) / self.period, 1.0)
            half = half_width(self.intervals, level, horizon)
            ends.append(scores + half[:, None] * [-1.0, 1.0])
        return np.concatenate(ends)

    def _pieces(self, frame: Any) -> Iterator[tuple[Inputs, FloatArray]]:
        """Predict some rows at a time: a wide model would take more memory than its table."""
        table = as_frame(frame)
        step = max(1, NUMBERS_AT_ONCE // (len(self.columns) + self.n_scores + MOST_HINGES))
        for start in range(0, max(len(table), 1), step):
            rows = self.inputs(table.iloc[start : start + step])
            yield rows, self.predictor.predict(rows)

    def _numbers(self, table: pd.DataFrame) -> FloatArray:
        absent = [name for name in self.columns if name not in table.columns]
        if absent:
            raise TableError(f"the table lacks {listed(absent)} the model was fitted on")
        return table[list(self.columns)].to_numpy(dtype=float, na_value=np.nan)

    def _time(self, table: pd.DataFrame) -> FloatArray | None:
        if self.time is None:
            return None
        if self.time_name not in table.columns:
            if not self.predictor.needs_time:
                return None
            raise TableError(f"the table lacks {quoted(self.time_name)}, the column of time")
        return np.asarray(self.time.read(table[self.time_name]), dtype=float)

    def _environment(self, table: pd.DataFrame) -> IntArray | None:
        """Codes into the levels; -1 for an environment not seen. Missing ones may be a level."""
        if self.environment_name not in table.columns:
            return None  # all of them are new
        column = table[self.environment_name]
        codes, names = read_environment(column, str(self.environment_name))
        known = {level: code for code, level in enumerate(self.environment_levels)}
        found = [known.get(name, -1) for name in (*names, ABSENT)]
        return np.asarray(found, dtype=np.int64)[codes]


_READ = (
    *("predictor_", "columns_", "feature_names_in_", "encoder_", "classes_", "quantiles_"),
    *("time_name_", "time_column_", "periods_", "environment_name_", "environment_levels_"),
    "adaptation_",
)
