"""The whole decision of a backtest, in numbered steps: which model, and how wrong it will be.

1. Cuts: which cells are learned from and which are judged (`cuts.plan`).
2. Every candidate is fitted to each training and judged in the environments left out
   (`run.backtest`).
3. The average of a few candidates with least X_t at the reach asked for is sought, and chosen if
   it beats plain by two standard errors over the environments left out (`choice.choose`).
   Where there is no time it must pass the same gate in random cross-validation as well: leaving
   one environment of few out takes so much from the training that caution alone beats plain there,
   and would not in deployment, which learns from all of them.
4. What was chosen is fitted to all rows (`run.refit`).
5. Its errors in the environments left out foretell those to come, and the intervals (`foretell`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.backtest.adaptation import Drift, drift_of
from hetrisk.core.backtest.candidates import CONSTANT, PLAIN, Candidate
from hetrisk.core.backtest.choice import Choice, choose, compare
from hetrisk.core.backtest.cuts import Periods, Split
from hetrisk.core.backtest.foretell import (
    LEVELS,
    EnvironmentErrors,
    expected,
    interval_table,
)
from hetrisk.core.backtest.losses import extrapolated, row_losses
from hetrisk.core.backtest.prepare import among_rows
from hetrisk.core.backtest.run import Problem, Run, Tests, backtest, refit
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.predictor import Predictor
from hetrisk.core.records import Records
from hetrisk.core.result import Forecast, Horizon, Ranked, ReachLine, Tested

REACHES = np.round(np.arange(0.0, 4.01, 0.25), 2)  # of the curve
MOST_LOG = 700.0  # of a ratio that is stated: its exponential is still a number
FARTHEST_HORIZON = 2.0  # times the periods learned from: what is foretold beyond is a guess


@dataclass(frozen=True)
class Outcome:
    """What a backtest decides: see the attributes of `hetrisk.BacktestRegressor`."""

    name: str
    weight: dict[str, float]
    predictor: Predictor
    ranking: Records[Ranked]
    table: Records[Tested]
    forecast: Forecast
    curve: Records[ReachLine]
    break_even: float
    quantiles: FloatArray | None
    drift: Drift


def decide(
    problem: Problem,
    splits: Sequence[Split],
    candidates: Sequence[Candidate],
    reach: float,
    run: Run,
    periods: Periods | None,
    only_plain: bool = False,
) -> Outcome:
    """Take the decision: see the module.

    Parameters
    ----------
    problem : the rows. ``splits`` : from `cuts.plan`, at least one.
    candidates : plain and the constant among them.
    run : applies a function to independent tasks.
    periods : None without time.
    only_plain : whether plain is deployed whatever the losses say.
    """
    tests = backtest(problem, splits, candidates, run)
    fitted = [c for c in candidates if c.name in tests.names]
    plain, constant = tests.names.index(PLAIN), tests.names.index(CONSTANT)
    noise = partial(tests.noise, problem.rows, plain)
    choice = choose(tests.losses, plain, reach, noise)
    if only_plain:
        why = "among rows like these, not in environments left out"
        choice = replace(choice, weight=np.eye(len(fitted))[plain], refused=why)
    elif periods is None and choice.weight[plain] < 1.0:
        choice = _among_rows(problem, fitted, choice, plain, run)
    name, numbers = name_of(tests.names, choice.weight), problem.n_outputs == 1
    errors = {
        model: _errors(problem, tests, weight, splits)
        for model, weight in _models(tests, choice.weight).items()
    }
    horizons = _horizons(errors[name], periods)
    three = np.array([choice.weight, *np.eye(len(fitted))[[plain, constant]]])
    curve, break_even = _reach_curve(tests.losses.of(three), name == PLAIN, numbers)
    compared = {"chosen": errors[name], "plain": errors[PLAIN], "constant": errors[CONSTANT]}
    return Outcome(
        name=name,
        weight={n: float(w) for n, w in zip(tests.names, choice.weight, strict=True) if w > 0},
        predictor=refit(problem, fitted, choice.weight),
        ranking=_ranking(tests, choice, plain, reach, noise, numbers),
        table=_table(tests, errors, splits),
        forecast=_forecast(compared, () if periods is None else horizons, numbers, curve),
        curve=curve,
        break_even=break_even,
        quantiles=interval_table(errors[name], horizons) if numbers else None,
        drift=drift_of(problem, tests, choice.weight),
    )


def _among_rows(
    problem: Problem, fitted: Sequence[Candidate], choice: Choice, plain: int, run: Run
) -> Choice:
    """Keep the choice if it beats plain in random cross-validation, too, by the same gate."""
    only_plain = np.eye(len(fitted))[plain]
    used = np.flatnonzero(choice.weight + only_plain > 0).tolist()
    tests = backtest(*among_rows(problem), [fitted[k] for k in used], run)
    if not tests.failed:
        weight, at = choice.weight[used], used.index(plain)
        losses = tests.losses.of(weight[None])[0]
        noise = tests.noise(problem.rows, at, weight)
        if not compare(losses, tests.losses.single(at), 0.0, noise).refused:
            return choice
    return replace(choice, weight=only_plain, refused="not in random cross-validation")


def name_of(names: Sequence[str], weight: FloatArray) -> str:
    """Return ``trees``, or ``0.7 trees + 0.3 ridge``: the largest weight first."""
    order = [int(k) for k in np.argsort(-weight, kind="stable") if weight[k] > 0]
    if len(order) == 1:
        return names[order[0]]
    return " + ".join(f"{weight[k]:.1f} {names[k]}" for k in order)


def _models(tests: Tests, average: FloatArray) -> dict[str, FloatArray]:
    """Weights of every candidate, by name, and of an average."""
    models = dict(zip(tests.names, np.eye(len(tests.names)), strict=True))
    models.setdefault(name_of(tests.names, average), average)
    return models


def _scale(loss: FloatArray, numbers: bool) -> FloatArray:
    """Losses as errors: root mean squares of numbers; log losses as they are."""
    return np.sqrt(np.maximum(loss, 0.0)) if numbers else loss


def _errors(
    problem: Problem, tests: Tests, weight: FloatArray, splits: Sequence[Split]
) -> EnvironmentErrors:
    rows, numbers = problem.rows, problem.n_outputs == 1
    learned = [float(rows.weight[split.train[rows.cell]].sum()) for split in splits]
    error, quantiles, noise = [], [], []
    for j in tests.judged:
        w = rows.weight[j.index]
        loss = row_losses(tests.mixed(j, weight), rows.y[j.index])
        mean = float(np.average(loss, weights=w))
        error.append(mean**0.5 if numbers else mean)
        # Of the log of the mean loss, to first order; a root has half of it.
        off = loss / max(mean, TINY) - 1.0
        noise.append(float(w @ off**2) / float(w.sum()) ** 2 * (0.25 if numbers else 1.0))
        quantiles.append(_quantiles(np.sqrt(loss), w) if numbers else np.zeros(0))
    return EnvironmentErrors(
        environment=np.array([j.left.environment for j in tests.judged]),
        cut=np.array([j.split for j in tests.judged]),
        horizon=np.array([np.nan_to_num(j.left.horizon, nan=1.0) for j in tests.judged]),
        error=np.array(error),
        learned=np.array([learned[j.split] for j in tests.judged]),
        quantiles=np.array(quantiles),
        noise=float(np.mean(noise)),
    )


def _quantiles(values: FloatArray, weight: FloatArray) -> FloatArray:
    """At `LEVELS`: the least value that so much of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    at = np.searchsorted(share, np.array(LEVELS) - 1e-12)
    return values[order][np.minimum(at, len(values) - 1)]


