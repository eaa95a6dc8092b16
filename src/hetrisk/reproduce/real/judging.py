"""One method on one table: fitted on one half of its environments and judged on the other."""

from __future__ import annotations

import contextlib
import io
import json
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hetrisk.reproduce.real import ordinary
from hetrisk.reproduce.real.designs import DESIGN, minimax, split_design
from hetrisk.reproduce.real.lot import NUMBERS, Lot
from hetrisk.reproduce.real.ordinary import Method, NotApplicableError, Predictor
from hetrisk.reproduce.real.peers import AUTOML, PEERS
from hetrisk.reproduce.real.split import WHEN, WHERE, Half, LeftOutError, Table, split
from hetrisk.reproduce.records import FAILED, OK, Record

AUTOML_SHARE = 6  # it is asked on every sixth table: its seconds are by the clock
PLAIN, BACKTEST, MINIMAX = "plain", "backtest", "minimax, knowing the tests"
LEFT_OUT = "left out"
LEVEL = 0.9  # of intervals
ADAPTED, DRAWS, MOST_ADAPTED = (5, 20, 100), 2, 3  # rows, draws an environment, environments
SPARE = 40  # rows of an environment that are left to judge an adapted model by
IDENTITY = 1e-3  # of the variance: where plain errs less, the target is a function of the columns


@dataclass(frozen=True)
class Trial:
    """One method on one table."""

    lot: Lot
    method: str

    @property
    def key(self) -> str:
        """What makes two trials the same."""
        return f"{self.lot.name}: {self.method}"


def trials(lots: Iterable[Lot]) -> list[Trial]:
    """Every method on every table where it can be asked, those of one table together."""
    found: list[Trial] = []
    for number, lot in enumerate(lots):
        asked = ON_DESIGNS if lot.package == DESIGN else METHODS
        left = set() if lot.time else TIMED
        left = left | (set() if lot.kind == NUMBERS else NUMBERS_ONLY)
        left = left | ({AUTOML} if number % AUTOML_SHARE else set())
        found += [Trial(lot, name) for name in asked if name not in left]
    return found


def judge(trial: Trial) -> Record:
    """Return the record of one method on one table; what goes wrong stands in it."""
    lot, begun = trial.lot, time.perf_counter()
    record: Record = {"key": trial.key, "table": lot.name, "method": trial.method, "kind": lot.kind}
    record["way"] = DESIGN if lot.package == DESIGN else lot.way
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of other people's solvers: what counts is the error
        table = _prepared(lot)
        if isinstance(table, LeftOutError):
            return {**record, "status": LEFT_OUT, "reason": str(table)}
        try:
            record |= {"status": OK, **_measured(table, trial.method)}
            json.dumps(record, allow_nan=False)  # what cannot be written fails here, not the run
        except NotApplicableError as error:
            return {**record, "status": "not applicable", "reason": str(error)}
        except Exception as error:
            return {**record, "status": FAILED, "reason": f"{type(error).__name__}: {error}"[:300]}
    return {**record, "spent": round(time.perf_counter() - begun, 3)}


@lru_cache(maxsize=2)
def _prepared(lot: Lot) -> Table | LeftOutError:
    """Read and part a table once for all methods."""
    try:
        table = split_design(lot) if lot.package == DESIGN else split(lot)
        losses = table.losses(ordinary.plain(table, table.train)(table.test), table.test)
    except LeftOutError as error:
        return error
    if not table.labels and losses.mean() < IDENTITY * np.var(table.test.y):
        return LeftOutError("the target is a function of the columns")
    return table


def _measured(table: Table, method: str) -> Record:
    start = time.process_time()
    predictor = FITS[method](table, table.train)
    seconds = round(time.process_time() - start, 3)
    losses = table.losses(predictor(table.test), table.test)
    if not np.isfinite(losses).all():
        raise ValueError("predictions that are not finite")
    errors = table.errors(losses)
    record: Record = {"mean": float(errors.mean()), "worst": float(errors.max())}
    record |= {"environments": len(errors), "seconds": seconds}
    return record | (_answers(table) if method == BACKTEST else {})


