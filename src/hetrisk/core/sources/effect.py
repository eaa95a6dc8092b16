"""Does an effect of the target follow it in the same way everywhere?

A column that the target *causes* (a symptom, a later measurement) predicts well until its mechanism
changes. Effects give themselves away: they depend on the other columns, but not any more once
the target is known; causes do the opposite (the collider rule of constraint-based causal
discovery, Spirtes, Glymour and Scheines 2000). An effect is not left out for being one: its
mechanism is tested, and it leaves where

* its spread about the target goes along with something else that can be seen
  (`hetrisk.core.sources.mechanism`),
* it follows the target with two slopes: the score of hidden slopes, with the effect in the place
  of y and y in that of x (`hetrisk.core.sources.score`). Selection that looks at the target and a
  column makes such effects; or
* it answers to the target by a gain that it shares with other effects, and that differs between
  rows (`hetrisk.core.sources.shared_gain`). Such effects depend on each other once the target is
  known, and are recognised as a block.

Noise with heavy tails, or of two sizes with nothing that goes along, is one mechanism: the tables
are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from hetrisk.core.numerics.dependence import dependence, effect_blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.linear import weighted_coefficients
from hetrisk.core.numerics.multiplicity import holm, p_text
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Held, IntArray, Rows, RowSource
from hetrisk.core.sources.mechanism import mechanism_p_values
from hetrisk.core.sources.question import (
    EFFECT,
    Case,
    Finding,
    Question,
    count_text,
    mask_of,
    nothing_found,
    some_of,
)
from hetrisk.core.sources.scale_mixture import by_spread, spread_p_values
from hetrisk.core.sources.score import SCORED_ROWS, Score, SlopePartition, gain_pass, score
from hetrisk.core.sources.shared_gain import by_gain, knots_of, shared_gain
from hetrisk.core.sources.terms import two_valued
from hetrisk.core.thresholds import THRESHOLDS


@dataclass(frozen=True)
class Roles:
    """Which columns depend on the others, but not once the target is known.

    ``effect`` (d,) do, alone or as a block; ``block`` (d,) is the number of the block of effects
    that a column belongs to, -1 for none.
    """

    effect: BoolArray
    block: IntArray


def roles(rows: Rows, family: Family, groups: IntArray) -> Roles:
    """Compare what columns say of each other before and after the target is known."""
    w = rows.weight / rows.weight.sum()
    centred = rows.X - w @ rows.X
    known = family.mean_basis(rows.y, THRESHOLDS.far)
    known = known - w @ known
    # Covariances before and after the target is known: nothing else of the rows is needed.
    plain, given = (z.T @ (w[:, None] * z) for z in (centred, _residuals(known, centred, w)))
    n_rows, n_known = 1.0 / float((w**2).sum()), known.shape[1]
    block = np.full(len(groups), -1, dtype=np.int64)
    if family.shows_mixtures:
        block = effect_blocks(plain, given, n_rows, n_known, groups)
    effect = dependence(plain, given, n_rows, n_known, groups).is_effect | (block >= 0)
    return Roles(effect, block)


def recognised(case: Case) -> Roles:
    """Roles of the columns in play; those that are not play none."""
    d, stay = len(case.excluded), case.support
    if len(stay) < 2:
        return Roles(np.zeros(d, dtype=bool), np.full(d, -1))
    seen = replace(case.sample, X=case.sample.X[:, stay])
    found = roles(seen, case.family, case.groups[stay])
    block = np.full(d, -1)
    block[stay] = found.block
    return Roles(mask_of(stay[found.effect], d), block)


class Effect(Question[Roles]):
    """Effects of the target whose mechanism is not the same everywhere."""

    name = "shifting effects"
    kind = EFFECT

    def applies(self, family: Family) -> bool:
        """Every target can have effects."""
        return True

    def propose(self, case: Case) -> Roles:
        """Columns that look like effects of the target, alone or as a block."""
        return recognised(case)

    def test(self, case: Case, proposal: Roles) -> Finding:
        """Test the mechanism of each, together at the level of the case (Holm)."""
        effects = np.flatnonzero(proposal.effect)
        if len(effects) == 0:
            return nothing_found(self, case, 1.0, "No column looks like an effect of the target.")
        scores = [_two_slopes(case, int(j)) for j in effects]
        each = _p_values(case, proposal, effects, scores)
        p, each, found = _together(case, proposal, effects, each)
        shifting = effects[found]
        group = np.isin(case.groups, case.groups[shifting])
        kept = np.isin(case.groups, case.groups[case.keep])
        gone = group & ~kept & ~case.excluded
        column_p_values = np.ones(len(case.excluded))
        column_p_values[effects] = p
        smallest = min(1.0, len(effects) * float(p.min()))
        sentence = _sentence(case, effects, group & ~case.excluded, kept, smallest)
        seen_by = _seen_by(each, case.level / _n_tests(proposal, effects))
        spreads, slopes, gains = (
            gone & mask_of(effects[seen_by == which], len(gone)) for which in range(3)
        )
        return replace(
            nothing_found(self, case, smallest, sentence),
            column_p_values=column_p_values,
            against=gone,
            kept=group & kept & ~case.excluded,
            partitions=_most_first(
                [
                    *_by_spread(case, spreads),
                    *((1, s.partition()) for s in scores if s is not None and slopes[s.target]),
                    *_by_gain(case, proposal, gains),
                ]
            ),
        )

    def confirm(self, case: Case, finding: Finding, rows: RowSource) -> Finding:
        """Repeat the test of each mechanism on all rows."""
        slopes = [p for p in finding.partitions if isinstance(p, SlopePartition)]
        gain = rows.sum(partial(gain_pass, partitions=tuple(slopes))) if slopes else np.empty(0)
        shown = [p.target for p, g in zip(slopes, gain, strict=True) if g > 0.0]
        gone, known = np.flatnonzero(finding.against), recognised(case)
        p = mechanism_p_values(rows, case.family, _apart(case, known), gone)
        p = np.minimum(p, _shared(case, known, gone, rows))
        steady = gone[(p >= case.level) & ~np.isin(gone, shown)]
        if len(steady) == 0:
            return finding
        against = finding.against.copy()
        against[np.isin(case.groups, case.groups[steady])] = False
        sentence = finding.sentence if against.any() else "All rows show one mechanism."
        partitions = finding.partitions if against.any() else ()
        return replace(finding, against=against, sentence=sentence, partitions=partitions)


def _sentence(
    case: Case, effects: IntArray, shifting: BoolArray, kept: BoolArray, p_value: float
) -> str:
    """How many effects do not follow the target in one way, and which of them stay all the same."""
    # Columns of one group, the levels of a category, are one.
    count, left, stay = (
        len(np.unique(case.groups[some])) for some in (effects, shifting, shifting & kept)
    )
    opening = partial(some_of, count, "may follow from the target")
    what = (
        opening(left, "does not do so", "do not do so")
        if left
        else opening(count, "does so", "do so")
    )
    asked = f" {count_text(stay, 'column')} {'stays' if stay == 1 else 'stay'}: asked for."
    return f"{what} in one way everywhere ({p_text(p_value)}).{asked if stay else ''}"


def _apart(case: Case, known: Roles) -> IntArray:
    """(d,) groups of columns that are no witnesses of each other, blocks of effects among them.

    Effects of one block share noise, and their spreads are alike for that alone.
    """
    apart: IntArray = np.where(known.block >= 0, case.groups.max() + 1 + known.block, case.groups)
    return apart


def _shared(case: Case, known: Roles, effects: IntArray, rows: RowSource) -> FloatArray:
    """(m,) p-values of no gain that effects of one block share; one outside of blocks."""
    p = np.ones(len(case.excluded))
    for own in _blocks(known, mask_of(effects, len(p))):
        p[own] = shared_gain(rows, own, case.groups, knots_of(case.sample.y)).p_values(rows)
    return p[effects]


def _blocks(known: Roles, some: BoolArray) -> list[IntArray]:
    """Columns of each block of effects that has some of the columns (d,)."""
    numbers = np.unique(known.block[some & (known.block >= 0)])
    return [np.flatnonzero(known.block == number) for number in numbers]


def _most_first(found: list[tuple[int, Partition]]) -> tuple[Partition, ...]:
    """Partitions, those that speak against most columns first."""
    return tuple(partition for _, partition in sorted(found, key=lambda f: -f[0]))


def _by_gain(case: Case, known: Roles, effects: BoolArray) -> list[tuple[int, Partition]]:
    """The environments of effects that share a gain, block by block."""
    rows, knots = case.sample, knots_of(case.sample.y)
    return [
        (int(effects[own].sum()), by_gain(rows, shared_gain(Held(rows), own, case.groups, knots)))
        for own in _blocks(known, effects)
    ]


def _by_spread(case: Case, effects: BoolArray) -> list[tuple[int, Partition]]:
    """The environments of effects whose spread goes along with something visible."""
    if not effects.any():
        return []
    return [(int(effects.sum()), by_spread(case.sample, case.family, np.flatnonzero(effects)))]


def _p_values(
    case: Case, known: Roles, effects: IntArray, scores: list[Score | None]
) -> FloatArray:
    """(3, m) of one mechanism: by spreads, by two slopes, by a shared gain."""
    stay = case.support
    place, seen = np.searchsorted(stay, effects), replace(case.sample, X=case.sample.X[:, stay])
    visible = mechanism_p_values(Held(seen), case.family, _apart(case, known)[stay], place)
    hidden = [1.0 if s is None else s.p_value for s in scores]
    return np.stack([visible, hidden, _shared(case, known, effects, Held(case.sample))])


def _together(
    case: Case, known: Roles, effects: IntArray, each: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(m,) p-values of one mechanism, (3, m) those of each test, and effects that have several.

    Of several tests of one mechanism any may see it, so the smallest counts as often as there are
    tests (Bonferroni). All are tested at one level (Holm).
    Effects that pass, outside of blocks, are held against the environments of those whose spread
    does not. They are asked a second time, so that counts twice.
    """
    each = each.copy()
    p = np.minimum(_n_tests(known, effects) * each.min(axis=0), 1.0)
    found = holm(p) <= case.level
    first, alone = found & (each.argmin(axis=0) == 0), ~found & (known.block[effects] < 0)
    if first.any() and alone.any():
        late = spread_p_values(case.sample, case.family, effects[first], effects[alone])
        late = np.minimum(2.0 * late, 1.0)
        p[alone], each[0, alone] = np.minimum(p[alone], late), np.minimum(each[0, alone], late)
        found[alone] = holm(late) <= case.level
    return p, each, found


