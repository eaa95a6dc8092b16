"""What a check found, in sentences."""

from __future__ import annotations

import math

from hetrisk.monitoring.findings import LEVEL, Check, ColumnCheck, Outcome, Part, Status, Z
from hetrisk.report.labels import brief, listed, number, percent, precise
from hetrisk.report.names import constant
from hetrisk.tables.errors import counted

MOST_NAMES = 4
SHOWN_PARTS = 5
LEAST_SHARE = 0.005  # of the rise: a smaller part is not worth a line


def sentence_of(status: Status, columns: tuple[ColumnCheck, ...], outcome: Outcome | None) -> str:
    """Return the verdict: what to do, and why."""
    if outcome is not None:
        return _of_outcome(status, outcome)
    if status is Status.FINE:
        return "Go on: no column in use moved. Without the target the error is not known."
    moved = [brief(c.name, 40) for c in columns if c.notable and c.weight > 0]
    return (
        f"Look: {listed(moved, MOST_NAMES)} moved. Without the target the error is not known: "
        "a few labelled rows would tell."
    )


def _of_outcome(status: Status, o: Outcome) -> str:
    error = f"the error is {number(o.error)} ({o.unit}, {counted(o.n_rows, 'row')})"
    ahead = f" {o.horizon}" if o.horizon else ""
    low, high = (number(v) for v in (o.expected.lower, o.expected.upper))
    known = math.isfinite(o.expected.lower) and math.isfinite(o.expected.upper)
    band = f"foretold{ahead} ({low} to {high})" if known else ""
    if o.worse_than_mean > Z:
        mean = f"predicting {constant(o.unit)} errs {number(o.constant)}"
        return f"Stop: {error}, and {mean}{band and f'; it was {band}'}."
    if status is Status.ALARM:
        return f"Stop: {error}, beyond what was {band}."
    if status is Status.LOOK and o.worse_than_mean > 0:
        return f"Look: {error}, no less than predicting {constant(o.unit)} ({number(o.constant)})."
    if status is Status.LOOK:
        return f"Look: {error}, above what was {band}, though chance may explain it."
    if not band:
        return f"Go on: {error}, less than predicting {constant(o.unit)} ({number(o.constant)})."
    return f"Go on: {error}, no more than was {band}."


def parts_of(o: Outcome) -> list[str]:
    """Say what the rise of the error is made of, the largest parts first."""
    if not o.parts or o.status is Status.FINE:
        return []  # of an error that is as foretold there is nothing to explain
    chance = [p for p in o.parts if p.p_value >= LEVEL and p.name in ("level", "slope")]
    sure = sorted((p for p in o.parts if p not in chance), key=lambda p: -abs(p.share))
    shown = [p for p in sure[:SHOWN_PARTS] if abs(p.share) >= LEAST_SHARE]
    said = [_part(p, o) for p in shown]
    smaller = sum(p.share for p in sure[len(shown) :])
    if abs(smaller) >= LEAST_SHARE:  # what is read adds up
        what = counted(len(sure) - len(shown), "smaller part")
        said.append(f"{percent(smaller, True)}: {what}")
    if chance:
        rest = sum(p.share for p in chance)
        said.append(f"{percent(rest, True)}: level and slopes that chance explains")
    return said


def _part(p: Part, o: Outcome) -> str:
    share = percent(p.share, True)
    if p.name == "level":
        return f"{share}: its level is off"
    if p.name == "slope":
        return f"{share}: the target follows {brief(p.column, 40)} in another way"
    if p.name == "place":
        return f"{share}: rows lie where it errs more"
    return f"{share}: the rest (noise, or a bend that no straight line tells)"


def column_words(c: ColumnCheck) -> str:
    """What is to be said of one column."""
    said = []
    if c.moved and c.level:
        said.append(f"{brief(c.level, 40)} in {percent(c.now)} of rows (was {percent(c.before)})")
    elif c.moved:
        said.append(f"mean {precise(c.now, c.sd)} (was {precise(c.before, c.sd)})")
    if c.missing_moved:
        was = percent(c.missing_before)
        said.append(f"missing in {percent(c.missing_now)} of rows (was {was})")
    if c.new_share > 0:
        new = listed([brief(level, 30) for level in c.new_levels], 3)
        said.append(f"new: {new} in {percent(c.new_share)} of rows")
    if c.outside > 0:
        said.append(f"{percent(c.outside)} of rows outside the range learned from")
    return "; ".join(said) or "as it was"


def lines_of(found: Check) -> list[str]:
    """Return a check as lines for the terminal, the verdict first."""
    lines = [found.sentence]
    if found.outcome is not None and parts_of(found.outcome):
        lines.append(f"Of the rise in squared error (+{number(found.outcome.rise)}):")
        lines += [f"  {part}" for part in parts_of(found.outcome)]
    if found.environments:
        new = listed([f"{brief(n, 30)} ({percent(s)} of rows)" for n, s in found.environments], 3)
        lines.append(f"Environments not seen before: {new}.")
    return lines
