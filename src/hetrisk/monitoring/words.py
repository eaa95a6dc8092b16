"""What a check found, in sentences."""

from __future__ import annotations

import math

from hetrisk.core.drift.strength import Estimate
from hetrisk.monitoring.findings import (
    LEAST_DISTANCE,
    LEVEL,
    ColumnCheck,
    EnvironmentCheck,
    OutcomeCheck,
    Status,
    Z,
)
from hetrisk.report.labels import fixed, listed, number, percent, precise, tick
from hetrisk.report.summary import Curve, Point

MOST_NAMES = 4


def sentence_of(
    status: Status,
    columns: tuple[ColumnCheck, ...],
    environments: tuple[EnvironmentCheck, ...],
    outcome: OutcomeCheck | None,
    left_out: tuple[str, ...],
) -> str:
    """Return what to do, and why."""
    if outcome is not None and outcome.beyond:
        return (
            f"Fit again: on these rows the {outcome.unit} is {number(outcome.error.value)}, "
            f"beyond the {number(outcome.limit)} the model was fitted to stand."
        )
    if outcome is not None and outcome.weakened and outcome.strength is not None:
        right = "lean less on what changes between environments: what that"
        if left_out:
            they = "it" if len(left_out) == 1 else "they"
            right = f"leave out {listed(left_out, MOST_NAMES)}: what {they}"
        holds = "The model holds, and"
        if outcome.risen:
            holds = f"{_risen(outcome)} It"
        return (
            f"{holds} was right to {right} said about the target is down to "
            f"{percent(outcome.strength.value)} of its strength."
        )
    blind = " Without the target nobody can say whether relations held." if outcome is None else ""
    if outcome is not None and outcome.risen:
        return _risen(outcome)
    if status is Status.MOVED:
        what = [c.name for c in columns if c.moved] or ["the mix of environments"]
        holds = "" if outcome is None else " The model errs no more than it was fitted to stand."
        return f"Look at it: {listed(what, MOST_NAMES)} moved.{holds}{blind}"
    return f"Go on: these rows look like those the model learned from.{blind}"


def _risen(outcome: OutcomeCheck) -> str:
    return (
        f"Look at it: on these rows the {outcome.unit} is {number(outcome.error.value)}, where "
        f"{number(outcome.expected)} was expected. That is within the "
        f"{number(outcome.limit)} the model was fitted to stand."
    )


def points_of(
    columns: tuple[ColumnCheck, ...],
    environments: tuple[EnvironmentCheck, ...],
    outcome: OutcomeCheck | None,
    outside: int,
    n_rows: int,
    curve: Curve | None,
) -> tuple[Point, ...]:
    """Return what was looked at, question and answer."""
    points = [Point("Which columns moved", _columns(columns))]
    if outside:
        rows = f"{outside:,} of {n_rows:,}: predictions there are guesses."
        points.append(Point("Rows outside what was learned", rows))
    if environments:
        points.append(Point("The mix of environments", _environments(environments)))
    if outcome is not None:
        points += _outcome(outcome, curve)
    return tuple(points)


def _columns(columns: tuple[ColumnCheck, ...]) -> str:
    moved = [c for c in columns if c.moved]
    rule = f"beyond chance at {tick(LEVEL)} and by {percent(LEAST_DISTANCE)} of the rows or more"
    if not moved:
        return f"None of {len(columns):,} ({rule})."
    return (
        f"{len(moved):,} of {len(columns):,} ({rule}): {listed([described(c) for c in moved], 3)}."
    )


def described(c: ColumnCheck) -> str:
    """One column's move in a clause."""
    if c.level:
        return f"{c.name} ({c.level}: {percent(c.now)}, was {percent(c.before)})"
    return f"{c.name} (mean {precise(c.now, c.sd)}, was {precise(c.before, c.sd)})"


def _environments(environments: tuple[EnvironmentCheck, ...]) -> str:
    moved = sorted((e for e in environments if e.moved), key=lambda e: -abs(e.now - e.before))
    if not moved:
        return "As it was."
    new = [e for e in environments if e.before == 0 and e.now > 0]
    if new:
        names = listed([e.label for e in new], 3)
        share = percent(sum(e.now for e in new))
        return f"It changed: {share} of the rows are from environments never seen ({names})."
    moves = [f"{e.label} {percent(e.now)} of the rows, was {percent(e.before)}" for e in moved]
    return f"It changed: {listed(moves, 3)}."


def _outcome(o: OutcomeCheck, curve: Curve | None) -> list[Point]:
    error = f"{o.unit} {within(o.error)}"
    if math.isfinite(o.expected):
        error += f"; {number(o.expected)} was expected if nothing shifted"
    if curve is not None and math.isfinite(o.limit):
        error += f", at most {number(o.limit)} at reach {tick(curve.asked)}"
    points = [Point("The error on these rows", f"{error}.")]
    if o.reach is not None:
        points.append(Point("How far the world has come", _place(o.reach)))
    if o.strength is not None:
        points.append(Point("The relation left out", _strength(o.strength, o.weakened)))
    if o.plain is not None and o.plain_worse is not None:
        points.append(
            Point("The plain model here", _plain(o.unit, o.error, o.plain, o.plain_worse))
        )
    return points


def within(e: Estimate) -> str:
    """A number and its 99 % interval."""
    if not math.isfinite(e.error):
        return number(e.value)
    low, high = max(e.value - Z * e.error, 0.0), e.value + Z * e.error
    return f"{number(e.value)} ({number(low)} to {number(high)})"


def _place(reach: Estimate) -> str:
    if not math.isfinite(reach.value):
        return "Further than the curve can say: it is flat, and the error is above it."
    if reach.value == 0:
        return "Reach 0: no error beyond what was expected if nothing shifts."
    error = f" ± {fixed(Z * reach.error)}" if math.isfinite(reach.error) else ""
    return (
        f"Reach {fixed(reach.value)}{error}, if all of the additional error comes from "
        "what differed between environments."
    )


def _strength(s: Estimate, weakened: bool) -> str:
    low, high = s.value - Z * s.error, s.value + Z * s.error
    strength = f"{percent(s.value)} of its strength ({percent(low)} to {percent(high)})"
    if weakened:
        return f"It broke: {strength}. Below one half, relying on it costs more than doing without."
    if low > 0.5:
        return f"It held: {strength}. On these rows alone, leaving it out was not needed."
    return f"Not clear: {strength}."


def _plain(unit: str, this: Estimate, plain: Estimate, worse: Estimate) -> str:
    change = plain.value / this.value - 1 if this.value > 0 else math.nan
    sure = abs(worse.value) > Z * worse.error
    if not sure or not math.isfinite(change) or change == 0:
        return f"{unit} {number(plain.value)}: no difference beyond chance."
    more = "more" if change > 0 else "less"
    return f"{unit} {number(plain.value)}: it would have erred {percent(abs(change))} {more}."
