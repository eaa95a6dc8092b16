"""The answer of a fit on the terminal: twenty lines, or one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hetrisk.core.result import Ranked
from hetrisk.report.errors import in_unit
from hetrisk.report.labels import brief, fixed, listed, number, percent, probability
from hetrisk.report.names import CONSTANT, PLAIN, untested
from hetrisk.tables.errors import counted

if TYPE_CHECKING:
    from rich.console import Console

    from hetrisk.report import Summary

MOST_CANDIDATES = 6
MOST_WATCHED = 3
MOST_COLUMNS = 5
SURE = 0.01  # a slope that differs beyond this is named


def one_line(s: Summary) -> str:
    """Return what ``--quiet`` prints."""
    return f"{s.decision.headline} {s.decision.expect}".strip()


def show(s: Summary, screen: Console, files: list[str]) -> None:
    """Print the answer: what to do, the candidates, the columns, what to watch."""
    from rich.text import Text

    from hetrisk.cli.terminal import words

    for sentence in s.origin.leaks[:2]:
        screen.print(Text(f"Leak: {words(sentence, 300)}", style="bold red"))
    screen.print(Text(words(s.decision.headline, 400), style="bold"))
    for sentence in (s.decision.evidence, s.decision.expect):
        if sentence:
            screen.print(Text(words(sentence, 600)))
    if not untested(s.forecast):
        screen.print(_candidates(s))
    screen.print(Text(words(columns_line(s), 400)))
    for sentence in (*s.advice, *s.decision.watch, *s.cautions)[
        : MOST_WATCHED - len(s.origin.leaks[:2])
    ]:
        screen.print(Text(f"- {words(sentence, 400)}"))
    screen.print(Text(words(_last(s, files), 400)), soft_wrap=True)


def candidates(s: Summary) -> list[Ranked]:
    """Return the candidates worth a line: the one chosen, plain, the constant, the best others."""
    always = [r for r in s.ranking if r.chosen or r.candidate in (PLAIN, CONSTANT)]
    others = sorted(
        (r for r in s.ranking if r not in always and math.isfinite(r.criterion)),
        key=lambda r: r.criterion,
    )
    shown = always + others[: MOST_CANDIDATES - len(always)]
    return sorted(shown, key=lambda r: (not r.chosen, r.criterion))


def _candidates(s: Summary) -> Any:
    from rich.text import Text

    from hetrisk.cli.terminal import grid

    unit = s.forecast.unit
    rows: list[tuple[object, ...]] = [
        (
            Text(f"{'→ ' if r.chosen else '  '}{short(r.candidate)}"),
            number(r.mean),
            number(r.worst),
            percent(in_unit(r.ratio, unit) - 1, True) if r.candidate != PLAIN else "",
        )
        for r in candidates(s)
    ]
    heads = [
        ("  candidate", "left"),
        (f"mean {unit}", "right"),
        ("worst", "right"),
        # At reach 1 the error that decides is that of the worst tenth of the environments.
        ("worst, to plain" if s.reach == 1 else f"to plain, reach {s.reach:g}", "right"),
    ]
    return grid(heads, rows)


def short(candidate: str) -> str:
    """A candidate in a column: the sentence above spells an average out."""
    parts = candidate.count(" + ") + 1
    return f"average of {parts}" if parts > 1 else brief(candidate, 40)


def columns_line(s: Summary) -> str:
    """Which columns matter most, and which cannot be relied on."""
    used = [c for c in s.columns if c.weight > 0]
    most = listed([f"{brief(c.name, 30)} ({fixed(c.weight)})" for c in used[:MOST_COLUMNS]], 9)
    moved = sorted((c for c in s.columns if c.p_slope < SURE), key=lambda c: c.p_slope)
    left = [e.column for e in s.evidence if not e.kept]
    said = f"Columns that move predictions most (in SD): {most}." if most else "No column is used."
    if left:
        said += f" Left out: {listed([brief(n, 30) for n in left], MOST_COLUMNS)}."
    elif moved:
        names = [f"{brief(c.name, 30)} (p {probability(c.p_slope)})" for c in moved]
        said += f" Not the same everywhere: {listed(names, 3)}."
    return said


def _last(s: Summary, files: list[str]) -> str:
    notes = len(s.origin.notes) + len(s.origin.left_out)
    told = f"{counted(notes, 'note')} about the table: see --json or the page. " if notes else ""
    if files:
        return f"{told}Written: {', '.join(files)}."
    return f"{told}Nothing was written: --out model.hetrisk or --report page.html keeps it."