def _horizons(errors: EnvironmentErrors, periods: Periods | None) -> FloatArray:
    """(H,) periods ahead that are stated: 1, 2, ... for a few, then further apart."""
    if periods is None:
        return np.ones(1)
    last = max(float(errors.horizon.max()), FARTHEST_HORIZON * len(periods))
    return np.unique(np.round(np.geomspace(1.0, last, 12)))


def _ranking(
    tests: Tests,
    choice: Choice,
    plain: int,
    reach: float,
    noise: Callable[[FloatArray], float],
    numbers: bool,
) -> Records[Ranked]:
    """Candidates, and the average if one was sought, by X_t."""
    reference = tests.losses.single(plain)
    lines = []
    for name, weight in _models(tests, choice.best).items():
        losses = tests.losses.of(weight[None])[0]
        c = compare(losses, reference, reach, noise(weight))
        wide = 2 * c.standard_error
        band = np.array([c.log_ratio, c.log_ratio - wide, c.log_ratio + wide])
        # Where plain makes next to no error ratios have no end.
        ratio, low, high = np.exp(np.clip(band, -MOST_LOG, MOST_LOG))
        chosen = bool(np.array_equal(weight, choice.weight))
        lines.append(
            Ranked(
                candidate=name,
                mean=float(_scale(losses.mean(), numbers)),
                worst=float(_scale(losses.max(), numbers)),
                criterion=float(extrapolated(losses, reach)),
                ratio=float(ratio),
                ratio_low=float(low),
                ratio_high=float(high),
                chosen=chosen,
                note=_note(name, weight, chosen, choice),
            )
        )
    lines.sort(key=lambda line: line.criterion)
    nan = float("nan")
    for name, why in tests.failed.items():
        lines.append(Ranked(name, nan, nan, nan, nan, nan, nan, False, why))
    return Records(lines)


