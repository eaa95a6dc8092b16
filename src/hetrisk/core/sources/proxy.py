"""Is the weight of a column only due to how the columns are distributed?

A linear model cannot draw a curve. Where selection (who was sampled, what was recorded) made a
column go along with the target, least squares gives it a weight in place of the curve, though a
flexible model has no use for it. That weight is right only while the columns keep their joint
distribution. A column is *suspect* when

1. the linear model uses it, and
2. its coefficient shrinks to little or nothing once the mean may bend (its own curves aside).

With elliptical columns neither happens (Stein's lemma); with others both may in one population,
and the column is then of use for as long as columns go along as they do. So it leaves only if they
do not: the column, **given the columns that the flexible model needs, is not one population**. That
is the score of hidden slopes (`hetrisk.core.sources.score`) with the column in the place of y, and
looks at nothing but columns: it selects no rows by the noise of the target.

A column of two values has no spread about its mean to be asked about; it stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hetrisk.core.numerics.families import Bernoulli, Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.multiplicity import holm, p_text
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.numerics.working import working_fit
from hetrisk.core.sources.question import (
    PROXY,
    Case,
    Finding,
    Question,
    nothing_found,
    some_of,
)
from hetrisk.core.sources.score import SCORED_ROWS, Score, SlopePartition, gain_pass, score
from hetrisk.core.sources.terms import Term, choose_terms, term_values, two_valued
from hetrisk.core.thresholds import Thresholds

TERM_ROWS: Budget[int] = 4000  # of the sample, that terms are chosen on


@dataclass(frozen=True)
class Use:
    """How the linear and the flexible model use each of the d columns.

    Attributes
    ----------
    z_linear : (d,) robust z of the linear coefficient.
    z_contrast : (d,) change of the coefficient from linear to flexible, over its standard error.
    needed : (d,) the flexible model uses the column.
    """

    z_linear: FloatArray
    z_contrast: FloatArray
    needed: BoolArray

    def strength(self) -> FloatArray:
        """(d,) how plainly a column is a proxy for a curve."""
        strength: FloatArray = np.minimum(np.abs(self.z_linear), np.abs(self.z_contrast))
        return strength


def use_of_columns(
    rows: Rows, family: Family, terms: tuple[Term, ...], thresholds: Thresholds
) -> Use:
    """Compare the fit of y on X with the fit on X and the terms."""
    d = rows.X.shape[1]
    linear = working_fit(rows, family, np.empty((len(rows), 0)))
    z_linear = linear.z[1:]
    if not terms:
        return Use(z_linear, np.zeros(d), np.ones(d, dtype=bool))
    flexible = working_fit(rows, family, term_values(terms, rows.X))
    # A change is measured in the error of the linear coefficient, which is what is doubted.
    own, error = linear.coef[1:], np.abs(linear.coef[1:]) / np.maximum(np.abs(z_linear), TINY)
    bent, (z, of_terms) = flexible.coef[1 : d + 1].copy(), np.split(flexible.z[1:], [d])
    curved = np.zeros(d)
    for j in sorted({column for term in terms for column in term.columns}):
        # A proxy is one for curves of other columns: its own curves are set aside.
        touching = np.array([j in term.columns for term in terms])
        others = tuple(term for term, own_term in zip(terms, touching, strict=True) if not own_term)
        fit = working_fit(rows, family, term_values(others, rows.X))
        bent[j], z[j] = fit.coef[1 + j], fit.z[1 + j]
        curved[j] = np.abs(of_terms[touching]).max()
    used = np.abs(z) >= thresholds.certain
    # A coefficient that turned its sign is not the one the linear model uses.
    used &= bent * np.sign(own) >= thresholds.proxy_share * np.abs(own)
    # A column whose own curve is plain is needed, whatever its slope has become.
    needed = used | (curved > np.minimum(np.abs(z_linear), thresholds.certain))
    return Use(z_linear, (own - bent) / error, needed)


@dataclass(frozen=True)
class Suspects:
    """Proxies for a curve, in the order they were taken out, and what they are given.

    ``columns`` (m,); ``needed`` (d,) columns that the flexible model needs.
    """

    columns: IntArray
    needed: BoolArray


class Proxy(Question[Suspects]):
    """Proxies for a curve that go along with the others in two ways."""

    name = "proxies"
    kind = PROXY

    def applies(self, family: Family) -> bool:
        """Any linear model can give weight to a proxy."""
        return True

    def propose(self, case: Case) -> Suspects:
        """Take out suspects one by one: several proxies for one curve share its weight."""
        d = len(case.excluded)
        columns: list[int] = []
        needed = np.zeros(d, dtype=bool)
        kept = np.isin(case.groups, case.groups[case.keep])
        binary = np.array([two_valued(case.sample.X[:, j]) for j in range(d)])
        for rows, family in _targets(case):
            rows = rows.first(TERM_ROWS)
            out = case.excluded.copy()
            terms: tuple[Term, ...] | None = None
            while not out.all():
                stay = np.flatnonzero(~out)
                seen = replace(rows, X=np.ascontiguousarray(rows.X[:, stay]))
                if terms is None:
                    terms = choose_terms(seen, family, case.groups[stay], case.thresholds.alpha)
                use = use_of_columns(seen, family, terms, case.thresholds)
                suspect = (
                    (use.strength() > case.thresholds.score)
                    & ~use.needed
                    & ~kept[stay]
                    & ~binary[stay]
                )
                if not suspect.any():
                    needed[stay] |= use.needed
                    break
                first = int(np.argmax(np.where(suspect, use.strength(), -1.0)))
                columns.append(int(stay[first]))
                gone = np.isin(case.groups, case.groups[stay[first]])
                terms = _restricted(terms, stay, ~out & ~gone)
                out |= gone
        columns = list(dict.fromkeys(columns))
        needed[columns] = False
        return Suspects(np.array(columns, dtype=np.int64), needed)

    def test(self, case: Case, proposal: Suspects) -> Finding:
        """Ask each suspect whether, given the columns that are needed, it is one population."""
        if len(proposal.columns) == 0 or not proposal.needed.any():
            which = "that may leave " if case.keep.any() else ""
            sentence = f"No column {which}is a proxy for a curve of others."
            return nothing_found(self, case, 1.0, sentence)
        rows = case.sample
        seen = rows.first(SCORED_ROWS)
        column_p_values = np.ones(len(case.excluded))
        scores: dict[int, Score] = {}
        for j in proposal.columns:
            given = np.flatnonzero(proposal.needed & (case.groups != case.groups[j]))
            scores[int(j)] = score(
                seen, case.groups, case.thresholds, given, mixed=0, target=int(j)
            )
            column_p_values[j] = scores[int(j)].p_value
        passed = proposal.columns[holm(column_p_values[proposal.columns]) <= case.level]
        gone = np.isin(case.groups, case.groups[passed]) & ~case.excluded
        smallest = min(1.0, len(scores) * float(column_p_values.min()))
        opening = partial(some_of, len(scores), "only a linear model uses")
        how = "along with the others in one way everywhere"
        sentence = (
            f"{opening(int(gone.sum()), 'does not go', 'do not go')} {how}"
            if gone.any()
            else f"{opening(len(scores), 'goes', 'go')} {how}"
        )
        sentence = f"{sentence} ({p_text(smallest)})."
        return replace(
            nothing_found(self, case, smallest, sentence),
            column_p_values=column_p_values,
            against=gone,
            partitions=tuple(scores[j].partition() for j in scores if gone[j]),
        )

    def confirm(self, case: Case, finding: Finding, rows: RowSource) -> Finding:
        """Ask whether two slopes describe each column in all rows better than one does."""
        partitions = [p for p in finding.partitions if isinstance(p, SlopePartition)]
        gain = rows.sum(partial(gain_pass, partitions=tuple(partitions)))
        kept = [p for p, g in zip(partitions, gain, strict=True) if g > 0.0]
        columns = [p.target for p in kept]
        against = finding.against & np.isin(case.groups, case.groups[columns])
        sentence = (
            finding.sentence if against.any() else "What a sample suggested is not borne out."
        )
        return replace(finding, against=against, sentence=sentence, partitions=tuple(kept))


def _targets(case: Case) -> list[tuple[Rows, Family]]:
    """One target of numbers or of two labels; more labels are taken one against the rest."""
    if case.family.n_outputs == 1:
        return [(case.sample, case.family)]
    return [
        (replace(case.sample, y=(case.sample.y == code).astype(np.float64)), Bernoulli())
        for code in np.unique(case.sample.y)
    ]


def _restricted(
    terms: tuple[Term, ...], stay: IntArray, kept: BoolArray
) -> tuple[Term, ...] | None:
    """Terms for the columns that are left; None, to choose again, where one lost a column."""
    place = {int(i): int(p) for p, i in enumerate(np.flatnonzero(kept))}
    moved = []
    for term in terms:
        columns = [int(stay[c]) for c in term.columns]
        if any(c not in place for c in columns):
            return None
        atoms = tuple(
            replace(atom, columns=tuple(place[int(stay[c])] for c in atom.columns))
            for atom in term.atoms
        )
        moved.append(Term(atoms))
    return tuple(moved)
