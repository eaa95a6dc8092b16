"""One table: every method fitted on one half of its environments and judged on the other."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.reproduce.real.designs import DESIGN, minimax, split_design
from hetrisk.reproduce.real.lot import Lot
from hetrisk.reproduce.real.ordinary import NotApplicableError, Ordinary, Predictor
from hetrisk.reproduce.real.peers import PEERS
from hetrisk.reproduce.real.split import WHEN, WHERE, Half, Split, split

Record = dict[str, Any]
SECONDS = 60  # for one method on one table
PLAIN, BACKTEST, TABLE = "plain", "backtest", "table"
ORDINARY: dict[str, Callable[[Ordinary, Half], Predictor]] = {
    "constant": Ordinary.constant,
    "last period": Ordinary.last_period,
    "ridge": Ordinary.ridge,
    "boosted trees": Ordinary.trees,
    "boosted trees with time": Ordinary.timed_trees,
    "plain, recent periods": Ordinary.recent,
    "random cross-validation": Ordinary.random_choice,
    "grouped cross-validation": Ordinary.group_choice,
}
STABLE = {"stable columns, known": True, "stable columns, inferred": False}
METHODS = (PLAIN, *ORDINARY, *PEERS, *STABLE, BACKTEST)
MINIMAX = "minimax, knowing the tests"
ON_DESIGNS = (
    PLAIN,
    "boosted trees",
    "anchor regression",
    "DRIG",
    "IRM",
    "V-REx",
    *STABLE,
    BACKTEST,
)
LEVEL = 0.9  # of intervals
ADAPTED, DRAWS, MOST_ADAPTED = (5, 20, 100), 2, 3  # rows, draws an environment, environments
SPARE = 40  # rows of an environment that are left to judge an adapted model by
IDENTITY = 1e-3  # of the variance: where plain errs less, the target is a function of the columns


def judge(lot: Lot, methods: tuple[str, ...] = METHODS) -> list[Record]:
    """Return one record a method; one record alone where the table cannot be used."""
    way = DESIGN if lot.package == DESIGN else lot.way
    load = round(os.getloadavg()[0], 1) if sys.platform != "win32" else None
    about = {"table": lot.name, "way": way, "kind": lot.kind, "load": load}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of other people's solvers: what counts is the error
        is_design = lot.package == DESIGN
        parted = split_design(lot) if is_design else split(lot)
        methods = (*ON_DESIGNS, MINIMAX) if is_design else methods
        if isinstance(parted, str):
            return [{**about, "method": TABLE, "status": "left out", "reason": parted}]
        ordinary = Ordinary(parted)
        plain = _tried(lambda: _measured(parted, lambda: ordinary.plain(parted.train)))
        if plain["status"] != "ok" or (not parted.labels and _is_identity(parted, plain)):
            reason = plain.get("reason", "the target is a function of the columns")
            return [{**about, "method": TABLE, "status": "left out", "reason": reason}]
        found = {PLAIN: plain}
        for name in methods:
            if name != PLAIN:
                found[name] = _tried(_task(name, ordinary))
    size = {"rows": len(parted.train.y), "columns": parted.train.X.shape[1]}
    return [{**about, **size, "method": name, **found[name]} for name in methods]


def _task(name: str, ordinary: Ordinary) -> Callable[[], Record]:
    parted = ordinary.split
    if name == BACKTEST:
        return lambda: backtest(parted)
    if name in STABLE:
        return lambda: _measured(parted, lambda: stable(ordinary, STABLE[name]))
    fit = {**ORDINARY, **PEERS, MINIMAX: minimax}[name]
    return lambda: _measured(parted, lambda: fit(ordinary, parted.train))


def _is_identity(parted: Split, plain: Record) -> bool:
    return bool(plain["mean"] ** 2 < IDENTITY * np.var(parted.test.y))


def _measured(parted: Split, fit: Callable[[], Predictor]) -> Record:
    start = time.process_time()
    predictor = fit()
    seconds = time.process_time() - start
    return {**_errors(parted, predictor(parted.test)), "seconds": round(seconds, 3)}


def _errors(parted: Split, predicted: FloatArray) -> Record:
    losses = parted.losses(predicted)
    if not np.isfinite(losses).all():
        raise ValueError("predictions that are not finite")
    errors = list(parted.errors(losses).values())
    return {"mean": float(np.mean(errors)), "worst": max(errors), "environments": len(errors)}


def _tried(task: Callable[[], Record]) -> Record:
    """Run a task within its time; what goes wrong becomes the record."""
    try:
        with _limited(SECONDS):
            return {"status": "ok", **task()}
    except NotApplicableError as error:
        return {"status": "not applicable", "reason": str(error)}
    except TimeoutError:
        return {"status": "failed", "reason": f"more than {SECONDS} seconds"}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]}


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Stop after so many seconds of the processor: a busy machine is nobody's fault."""
    if sys.platform == "win32":  # there nothing is stopped
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# Ours.