def _seen_by(each: FloatArray, level: FloatArray) -> IntArray:
    """(m,) number of the test in whose environments each effect is priced.

    The surest of the three; but two slopes where they are seen as well as a spread. Where the slope
    of an effect differs, rows parted by the size of its noise are parted by the target.
    """
    surest = each.argmin(axis=0)
    return np.where((surest == 0) & (each[1] <= level), 1, surest)


def _n_tests(known: Roles, effects: IntArray) -> FloatArray:
    """(m,) tests that each effect is asked: a gain is shared within a block only."""
    return np.where(known.block[effects] >= 0, 3.0, 2.0)


def _two_slopes(case: Case, j: int) -> Score | None:
    """Score of an effect given the target; None where there is no spread to be asked about.

    What two slopes gain hangs on the unit of the effect: a reading that saturates has noise of
    another shape at either end, which two slopes describe better than one. In a unit of its own it
    is one mechanism. So two slopes must be seen in normal scores as well, the one unit that any
    increasing function of the effect has in common with it.
    """
    rows = case.sample
    if two_valued(rows.X[:, j]) or not case.family.shows_mixtures:
        return None
    seen = rows.first(SCORED_ROWS)
    ask = partial(
        score,
        groups=case.groups,
        thresholds=case.thresholds,
        support=np.array([-1]),
        mixed=0,
        target=j,
    )
    found = ask(seen)
    if found.p_value >= case.level:
        return found
    X = seen.X.copy()
    X[:, j] = ndtri((rankdata(X[:, j]) - 0.5) / len(X))
    return replace(found, p_value=max(found.p_value, ask(replace(seen, X=X)).p_value))


def _residuals(design: FloatArray, columns: FloatArray, w: FloatArray) -> FloatArray:
    """Residuals of a weighted regression."""
    residual: FloatArray = columns - design @ weighted_coefficients(design, columns, w)
    return residual
