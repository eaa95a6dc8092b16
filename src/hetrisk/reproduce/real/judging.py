"""One method on one table: fitted on one half of its environments and judged on the other."""

from __future__ import annotations

import contextlib
import io
import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hetrisk.reproduce.real.designs import DESIGN, minimax, split_design
from hetrisk.reproduce.real.lot import NUMBERS, Lot
from hetrisk.reproduce.real.ordinary import NotApplicableError, Ordinary, Predictor
from hetrisk.reproduce.real.peers import AUTOML, PEERS
from hetrisk.reproduce.real.split import WHEN, WHERE, Half, split
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
        ordinary = _prepared(lot)
        if isinstance(ordinary, str):
            return {**record, "status": LEFT_OUT, "reason": ordinary}
        train = ordinary.split.train
        record |= {"rows": len(train.y), "columns": train.X.shape[1]}
        record |= _tried(partial(_measured, ordinary, trial.method))
    return {**record, "spent": round(time.perf_counter() - begun, 3)}


@lru_cache(maxsize=2)
def _prepared(lot: Lot) -> Ordinary | str:
    """Read and part a table once for all methods; a sentence where it cannot be used."""
    parted = split_design(lot) if lot.package == DESIGN else split(lot)
    if isinstance(parted, str):
        return parted
    ordinary, test = Ordinary(parted), parted.test
    try:
        losses = parted.losses(ordinary.plain(parted.train)(test), test)
    except ValueError as error:
        return f"plain cannot be fitted: {error}"
    if not parted.labels and losses.mean() < IDENTITY * np.var(test.y):
        return "the target is a function of the columns"
    return ordinary


def _measured(ordinary: Ordinary, method: str) -> Record:
    train, test = ordinary.split.train, ordinary.split.test
    start = time.process_time()
    predictor = FITS[method](ordinary, train)
    seconds = round(time.process_time() - start, 3)
    losses = ordinary.split.losses(predictor(test), test)
    if not np.isfinite(losses).all():
        raise ValueError("predictions that are not finite")
    errors = ordinary.split.errors(losses)
    record: Record = {"mean": float(errors.mean()), "worst": float(errors.max())}
    record |= {"environments": len(errors), "seconds": seconds}
    if method == BACKTEST:
        record |= _answers(ordinary, ordinary.backtested)
    json.dumps(record, allow_nan=False)  # what cannot be written fails here, not the run
    return record


def _tried(task: Callable[[], Record]) -> Record:
    """Run a task; what goes wrong becomes the record."""
    try:
        return {"status": OK, **task()}
    except NotApplicableError as error:
        return {"status": "not applicable", "reason": str(error)}
    except Exception as error:
        return {"status": FAILED, "reason": f"{type(error).__name__}: {error}"[:300]}


# Ours.


def stable(known: bool, ordinary: Ordinary, half: Half) -> Predictor:
    """Stable columns, the environments known or inferred."""
    from hetrisk import StableClassifier, StableRegressor

    model = StableClassifier() if ordinary.split.labels else StableRegressor()
    model.fit(half.X, half.y, environments=half.environment if known else None)
    return lambda test: ordinary.predicted(model, test.X)


def backtest(ordinary: Ordinary, half: Half) -> Predictor:
    """Return the product, told the time and the site."""
    from hetrisk import BacktestClassifier, BacktestRegressor

    model: Any = (BacktestClassifier if ordinary.split.labels else BacktestRegressor)(
        time=None if half.time is None else WHEN,
        environment=None if half.site is None else WHERE,
        random_state=0,
    )
    ordinary.backtested = model.fit(half.frame, half.y)
    return lambda test: ordinary.predicted(model, test.frame)


METHODS: dict[str, Callable[[Ordinary, Half], Predictor]] = {
    PLAIN: Ordinary.plain,
    "constant": Ordinary.constant,
    "last period": Ordinary.last_period,
    "ridge": Ordinary.ridge,
    "boosted trees": Ordinary.trees,
    "boosted trees with time": Ordinary.timed_trees,
    "plain, recent periods": Ordinary.recent,
    "random cross-validation": Ordinary.random_choice,
    "grouped cross-validation": Ordinary.group_choice,
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


def _answers(ordinary: Ordinary, model: Any) -> Record:
    """Return what the product says beside: forecast, intervals, adaptation."""
    test, forecast = ordinary.split.test, model.forecast_
    foretold = {"mean": forecast.mean, "lower": forecast.lower, "upper": forecast.upper}
    record: Record = {"best": str(model.best_name_), "foretold": foretold}
    if not ordinary.split.labels:
        low, high = np.asarray(model.predict_interval(test.frame, level=LEVEL)).T
        inside = ((low <= test.y) & (test.y <= high)).astype(float)
        record["covered"] = float(np.mean(ordinary.split.errors(inside) ** 2))
        record["width"] = float(np.mean(high - low) / max(np.std(test.y), 1e-12))
    record["adapted"] = {str(m): _adapted(ordinary, model, m) for m in ADAPTED}
    return record


def _adapted(ordinary: Ordinary, model: Any, rows: int) -> float | None:
    """Error after adapting over error before, in environments with rows to spare."""
    rng, test = np.random.default_rng(rows), ordinary.split.test
    names, counts = np.unique(test.environment, return_counts=True)
    before: list[float] = []
    after: list[float] = []
    for name in names[counts >= rows + SPARE][:MOST_ADAPTED]:
        for _ in range(DRAWS):
            drawn = rng.permutation(np.flatnonzero(test.environment == name))
            seen, rest = test.take(drawn[:rows]), test.take(drawn[rows:])
            moved = model.adapt(seen.frame, seen.y)
            for errors, fitted in ((before, model), (after, moved)):
                predicted = ordinary.predicted(fitted, rest.frame)
                errors.append(ordinary.split.losses(predicted, rest).mean())
    if not before:
        return None
    ratio = float(np.mean(after) / np.mean(before))
    return ratio if ordinary.split.labels else float(np.sqrt(ratio))