def stable(ordinary: Ordinary, known: bool) -> Predictor:
    """Stable columns, the environments known or inferred."""
    from hetrisk import StableClassifier, StableRegressor

    train, labels = ordinary.split.train, ordinary.split.labels
    model = StableClassifier() if labels else StableRegressor()
    model.fit(train.X, train.y, environments=train.environment if known else None)
    return lambda test: ordinary.predicted(model, test.X)


def backtest(parted: Split) -> Record:
    """Return the product: its error, intervals, forecast, adaptation."""
    from hetrisk import BacktestClassifier, BacktestRegressor

    train, test = parted.train, parted.test
    model: Any = (BacktestClassifier if parted.labels else BacktestRegressor)(
        time=None if train.time is None else WHEN,
        environment=None if train.site is None else WHERE,
        random_state=0,
    )
    start = time.process_time()
    model.fit(train.frame, train.y)
    record = {"seconds": round(time.process_time() - start, 3), "best": str(model.best_name_)}
    record |= _errors(parted, _predicted(parted, model, test))
    forecast = model.forecast_
    record["foretold"] = {"mean": forecast.mean, "lower": forecast.lower, "upper": forecast.upper}
    if not parted.labels:
        low, high = np.asarray(model.predict_interval(test.frame, level=LEVEL)).T
        inside = parted.errors(((test.y >= low) & (test.y <= high)) ** 2.0)
        record["covered"] = float(np.mean([v**2 for v in inside.values()]))
        record["width"] = float(np.mean(high - low) / max(np.std(test.y), 1e-12))
    record["adapted"] = {str(m): _adapted(parted, model, m) for m in ADAPTED}
    return record


def _predicted(parted: Split, model: Any, test: Half) -> FloatArray:
    predict = model.predict_proba if parted.labels else model.predict
    return np.asarray(predict(test.frame), dtype=float)


def _adapted(parted: Split, model: Any, rows: int) -> float | None:
    """Error after adapting over error before, in environments with rows to spare."""
    rng = np.random.default_rng(0)
    before: list[float] = []
    after: list[float] = []
    test = parted.test
    names = [
        e for e in np.unique(test.environment) if (test.environment == e).sum() >= rows + SPARE
    ]
    for name in names[:MOST_ADAPTED]:
        for _ in range(DRAWS):
            drawn = rng.permutation(np.flatnonzero(test.environment == name))
            seen, rest = test.take(drawn[:rows]), test.take(drawn[rows:])
            moved = model.adapt(seen.frame, seen.y)
            for errors, fitted in ((before, model), (after, moved)):
                errors.append(parted.losses(_predicted(parted, fitted, rest), rest).mean())
    if not names:
        return None
    ratio = float(np.mean(after) / np.mean(before))
    return ratio if parted.labels else float(np.sqrt(ratio))
