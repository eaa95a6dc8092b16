"""Columns that repeat a label: an assumption, not a test.

A column that repeats a label, wrongly for 5 % of the rows here and for 90 % there, is in a pooled
table *exactly* a column that errs at one rate everywhere: nothing can test it. What can be seen is
that it is an effect of the label, and says more about it than any other column: the mark of a
shortcut. Whether it keeps doing so elsewhere is for the user to know (`keep` overrules the rule;
named environments or hints replace it by a test: where they are asked, it is not).

The rule acts only where leaving the copies out is cheap: what stays must explain nearly as much as
all columns do, at least ``copy_share`` of the log likelihood that they gain, and the deviance may
not rise by more than the factor ``copy_rise``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Held, Rows, RowSource
from hetrisk.core.sources.effect import roles
from hetrisk.core.sources.question import (
    COPY,
    Case,
    Finding,
    Question,
    count_text,
    mask_of,
    nothing_found,
)


@dataclass(frozen=True)
class Copies:
    """Columns that repeat the label (d,), effects of it (d,), and what the others explain.

    ``share`` of the gain in log likelihood of all columns that those which stay explain on their
    own; ``rise`` the factor by which the deviance rises.
    """

    repeats: BoolArray
    share: float
    rise: float


class LabelCopy(Question[Copies]):
    """Effects of a label that say more about it than anything that stays."""

    name = "copies of the label"
    kind = COPY
    tests = False

    def applies(self, family: Family) -> bool:
        """Labels only: a number that is repeated more or less closely can be tested."""
        return not family.shows_mixtures

    def propose(self, case: Case) -> Copies:
        """The strongest effects, as few as possible, that say more than any column that stays."""
        repeats, stay = np.zeros(len(case.excluded), dtype=bool), case.support
        seen = replace(case.sample, X=case.sample.X[:, stay])
        if len(stay) < 2:
            return Copies(repeats, 1.0, 1.0)
        found = roles(seen, case.family, case.groups[stay])
        r2 = np.max([squared_correlation(rows) for rows in _one_against_rest(seen)], axis=0)
        effects = np.flatnonzero(found.effect)
        for j in effects[np.argsort(-r2[effects], kind="stable")]:
            repeats[stay[case.groups[stay] == case.groups[stay[j]]]] = True
            if r2[j] > r2[~repeats[stay]].max(initial=0.0):
                # Effects cannot vouch for each other: what explains the label must be no effect.
                vouch = mask_of(stay[~found.effect], len(case.excluded)) & ~repeats
                share, _ = explained(case.sample, case.family, vouch, ~case.excluded)
                _, rise = explained(
                    case.sample, case.family, ~case.excluded & ~repeats, ~case.excluded
                )
                return Copies(repeats, share, rise)
        return Copies(np.zeros_like(repeats), 1.0, 1.0)

    def test(self, case: Case, proposal: Copies) -> Finding:
        """State the assumption, where what stays explains the label nearly as well."""
        kept = np.isin(case.groups, case.groups[case.keep])
        gone = proposal.repeats & ~kept
        if not proposal.repeats.any():
            return nothing_found(self, case, 1.0, "No column repeats the label.")
        if not gone.any():
            which, them = _repeating(case, proposal.repeats)
            sentence = f"{which}, and {them('stays', 'stay')}: asked for."
            return nothing_found(self, case, 1.0, sentence)
        which, them = _repeating(case, gone)
        price = (
            f"what stays explains {100 * proposal.share:.0f} % of what all columns do, at "
            f"{proposal.rise:.2f} times the deviance"
        )
        if proposal.share < case.thresholds.copy_share or proposal.rise > case.thresholds.copy_rise:
            sentence = f"{which}, but {price}: {them('it stays', 'they stay')}."
            return nothing_found(self, case, 1.0, sentence)
        sentence = (
            f"{which}. Whether {them('it does', 'they do')} so elsewhere cannot be seen in a "
            f"pooled table; by assumption {them('it leaves', 'they leave')} ({price})."
        )
        finding = nothing_found(self, case, 1.0, sentence)
        return replace(finding, against=gone, assumption=True)

    def confirm(self, case: Case, finding: Finding, rows: RowSource) -> Finding:
        """Nothing to confirm: the rule rests on no test."""
        return finding


def _repeating(case: Case, some: BoolArray) -> tuple[str, Callable[[str, str], str]]:
    """Say how many columns repeat the label, and what chooses between words for one and several."""
    count = len(np.unique(case.groups[some]))  # columns of one group, a category, are one

    def them(one: str, several: str) -> str:
        return one if count == 1 else several

    tell = f"{them('repeats', 'repeat')} the label better than any other tells it"
    return f"{count_text(count, 'column')} {tell}", them


def explained(rows: Rows, family: Family, some: BoolArray, every: BoolArray) -> tuple[float, float]:
    """Share of the log likelihood that ``every`` column gains which ``some`` gain, and the rise.

    The rise is the deviance with some columns over that with every column; both (d,) masks.
    """
    null, part, whole = (
        -fit_glm(Held(rows), family, columns=columns).log_likelihood
        for columns in (np.zeros_like(some), some, every)
    )
    return (null - part) / max(null - whole, TINY), part / max(whole, TINY)


def squared_correlation(rows: Rows) -> FloatArray:
    """(d,) squared correlation of each column with the target."""
    w = rows.weight / rows.weight.sum()
    x, y = rows.X - w @ rows.X, rows.y - w @ rows.y
    spread = (w @ x**2) * (w @ y**2)
    squared: FloatArray = ((w * y) @ x) ** 2 / np.maximum(spread, TINY)
    return squared


def _one_against_rest(rows: Rows) -> list[Rows]:
    codes = np.unique(rows.y)
    # One of two labels says all: the other is what is left.
    codes = codes[1:] if len(codes) == 2 else codes
    return [replace(rows, y=(rows.y == code).astype(np.float64)) for code in codes]
