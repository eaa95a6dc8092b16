"""Does an effect of the target follow it in the same way everywhere?

A column that the target *causes* (a symptom, a later measurement) predicts well until its mechanism
changes. Effects give themselves away: they depend on the other columns, but not any more once
the target is known; causes do the opposite (the collider rule of constraint-based causal
discovery, Spirtes, Glymour and Scheines 2000). An effect is not left out for being one: its
mechanism is tested, and it leaves where

* its spread about the target goes along with something else that can be seen
  (`hetrisk.core.sources.mechanism`), or
* it follows the target with two slopes: the score of hidden slopes, with the effect in the place
  of y and y in that of x (`hetrisk.core.sources.score`). Selection that looks at the target and a
  column makes such effects.

Noise with heavy tails, or of two sizes with nothing that goes along, is one mechanism: the tables
are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.numerics.dependence import dependence
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Held, IntArray, Rows, RowSource
from hetrisk.core.sources.mechanism import mechanism_p_values
from hetrisk.core.sources.question import (
    EFFECT,
    Case,
    Finding,
    Question,
    mask_of,
    nothing_found,
    p_text,
    some_of,
)
from hetrisk.core.sources.scale_mixture import SpreadPartition, by_spread, spread_p_values
from hetrisk.core.sources.score import SCORED_ROWS, Score, SlopePartition, gain_pass, score
from hetrisk.core.sources.terms import two_valued
from hetrisk.core.thresholds import THRESHOLDS


@dataclass(frozen=True)
class Roles:
    """Which columns depend on the others with and without the target known.

    ``effect`` (d,) depend on the others, but not once the target is known; ``cause`` (d,) depend on
    the others more once it is known, effects set aside.
    """

    effect: BoolArray
    cause: BoolArray


def roles(rows: Rows, family: Family, groups: IntArray) -> Roles:
    """Compare what columns say of each other before and after the target is known."""
    w = rows.weight / rows.weight.sum()
    centred = rows.X - w @ rows.X
    known = family.mean_basis(rows.y, THRESHOLDS.far)
    known = known - w @ known
    # Covariances before and after the target is known: nothing else of the rows is needed.
    plain, given = (z.T @ (w[:, None] * z) for z in (centred, _residuals(known, centred, w)))
    n_rows, n_known = 1.0 / float((w**2).sum()), known.shape[1]
    found = dependence(plain, given, n_rows, n_known, groups)
    effect = found.is_effect
    cause = np.zeros_like(effect)
    rest = np.flatnonzero(~effect)
    at = np.ix_(rest, rest)
    # Effects depend on causes through the target; among the causes they would hide who explains
    # it with whom.
    again = dependence(plain[at], given[at], n_rows, n_known, groups[rest])
    cause[rest] = again.is_cause
    return Roles(effect, cause)


class Effect(Question[BoolArray]):
    """Effects of the target whose mechanism goes along with something visible."""

    name = "shifting effects"
    kind = EFFECT

    def applies(self, family: Family) -> bool:
        """Every target can have effects."""
        return True

    def propose(self, case: Case) -> BoolArray:
        """(d,) columns that look like effects of the target."""
        effect = np.zeros(len(case.excluded), dtype=bool)
        stay = case.support
        if len(stay) > 1:
            seen = replace(case.sample, X=case.sample.X[:, stay])
            effect[stay] = roles(seen, case.family, case.groups[stay]).effect
        return effect

    def test(self, case: Case, proposal: BoolArray) -> Finding:
        """Test the mechanism of each, together at the level of the case (Holm)."""
        effects = np.flatnonzero(proposal)
        if len(effects) == 0:
            return nothing_found(self, case, 1.0, "No column looks like an effect of the target.")
        stay = case.support
        place = np.searchsorted(stay, effects)
        seen = replace(case.sample, X=case.sample.X[:, stay])
        visible = mechanism_p_values(Held(seen), case.family, case.groups[stay], place)
        scores = [_two_slopes(case, int(j)) for j in effects]
        hidden = np.array([1.0 if s is None else s.p_value for s in scores])
        # Two tests of one mechanism: either may see it, so the smaller counts twice (Bonferroni).
        p = np.minimum(2.0 * np.minimum(visible, hidden), 1.0)
        found = holm(p) <= case.level
        first = found & (visible <= hidden)
        if first.any() and not found.all():
            late = _together(case, effects[first], effects[~found])
            p[~found], visible[~found] = (
                np.minimum(p[~found], late),
                np.minimum(visible[~found], late),
            )
            found[~found] = holm(late) <= case.level
        shifting = effects[found]
        group = np.isin(case.groups, case.groups[shifting])
        kept = np.isin(case.groups, case.groups[case.keep])
        gone = group & ~kept & ~case.excluded
        by_slopes = gone & mask_of(effects[hidden < visible], len(gone))
        column_p_values = np.ones(len(case.excluded))
        column_p_values[effects] = p
        smallest = min(1.0, len(effects) * float(p.min()))
        opening = partial(some_of, len(effects), "may follow from the target")
        sentence = (
            f"{opening(int(gone.sum()), 'does not do so', 'do not do so')}"
            if gone.any()
            else f"{opening(len(effects), 'does so', 'do so')}"
        )
        sentence = f"{sentence} in one way everywhere ({p_text(smallest)})."
        return replace(
            nothing_found(self, case, smallest, sentence),
            column_p_values=column_p_values,
            against=gone,
            partitions=(
                *_by_spread(case, gone & mask_of(effects[visible <= hidden], len(gone))),
                *(s.partition() for s in scores if s is not None and by_slopes[s.target]),
            ),
        )

    def confirm(self, case: Case, finding: Finding, rows: RowSource) -> Finding:
        """Repeat the test of each mechanism on all rows."""
        slopes = [p for p in finding.partitions if isinstance(p, SlopePartition)]
        gain = rows.sum(partial(gain_pass, partitions=tuple(slopes))) if slopes else np.empty(0)
        shown = [p.target for p, g in zip(slopes, gain, strict=True) if g > 0.0]
        gone = np.flatnonzero(finding.against)
        p = mechanism_p_values(rows, case.family, case.groups, gone)
        steady = gone[(p >= case.level) & ~np.isin(gone, shown)]
        if len(steady) == 0:
            return finding
        against = finding.against.copy()
        against[np.isin(case.groups, case.groups[steady])] = False
        sentence = finding.sentence if against.any() else "All rows show one mechanism."
        partitions = finding.partitions if against.any() else ()
        return replace(finding, against=against, sentence=sentence, partitions=partitions)


def _by_spread(case: Case, effects: BoolArray) -> list[SpreadPartition]:
    """The environments of effects whose spread goes along with something visible."""
    if not effects.any():
        return []
    return [by_spread(case.sample, case.family, np.flatnonzero(effects))]


def _together(case: Case, shifting: IntArray, others: IntArray) -> FloatArray:
    """(m,) p-values of one mechanism of other effects, held against environments already found.

    They are asked a second time, so what this says counts twice (Bonferroni).
    """
    p: FloatArray = spread_p_values(case.sample, case.family, shifting, others)
    return np.minimum(2.0 * p, 1.0)


def _two_slopes(case: Case, j: int) -> Score | None:
    """Score of an effect given the target; None where there is no spread to be asked about."""
    rows = case.sample
    if two_valued(rows.X[:, j]) or not case.family.shows_mixtures:
        return None
    seen = rows.first(SCORED_ROWS)
    return score(seen, case.groups, case.thresholds, np.array([-1]), mixed=0, target=j)


def _coefficients(design: FloatArray, columns: FloatArray, w: FloatArray) -> FloatArray:
    root = np.sqrt(w)
    rooted = (columns.T * root).T
    coef = np.linalg.lstsq(design * root[:, None], rooted, rcond=None)[0]
    return np.asarray(coef, dtype=np.float64)


def _residuals(design: FloatArray, columns: FloatArray, w: FloatArray) -> FloatArray:
    """Residuals of a weighted regression."""
    residual: FloatArray = columns - design @ _coefficients(design, columns, w)
    return residual
