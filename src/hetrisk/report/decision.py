"""What to do, computed from the backtest alone, so that no sentence can contradict it.

`decide` is the one place where an answer is put into words: the terminal, the page, ``--quiet``
and ``--json`` show what it returns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hetrisk.core.result import (
    ColumnEvidence,
    Expected,
    Forecast,
    Horizon,
    Ranked,
    ReachLine,
    Tested,
)
from hetrisk.report.errors import by_environment, tested_horizons
from hetrisk.report.labels import brief, listed, number, percent, upper_first
from hetrisk.report.names import CONSTANT, PLAIN, called, constant, untested
from hetrisk.tables.errors import counted

FEW = 5  # environments left out: with fewer, the answer says on how little it rests
NOTABLE = 1.25  # times the mean error: a worst environment that is worth a sentence
CLOSE = 0.9  # of the criterion of plain: what lies below is worth a sentence
REFUSED = "least error, but "  # begins the note of what plain was held against, in vain
ALIKE = 0.005  # of an error: a difference that is not worth a sentence


class Action(Enum):
    """What to do with what was fitted."""

    USE = "use it"
    PLAIN = "use the plain model"
    CONSTANT = "predict the mean"
    NO_MODEL = "rely on no model yet"
    UNTESTED = "not tested"


@dataclass(frozen=True)
class Decision:
    """An answer in sentences.

    Attributes
    ----------
    action : what to do.
    candidate : the model that was fitted.
    headline : what to do, in one sentence.
    evidence : how the model and its rivals did where they were left out.
    expect : the error to expect.
    watch : what would change the answer, the gravest first.
    """

    action: Action
    candidate: str
    headline: str
    evidence: str
    expect: str
    watch: tuple[str, ...]


def decide(
    ranking: Sequence[Ranked],
    backtest: Sequence[Tested],
    forecast: Forecast,
    reach_curve: Sequence[ReachLine],
) -> Decision:
    """Say what to do.

    Parameters
    ----------
    ranking, backtest, forecast, reach_curve : what a fitted ``BacktestRegressor`` holds.
    """
    chosen = next(line for line in ranking if line.chosen)
    facts = _Facts(chosen, {line.candidate: line for line in ranking}, tuple(backtest), forecast)
    action = _action(facts)
    return Decision(
        action,
        chosen.candidate,
        _headline(action, facts),
        "" if action is Action.UNTESTED else _evidence(facts),
        _expect(facts),
        tuple(_watch(action, facts, reach_curve)),
    )


@dataclass(frozen=True)
class _Facts:
    """What the sentences are made of."""

    chosen: Ranked
    ranked: dict[str, Ranked]
    backtest: tuple[Tested, ...]
    forecast: Forecast

    @property
    def unit(self) -> str:
        return self.forecast.unit

    @property
    def timed(self) -> bool:
        return any(line.cut for line in self.backtest)

    @property
    def where(self) -> str:
        """Where the errors were measured."""
        return "in periods not yet seen" if self.timed else "in environments left out"

    @property
    def name(self) -> str:
        return called(self.chosen.candidate, self.unit)

    @property
    def horizons(self) -> tuple[Horizon, ...]:
        return tested_horizons(self.forecast, self.backtest)

    def rival(self, name: str) -> Ranked | None:
        line = self.ranked.get(name)
        failed = line is None or not math.isfinite(line.mean)
        return None if failed or name == self.chosen.candidate else line


def _action(f: _Facts) -> Action:
    if untested(f.forecast):
        return Action.UNTESTED
    if f.chosen.candidate == CONSTANT:
        return Action.CONSTANT
    constant_line = f.rival(CONSTANT)
    beaten = constant_line is not None and f.chosen.mean >= constant_line.mean
    if beaten or f.forecast.mean >= f.forecast.constant.mean:
        return Action.NO_MODEL
    return Action.PLAIN if f.chosen.candidate == PLAIN else Action.USE


def _headline(action: Action, f: _Facts) -> str:
    if action is Action.UNTESTED:
        return (
            f"Fitted {f.name}, not tested: there are too few environments to leave any out; the "
            "figures are for rows like these."
        )
    if action is Action.CONSTANT:
        return f"Predict {constant(f.unit)}: {f.where}, nothing else is shown to err less."
    if action is Action.NO_MODEL:
        return f"Rely on no model yet: {f.where}, {f.name} errs no less than {constant(f.unit)}."
    if action is Action.PLAIN:
        return f"Use {f.name}: nothing else is shown to err less {f.where}."
    return f"Use {f.name}."


def _evidence(f: _Facts) -> str:
    """``Predicting later periods from earlier ones, it erred 0.18 (plain 0.31, the mean 0.30).``"""
    how = (
        "Predicting later periods from earlier ones"
        if f.timed
        else "Each environment predicted from the others"
    )
    rivals = [
        f"{'plain' if name == PLAIN else constant(f.unit)} {number(line.mean)}"
        for name in (PLAIN, CONSTANT)
        if (line := f.rival(name)) is not None
    ]
    beside = f" ({', '.join(rivals)})" if rivals else ""
    return f"{how}, it erred {number(f.chosen.mean)}{beside}."


def _expect(f: _Facts) -> str:
    whole = Expected(f.forecast.mean, f.forecast.lower, f.forecast.upper)
    if untested(f.forecast):
        return (
            f"On rows like these expect {f.unit} {_range(whole)}."
            if math.isfinite(whole.mean)
            else ""
        )
    if f.forecast.by_horizon:
        first, later = f.horizons[0], f.horizons[-1]
        soon = f"Expect {f.unit} {_range(first.chosen)}"
        if later is first:
            return f"{soon} ({first.label}), 90 %."
        if later.chosen.mean > (1 + ALIKE) * first.chosen.mean:
            return f"{soon} ({first.label}) and {_range(later.chosen)} ({later.label}), 90 %."
        return f"{soon} ({first.label.removesuffix(' ahead')} to {later.label}), 90 %."
    return f"Expect {f.unit} {_range(whole)} in an environment not seen, 90 %."


def _range(e: Expected) -> str:
    if not (math.isfinite(e.lower) and math.isfinite(e.upper)) or e.lower == e.upper:
        return number(e.mean)
    return f"{number(e.lower)} to {number(e.upper)}"


def _watch(action: Action, f: _Facts, curve: Sequence[ReachLine]) -> list[str]:
    if action is Action.UNTESTED:
        return []
    said = [
        _close(f),
        _plain_fails(f),
        _chosen_fails(action, f, curve),
        _worst(f),
        _few(f),
        _failed(f),
    ]
    return [upper_first(sentence) for sentence in said if sentence]


def _close(f: _Facts) -> str:
    """What erred less on average, and why it is not used all the same: where lines bend, trees."""
    tested = [r for r in f.ranked.values() if math.isfinite(r.criterion)]
    # Plain was held against one alone: of another nobody can say that chance explains it.
    refused = [r for r in tested if r.note.startswith(REFUSED)]
    best = min(refused or tested, key=lambda r: r.mean)
    if best.mean > CLOSE * f.chosen.mean:
        return ""
    bends = "trees" in best.candidate and "trees" not in f.chosen.candidate
    why = best.note.removeprefix(REFUSED)
    if not why.startswith("not "):
        plain = f.chosen.candidate == PLAIN
        why = "not by two standard errors" if plain else "more in the worst environments"
    return (
        f"{'The relation may bend: ' if bends else ''}{called(best.candidate, f.unit)} erred "
        f"{number(best.mean)} on average, less, but {why}."
    )


def _plain_fails(f: _Facts) -> str:
    """From when on the plain model is worse than a constant, and by how much it errs more."""
    sentences = []
    if f.chosen.candidate != PLAIN and f.forecast.by_horizon:
        first = f.forecast.by_horizon[0]
        more = first.plain.mean / first.chosen.mean - 1 if first.chosen.mean > 0 else math.nan
        if math.isfinite(more) and abs(more) > ALIKE:
            word = "more" if more > 0 else "less"
            sentences.append(
                f"{upper_first(first.label)} the plain model errs {percent(abs(more))} {word}."
            )
    at = f.forecast.plain_fails_at
    when = f" from reach {number(at, 2)} on" if at > 0 else ""
    if f.horizons:
        failing = next((h.label for h in f.horizons if h.horizon >= at), "")
        at, when = (at if failing else math.inf), f" from {failing} on"
    if math.isfinite(at) and f.chosen.candidate != PLAIN:  # of itself it is said otherwise
        sentences.append(f"The plain model is worse than predicting {constant(f.unit)}{when}.")
    return " ".join(sentences)


def _chosen_fails(action: Action, f: _Facts, curve: Sequence[ReachLine]) -> str:
    if action not in (Action.USE, Action.PLAIN):
        return ""
    # No further ahead than anything was judged.
    horizon = next((h for h in f.horizons if h.chosen.mean >= h.constant.mean), None)
    if horizon is not None:
        return f"It is no better than predicting {constant(f.unit)} {horizon.label}."
    line = next((line for line in curve if line.chosen >= line.constant), None)
    if line is None or line.reach == 0:
        return ""
    where = (
        "Where environments are worse than most"
        if line.reach <= 1
        else ("If the world moves beyond what was seen")
    )
    reach = f"reach {number(line.reach, 2)}"
    return f"{where} ({reach}), it is no better than predicting {constant(f.unit)}."


def _worst(f: _Facts) -> str:
    errors = by_environment(f.backtest, f.chosen.candidate, f.unit)
    if len(errors) < 2:
        return ""
    worst = max(errors, key=lambda place: errors[place])
    if errors[worst] < NOTABLE * f.chosen.mean:
        return ""
    mine = [t for t in f.backtest if t.candidate == f.chosen.candidate and t.environment == worst]
    rows = counted(mine[0].n_rows, "row")
    return f"It erred most in {brief(worst, 40)}: {number(errors[worst])} ({rows})."


def _few(f: _Facts) -> str:
    n = f.forecast.n_environments
    if n >= FEW:
        return ""
    what = "period" if f.timed else "environment"
    return f"All of this rests on {counted(n, what)} left out."


def _failed(f: _Facts) -> str:
    failed = [line for line in f.ranked.values() if not math.isfinite(line.criterion)]
    if not failed:
        return ""
    names = listed([line.candidate for line in failed], 3)
    return f"Not fitted: {names} ({brief(failed[0].note, 120)})."


def decide_without_backtest(
    verdict: str,
    reason: str,
    evidence: Sequence[ColumnEvidence],
    forecast: Forecast,
    ranking: Sequence[Ranked],
) -> Decision:
    """Say what to do where neither time nor environments were named and stable columns sought.

    Parameters
    ----------
    verdict, reason, evidence : of a fitted ``StableRegressor`` or ``StableClassifier``.
    forecast : the error on rows like these, out of fold.
    ranking : the model fitted.
    """
    chosen = next(line for line in ranking if line.chosen)
    left = [line.column for line in evidence if not line.kept]
    name = called(chosen.candidate, forecast.unit)
    goes = "it goes" if len(left) == 1 else "they go"
    headlines = {
        "columns left out": (
            f"Use {name}, which leaves {listed([brief(n, 40) for n in left], 4)} out: the rows "
            f"hold groups in which {goes} with the target in another way."
        ),
        "differences stay": (
            f"Use {name}: the rows hold groups that differ, but leaving columns out would not help."
        ),
        "no difference found": f"Use {name}: no groups of rows were found that differ.",
    }
    untold = f"Use {name}: there are too few rows to look for groups that differ."
    whole = Expected(forecast.mean, forecast.lower, forecast.upper)
    expect = ""
    known = math.isfinite(whole.mean)
    if known:
        expect = (
            f"On rows like these it errs {number(whole.mean)} ({forecast.unit}, out of fold; "
            f"{constant(forecast.unit)} {number(forecast.constant.mean)}); what it errs at another "
            "time or place is not known until one is named."
        )
    action = Action.USE if verdict == "columns left out" else Action.PLAIN
    headline = headlines.get(verdict, untold)
    if known and whole.mean >= forecast.constant.mean:
        action = Action.NO_MODEL
        headline = f"Rely on no model yet: {name} errs no less than {constant(forecast.unit)}."
    return Decision(action, chosen.candidate, headline, reason, expect, ())