# Ours.


def stable(known: bool, table: Table, half: Half) -> Predictor:
    """Stable columns, the environments known or inferred."""
    from hetrisk import StableClassifier, StableRegressor

    model = StableClassifier() if table.labels else StableRegressor()
    model.fit(half.X, half.y, environments=half.environment if known else None)
    return lambda test: table.predicted(model, test.X)


@lru_cache(maxsize=1)
def backtested(table: Table, half: Half) -> Any:
    """Fit the product, told the time and the site."""
    from hetrisk import BacktestClassifier, BacktestRegressor

    model: Any = (BacktestClassifier if table.labels else BacktestRegressor)(
        time=None if half.time is None else WHEN,
        environment=None if half.site is None else WHERE,
        random_state=0,
    )
    return model.fit(half.frame, half.y)


def backtest(table: Table, half: Half) -> Predictor:
    """Return what the product predicts."""
    model = backtested(table, half)
    return lambda test: table.predicted(model, test.frame)


METHODS: dict[str, Method] = {
    PLAIN: ordinary.plain,
    "constant": ordinary.constant,
    "last period": ordinary.last_period,
    "ridge": ordinary.ridge,
    "boosted trees": ordinary.trees,
    "boosted trees with time": ordinary.timed_trees,
    "plain, recent periods": ordinary.recent,
    "random cross-validation": ordinary.random_choice,
    "grouped cross-validation": ordinary.group_choice,
    **PEERS,
    "stable columns, known": partial(stable, True),
    "stable columns, inferred": partial(stable, False),
    BACKTEST: backtest,
}
TIMED = {"last period", "boosted trees with time", "plain, recent periods"}
NUMBERS_ONLY = {
    *("anchor regression", "anchor boosting", "DRIG"),
    *("invariant prediction", "stabilised regression"),
}
FITS = {**METHODS, MINIMAX: minimax}
ON_DESIGNS = (
    *(PLAIN, "boosted trees", "anchor regression", "DRIG", "IRM", "V-REx"),
    *("stable columns, known", "stable columns, inferred", BACKTEST, MINIMAX),
)


def _answers(table: Table) -> Record:
    """Return what the product says beside: forecast, intervals, adaptation."""
    model, test = backtested(table, table.train), table.test
    forecast = model.forecast_
    foretold = {"mean": forecast.mean, "lower": forecast.lower, "upper": forecast.upper}
    record: Record = {"best": str(model.best_name_), "foretold": foretold}
    if not table.labels:
        low, high = np.asarray(model.predict_interval(test.frame, level=LEVEL)).T
        inside = ((low <= test.y) & (test.y <= high)).astype(float)
        record["covered"] = float(np.mean(table.errors(inside) ** 2))
        record["width"] = float(np.mean(high - low) / max(np.std(test.y), 1e-12))
    record["adapted"] = {str(m): _adapted(table, model, m) for m in ADAPTED}
    return record


def _adapted(table: Table, model: Any, rows: int) -> float | None:
    """Error after adapting over error before, in environments with rows to spare."""
    rng, test = np.random.default_rng(rows), table.test
    if table.labels:  # a class that was not learned cannot be adapted to
        test = test.take(np.flatnonzero(np.isin(test.y, table.classes)))
    names, counts = np.unique(test.environment, return_counts=True)
    before: list[float] = []
    after: list[float] = []
    for name in names[counts >= rows + SPARE][:MOST_ADAPTED]:
        for _ in range(DRAWS):
            drawn = rng.permutation(np.flatnonzero(test.environment == name))
            seen, rest = test.take(drawn[:rows]), test.take(drawn[rows:])
            moved = model.adapt(seen.frame, seen.y)
            for errors, fitted in ((before, model), (after, moved)):
                losses = table.losses(table.predicted(fitted, rest.frame), rest)
                errors.append(float(losses.mean()))
    if not before:
        return None
    ratio = float(np.mean(after) / np.mean(before))
    return ratio if table.labels else float(np.sqrt(ratio))
