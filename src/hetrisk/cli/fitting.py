"""From a table and what is wished of it to a model that can be deployed, and its summary."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetrisk.cli.columns import advice, ordered
from hetrisk.cli.describing import Fitted, Found, Learned, described
from hetrisk.core.result import Forecast, Ranked
from hetrisk.modelfile import Deployed
from hetrisk.report.names import PLAIN
from hetrisk.tables import Table, TableEncoder, TableError, read_target
from hetrisk.tables.errors import counted, quoted
from hetrisk.tables.time import DATE, TimeColumn, read_environment, read_time
from hetrisk.tables.weights import read_weights

if TYPE_CHECKING:
    from hetrisk.cli.wishes import Wishes
    from hetrisk.core.numerics.rows import FloatArray
    from hetrisk.tables.spooled import LargeTable

UNDERSTOOD_ROWS = 20_000  # of a table that does not fit in memory: they say what columns mean
PARALLEL_ROWS = 50_000  # below, processes cost more than they save


def fit_table(
    table: Table, wishes: Wishes, command: str, verbose: int = 0, large: LargeTable | None = None
) -> Fitted:
    """Fit a table: backtest where there is time or environment, else look for stable columns.

    Parameters
    ----------
    table : the rows, or those that were drawn from a ``large`` one.
    wishes : what was asked for.
    command : to fit again.
    verbose : whether the backtest says how long it will take.
    large : the table, read in blocks by the backtest.
    """
    table = replace(
        table, frame=table.frame.set_axis([str(n) for n in table.frame.columns], axis=1)
    )
    w = wishes.of(list(table.frame.columns))
    table, time = _dated(table, w)
    target = read_target(table.frame, w.target, w.task, w.decimal)
    frame = w.features(table.frame).loc[target.known]
    if time is not None and time.kind == DATE and w.dayfirst is not None:
        days = pd.to_timedelta(time.read(frame[time.name]), unit="D")
        frame = frame.assign(**{time.name: pd.Timestamp(0) + days})  # are not to be read again
    learned = Learned(table, w, target, frame, time, len(frame), command)
    if not w.backtest:
        return described(learned, _stable(learned))
    if large is None:
        return described(learned, _backtested(learned, verbose))
    from hetrisk.tables.parquet import parquet_parts

    learned = replace(learned, n_rows=sum(part.n_rows for part in parquet_parts(large.path)))
    return described(learned, _in_blocks(learned, large))


def understood(large: LargeTable) -> Table:
    """Return the rows that say what the columns of a large table mean."""
    from hetrisk.tables.large import drawn

    table = drawn(large, UNDERSTOOD_ROWS)
    seen = f"read in blocks; columns understood from {counted(len(table.frame), 'row')}"
    return replace(table, notes=(seen, *table.notes[1:]))


def _dated(table: Table, w: Wishes) -> tuple[Table, TimeColumn | None]:
    """Leave out rows that do not say when they were; return how the others say it."""
    if w.time is None:
        return table, None
    try:
        time = read_time(table.frame[w.time], w.time, w.dayfirst)
    except TableError as error:
        hint = "" if str(error) != error.in_flags else "; without an order it is an --environment"
        raise TableError(f"{error.in_flags}{hint}") from error
    known = np.isfinite(time.value)
    if known.all():
        return table, time
    gone = counted(int((~known).sum()), "row")
    notes = (*table.notes, f"{gone} left out: {quoted(w.time)} does not say when")
    return replace(table, frame=table.frame[known], notes=notes), time


def _weight(learned: Learned) -> FloatArray | None:
    name = learned.wishes.weight
    if name is None:
        return None
    return read_weights(learned.table.frame.loc[learned.target.known], name)


def _model(learned: Learned, jobs: int | None = None, verbose: int = 0) -> Any:
    from hetrisk import BacktestClassifier, BacktestRegressor

    w = learned.wishes
    kind = BacktestClassifier if learned.target.task == "classification" else BacktestRegressor
    candidates: Any = list(w.candidate) or "auto"
    return kind(candidates, w.time, w.environment, w.reach, n_jobs=jobs, verbose=verbose)


def _backtested(learned: Learned, verbose: int) -> Found:
    """Choose by backtest."""
    jobs = -1 if len(learned.frame) > PARALLEL_ROWS else None
    model, weight = _model(learned, jobs, verbose), _weight(learned)
    with _said() as said:
        model.fit(learned.frame, learned.target.values, sample_weight=weight)
    return _answer(learned, model, model.encoder_, said)


def _in_blocks(learned: Learned, large: LargeTable) -> Found:
    """Choose by backtest over all rows, as the encoder reads them."""
    from hetrisk.estimators.large import table_blocks

    w, time = learned.wishes, learned.time
    roles = [name for name in (w.time, w.environment) if name is not None]
    encoder = TableEncoder().fit(learned.frame.drop(columns=roles))
    aside: dict[str, Any] = {} if time is None else {time.name: time.read}
    if w.environment is not None:
        aside[w.environment] = _names
    blocks = table_blocks(
        large.path, encoder.encoding_, learned.target, aside=aside, weight=w.weight, time=time
    )
    model = _model(learned)
    with _said() as said:
        model.fit(blocks)
    return _answer(learned, model, encoder, said)


def _names(column: pd.Series) -> np.ndarray:
    codes, levels = read_environment(column, str(column.name))
    return np.array([*levels, None], dtype=object)[codes]


def _answer(learned: Learned, model: Any, encoder: Any, said: list[str]) -> Found:
    w = learned.wishes
    if w.time is None and w.environment is not None:
        said += ordered(learned.table.frame, w.environment)
    elif w.environment is not None:
        said.append(
            f"Judged where {w.environment} is new, too. Where all that come are known, name "
            f"--time alone: {w.environment} is then a column, and may tell much."
        )
    record = {
        "ranking": tuple(model.ranking_),
        "backtest": tuple(model.backtest_),
        "forecast": model.forecast_,
        "reach_curve": tuple(model.reach_curve_),
        "break_even": float(model.break_even_),
        "advice": tuple(said),
    }
    deployed = Deployed.from_model(model, target=w.target, encoder=encoder, time=learned.time)
    return Found(deployed, encoder, record, model.periods_, model._drift)


def _stable(learned: Learned) -> Found:
    """Look for stable columns: neither time nor environments were named."""
    from hetrisk import BacktestClassifier, BacktestRegressor, StableClassifier, StableRegressor

    w, y, weight = learned.wishes, learned.target.values, _weight(learned)
    labels = learned.target.task == "classification"
    encoder = TableEncoder().fit(learned.frame)
    groups = [str(group) for group in encoder.feature_groups_]
    Z = pd.DataFrame(encoder.transform(learned.frame), columns=encoder.get_feature_names_out())
    kind = StableClassifier if labels else StableRegressor
    model = kind(reach=w.reach, feature_groups=groups)
    plain = (BacktestClassifier if labels else BacktestRegressor)([PLAIN])
    with _said():
        model.fit(Z, y, sample_weight=weight)
        # The error on rows like these, by cross-validation: there is nothing to leave out.
        plain.fit(Z.to_numpy()[:, np.asarray(model.support_)], y, sample_weight=weight)
    forecast: Forecast = plain.forecast_
    name, nan = PLAIN if bool(np.all(model.support_)) else "stable", float("nan")
    record = {
        "ranking": (Ranked(name, forecast.mean, nan, nan, nan, nan, nan, True, ""),),
        "backtest": (),
        "forecast": forecast,
        "reach_curve": (),
        "break_even": nan,
        "evidence": tuple(model.evidence_),
        "advice": tuple(advice(learned.table.frame, w.target)),
        "verdict": model.verdict_,
        "verdict_reason": model.verdict_reason_,
    }
    return Found(Deployed.from_model(model, target=w.target, encoder=encoder), encoder, record)


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