def _note(name: str, weight: FloatArray, chosen: bool, choice: Choice) -> str:
    if chosen and name == PLAIN:
        best = np.array_equal(weight, choice.best)
        return "least error" if best else "nothing surely beats it"
    if chosen:
        return "beats plain by two standard errors"
    if np.array_equal(weight, choice.best):
        return f"least error, but {choice.refused}"
    if weight @ choice.weight > 0:
        return "part of the average chosen"
    return ""


def _table(
    tests: Tests, errors: dict[str, EnvironmentErrors], splits: Sequence[Split]
) -> Records[Tested]:
    return Records(
        Tested(
            candidate=name,
            environment=j.left.name,
            cut=splits[j.split].cut,
            horizon=j.left.horizon,
            known=j.left.known,
            n_rows=len(j.index),
            error=float(error),
        )
        for name, of in errors.items()
        for j, error in zip(tests.judged, of.error, strict=True)
    )


def _forecast(
    errors: dict[str, EnvironmentErrors],
    horizons: Iterable[float],
    numbers: bool,
    curve: Records[ReachLine],
) -> Forecast:
    """What to expect of the three models; ``horizons`` are none without time."""
    chosen, by_horizon = errors["chosen"], []
    for h in map(float, horizons):
        at = {key: expected(e, h) for key, e in errors.items()}
        near = int((np.abs(np.log(chosen.horizon / h)) < np.log(1.5)).sum())
        label = f"{h:g} period{'' if h == 1 else 's'} ahead"
        by_horizon.append(Horizon(h, label, **at, n_environments=near))
    fails = [line.horizon for line in by_horizon if line.plain.mean > line.constant.mean]
    if not by_horizon:
        fails = [line.reach for line in curve if line.plain > line.constant]
    whole = {key: expected(e) for key, e in errors.items()}
    return Forecast(
        mean=whole["chosen"].mean,
        lower=whole["chosen"].lower,
        upper=whole["chosen"].upper,
        plain=whole["plain"],
        constant=whole["constant"],
        by_horizon=tuple(by_horizon),
        plain_fails_at=fails[0] if fails else np.inf,
        unit="RMSE" if numbers else "log loss",
        n_environments=len(np.unique(chosen.environment)),
    )


def _reach_curve(
    losses: FloatArray, only_plain: bool, numbers: bool
) -> tuple[Records[ReachLine], float]:
    """Lines of (3, E) losses of the model chosen, plain and the constant, and the break even."""
    curve = Records(
        ReachLine(reach, *map(float, _scale(extrapolated(losses, reach), numbers)))
        for reach in REACHES.tolist()
    )
    if only_plain:
        return curve, np.inf
    # X_t is linear in t: the two lines cross once.
    zero, one = extrapolated(losses, 0.0), extrapolated(losses, 1.0)
    gap, slope = zero[0] - zero[1], (one[0] - zero[0]) - (one[1] - zero[1])
    if gap < 0:
        return curve, 0.0
    return curve, float(-gap / slope) if slope < 0 else np.inf
