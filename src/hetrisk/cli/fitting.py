"""From a table and what is wished of it to a model that can be deployed, and its summary."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk.cli.describing import Answer, Fitted, Learned
from hetrisk.cli.wishes import Wishes, features
from hetrisk.core.result import Forecast, Ranked
from hetrisk.modelfile import Deployed
from hetrisk.report.names import PLAIN
from hetrisk.tables import TableError
from hetrisk.tables.errors import counted, quoted
from hetrisk.tables.time import DATE, TimeColumn, read_environment, read_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from hetrisk.core.numerics.rows import FloatArray
    from hetrisk.tables import Table
    from hetrisk.tables.spooled import LargeTable

UNDERSTOOD_ROWS = 20_000  # of a table that does not fit in memory: they say what columns mean
PARALLEL_ROWS = 50_000  # below, processes cost more than they save


def fit_table(table: Table, wishes: Wishes, command: str, verbose: int = 0) -> Fitted:
    """Fit a table: backtest where there is time or environment, else look for stable columns."""
    learned, weight = _learned(table, wishes, command), None
    w = learned.wishes
    if w.weight is not None:
        from hetrisk.tables.weights import read_weights

        weight = read_weights(table.frame.loc[learned.target.known], w.weight)
    if w.time is None and w.environment is None:
        return learned.described(_stable(learned, weight))
    return learned.described(_backtested(learned, weight, verbose))


def fit_large(large: LargeTable, wishes: Wishes, command: str) -> Fitted:
    """Fit a table that does not fit in memory: its columns are understood from drawn rows."""
    from hetrisk.tables import TableEncoder
    from hetrisk.tables.large import drawn
    from hetrisk.tables.parquet import parquet_parts

    table = drawn(large, UNDERSTOOD_ROWS)
    seen = f"read in blocks; columns understood from {counted(len(table.frame), 'row')}"
    table = replace(table, notes=(seen, *table.notes[1:]))
    n_rows = sum(part.n_rows for part in parquet_parts(large.path))
    learned = _learned(table, wishes, command, n_rows)
    w = learned.wishes
    if w.time is None and w.environment is None:
        return fit_table(table, wishes, command)
    roles = [name for name in (w.time, w.environment) if name is not None]
    encoder = TableEncoder().fit(learned.frame.drop(columns=roles))
    time = None if w.time is None else read_time(learned.frame[w.time], w.time, w.dayfirst)
    model = _model(learned, 0, jobs=None)
    with _said() as said:
        model.fit(_blocks(large, learned, encoder, time))
    return learned.described(_answer(learned, model, encoder, time, said))


def _learned(table: Table, wishes: Wishes, command: str, n_rows: int | None = None) -> Learned:
    from hetrisk.tables import read_target

    w = wishes.of([str(name) for name in table.frame.columns])
    if n_rows is None:  # what is read in blocks must say when in every row
        table = _dated(table, w)
    target = read_target(table.frame, w.target, w.task, w.decimal)
    frame = features(table.frame, w).loc[target.known]
    return Learned(table, w, target, frame, n_rows or int(target.known.sum()), command)


def _dated(table: Table, w: Wishes) -> Table:
    """Leave out rows that do not say when they were."""
    if w.time is None:
        return table
    names = [str(name) for name in table.frame.columns]
    column = table.frame.iloc[:, names.index(w.time)]
    try:
        known = np.isfinite(read_time(column, w.time, w.dayfirst).value)
    except TableError as error:
        hint = "" if str(error) != error.in_flags else "; without an order it is an --environment"
        raise TableError(f"{error.in_flags}{hint}") from error
    if known.all():
        return table
    gone = counted(int((~known).sum()), "row")
    notes = (*table.notes, f"{gone} left out: {quoted(w.time)} does not say when")
    return replace(table, frame=table.frame[known], notes=notes)


def _model(learned: Learned, verbose: int, jobs: int | None) -> Any:
    from hetrisk import BacktestClassifier, BacktestRegressor

    w = learned.wishes
    kind = BacktestClassifier if learned.target.task == "classification" else BacktestRegressor
    candidates: Any = list(w.candidate) or "auto"
    return kind(candidates, w.time, w.environment, w.reach, n_jobs=jobs, verbose=verbose)


def _backtested(learned: Learned, weight: FloatArray | None, verbose: int) -> Answer:
    """Choose by backtest."""
    w, frame, time = learned.wishes, learned.frame, None
    model = _model(learned, verbose, -1 if len(frame) > PARALLEL_ROWS else None)
    if w.time is not None:
        time = read_time(frame[w.time], w.time, w.dayfirst)
        if w.dayfirst is not None:  # days, so that they are not to be read again
            frame = frame.assign(**{w.time: time.value})
    with _said() as said:
        model.fit(frame, learned.target.values, sample_weight=weight)
    return _answer(learned, model, model.encoder_, time, said)


def _answer(
    learned: Learned, model: Any, encoder: Any, time: TimeColumn | None, said: list[str]
) -> Answer:
    deployed = Deployed.from_model(model, target=learned.wishes.target, encoder=encoder, time=time)
    record = {
        "ranking": tuple(model.ranking_),
        "backtest": tuple(model.backtest_),
        "forecast": model.forecast_,
        "reach_curve": tuple(model.reach_curve_),
        "break_even": float(model.break_even_),
        "verdict": "",
        "verdict_reason": "",
    }
    return Answer(deployed, encoder, record, time, drift=model._drift, said=tuple(said))


def _blocks(large: LargeTable, learned: Learned, encoder: Any, time: TimeColumn | None) -> Any:
    """All rows, as the encoder reads them, with time and environment aside."""
    from hetrisk.estimators.large import table_blocks

    w = learned.wishes
    aside: dict[str, Callable[[pd.Series], np.ndarray]] = {}
    if time is not None and w.time is not None:
        aside[w.time] = _dates(time) if time.kind == DATE else time.read
    if w.environment is not None:
        aside[w.environment] = _names
    return table_blocks(large.path, encoder.encoding_, learned.target, aside=aside, weight=w.weight)


def _dates(time: TimeColumn) -> Callable[[pd.Series], np.ndarray]:
    def read(column: pd.Series) -> np.ndarray:
        days = pd.to_timedelta(time.read(column), unit="D")
        return np.asarray(pd.Timestamp(0) + days)

    return read


def _names(column: pd.Series) -> np.ndarray:
    codes, levels = read_environment(column, str(column.name))
    return np.array([*levels, None], dtype=object)[codes]


def _stable(learned: Learned, weight: FloatArray | None) -> Answer:
    """Look for stable columns: neither time nor environments were named."""
    from hetrisk import StableClassifier, StableRegressor
    from hetrisk.tables import TableEncoder

    w, y = learned.wishes, learned.target.values
    labels = learned.target.task == "classification"
    encoder = TableEncoder().fit(learned.frame)
    groups = [str(group) for group in encoder.feature_groups_]
    Z = pd.DataFrame(encoder.transform(learned.frame), columns=encoder.get_feature_names_out())
    kept = [str(n) for n, group in zip(Z.columns, groups, strict=True) if group in w.keep]
    kind = StableClassifier if labels else StableRegressor
    model = kind(reach=w.reach, keep=kept or None, feature_groups=groups)
    with _said():
        model.fit(Z, y, sample_weight=weight)
    deployed = Deployed.from_model(model, target=w.target, encoder=encoder)
    forecast = _out_of_fold(Z.to_numpy()[:, np.asarray(model.support_)], y, weight, labels)
    record = {
        "ranking": (_only(PLAIN if bool(np.all(model.support_)) else "stable", forecast),),
        "backtest": (),
        "forecast": forecast,
        "reach_curve": (),
        "break_even": float("nan"),
        "verdict": model.verdict_,
        "verdict_reason": model.verdict_reason_,
    }
    return Answer(deployed, encoder, record, evidence=tuple(model.evidence_))


@contextmanager
def _said() -> Iterator[list[str]]:
    """Collect what a model warns of; what it finds wrong with its rows is said of the table."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield said
        except (TableError, np.linalg.LinAlgError):
            raise
        except ValueError as error:
            raise TableError(str(error)) from error
        said += [str(w.message) for w in heard if w.category.__module__.startswith("hetrisk")]


def _only(name: str, forecast: Forecast) -> Ranked:
    """The model fitted, as the one line of a ranking."""
    nan = float("nan")
    return Ranked(name, forecast.mean, nan, nan, nan, nan, nan, True, "")


def _out_of_fold(X: FloatArray, y: np.ndarray, weight: Any, labels: bool) -> Forecast:
    """Error on rows like these, by cross-validation of the plain model."""
    from hetrisk import BacktestClassifier, BacktestRegressor

    kind = BacktestClassifier if labels else BacktestRegressor
    with _said():
        forecast: Forecast = kind([PLAIN]).fit(X, y, sample_weight=weight).forecast_
    return forecast
