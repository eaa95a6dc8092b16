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
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import Inputs, Predictor
from hetrisk.modelfile.errors import ModelFileError
from hetrisk.tables.encoding import Encoding
from hetrisk.tables.errors import TableError
from hetrisk.tables.frames import as_pandas
from hetrisk.tables.time import TimeColumn, read_environment

NUMBERS, LABELS = "numbers", "labels"
NUMBERS_AT_ONCE = 1 << 24  # features and scores of the rows that are predicted in one go


@dataclass(frozen=True)
class Intervals:
    """Upper quantiles of absolute errors in environments left out.

    Attributes
    ----------
    levels : (L,) increasing, such as .5, .8, .9, .95.
    horizons : (H,) periods ahead, increasing; one NaN without time.
    quantiles : (H, L) of absolute errors.
    """

    levels: FloatArray
    horizons: FloatArray
    quantiles: FloatArray

    def half_width(self, level: float, horizon: float | None = None) -> float:
        """Half of the interval of a level, at a horizon (None: the furthest tested)."""
        most = float(self.levels[-1])
        if not 0 < level <= most:
            raise ValueError(f"level must lie above 0 and be at most {most:g}; got {level:g}.")
        reached = [] if horizon is None else np.flatnonzero(self.horizons >= horizon).tolist()
        at = self.quantiles[reached[0] if reached else -1]
        return float(np.interp(level, np.append(0.0, self.levels), np.append(0.0, at)))


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
    intervals : for `predict_interval`; None where nothing could be backtested.
    adaptation : ``sentence`` and ``figures`` of what `adapt` moved; None where it did not.
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
    intervals: Intervals | None = None
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
        time : how the column of time is read.
        summary, reference : records to keep with it.
        """
        known: dict[str, Any] = {n: getattr(model, n, None) for n in _READ}
        predictor = known["predictor_"]
        if predictor is None:
            raise ModelFileError(
                f"the model cannot be written: {type(model).__name__} is not fitted, or deploys an "
                "estimator of your own, which a model file has no place for"
            )
        encoder = known["encoder_"] if encoder is None else encoder
        columns = known["columns_"] if encoder is None else encoder.encoding_.feature_names
        if columns is None:
            names = known["feature_names_in_"]
            columns = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
        levels = known["environment_levels_"]
        return cls(
            kind=NUMBERS if known["classes_"] is None else LABELS,
            target=target,
            predictor=predictor,
            columns=tuple(str(name) for name in columns),
            encoder=None if encoder is None else encoder.encoding_,
            time_name=known["time_name_"],
            time=time,
            environment_name=known["environment_name_"],
            environment_levels=() if levels is None else tuple(str(level) for level in levels),
            classes=known["classes_"],
            intervals=_intervals(known["quantiles_"]),
            adaptation=known["adaptation_"],
            summary={} if summary is None else summary,
            reference=reference,
        )

    @property
    def n_scores(self) -> int:
        """Numbers the predictor gives for a row."""
        return 1 if self.classes is None else len(self.classes)

    def inputs(self, frame: Any) -> Inputs:
        """Return a table as the predictor takes it."""
        table = as_pandas(frame)
        if self.encoder is None:
            X = self._numbers(table)
        else:
            X, _ = self.encoder.encode(table)
        return Inputs(X, self._time(table), self._environment(table))

    def predict(self, frame: Any) -> np.ndarray:
        """(n,) predicted numbers, or labels."""
        if self.classes is None:
            return np.concatenate([scores[:, 0] for scores in self._scores(frame)])
        codes = [scores.argmax(axis=1) for scores in self._scores(frame)]
        labels: np.ndarray = self.classes[np.concatenate(codes)]
        return labels

    def predict_proba(self, frame: Any) -> FloatArray:
        """(n, K) probabilities of the classes."""
        if self.classes is None:
            raise ValueError("the model predicts numbers: there are no probabilities of classes.")
        return np.concatenate(list(self._scores(frame)))

    def predict_interval(self, frame: Any, level: float = 0.9) -> FloatArray:
        """(n, 2) lower and upper ends that hold the target in a share ``level`` of environments."""
        if self.classes is not None or self.intervals is None:
            why = "was not backtested" if self.classes is None else "predicts labels"
            raise ValueError(f"the model {why}: it has no intervals.")
        middle, half = self.predict(frame), self.intervals.half_width(level)
        return np.column_stack([middle - half, middle + half])

    def _scores(self, frame: Any) -> Iterator[FloatArray]:
        """Predict some rows at a time: a wide model would take more memory than its table."""
        table = as_pandas(frame)
        step = max(1, NUMBERS_AT_ONCE // (len(self.columns) + self.n_scores))
        for start in range(0, max(len(table), 1), step):
            yield self.predictor.predict(self.inputs(table.iloc[start : start + step]))

    def _numbers(self, table: pd.DataFrame) -> FloatArray:
        absent = [name for name in self.columns if name not in table.columns]
        if absent:
            raise TableError(f"the table lacks {listed(absent)} the model was fitted on")
        return table[list(self.columns)].to_numpy(dtype=float, na_value=np.nan)

    def _time(self, table: pd.DataFrame) -> FloatArray | None:
        if self.time is None or not self.predictor.needs_time:
            return None
        if self.time_name not in table.columns:
            raise TableError(f"the table lacks {quoted(self.time_name)}, the column of time")
        return np.asarray(self.time.read(table[self.time_name]), dtype=float)

    def _environment(self, table: pd.DataFrame) -> IntArray | None:
        """Codes into the levels; -1 for an environment not seen, or none."""
        if self.environment_name not in table.columns:
            return None  # all of them are new
        column = table[self.environment_name]
        codes, names = read_environment(column, str(self.environment_name))
        known = {level: code for code, level in enumerate(self.environment_levels)}
        return np.asarray([*(known.get(name, -1) for name in names), -1])[codes]


_READ = (
    *("predictor_", "columns_", "feature_names_in_", "encoder_", "time_name_", "classes_"),
    *("environment_name_", "environment_levels_", "quantiles_", "adaptation_"),
)


def _intervals(quantiles: Any) -> Intervals | None:
    if quantiles is None:
        return None
    table = np.asarray(quantiles, dtype=float)
    levels = np.array([0.5, 0.8, 0.9, 0.95])
    return Intervals(levels, table[:, 0], table[:, 1:])
