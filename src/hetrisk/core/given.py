"""Environments that rows carry: named or hinted sources are tested, and regret decides.

A source differs if one of its partitions does, with a correction for how many it has; of those
that do the one with the most regret is heard first, and the next where it leaves nothing out. Over
the sources, p-values are corrected by Holm's rule. Those that differ beyond chance are used
together: in the regression of y on all columns, or else in how an effect of y follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.cells import Assignment
from hetrisk.core.numerics.environment_fits import environment_fits, moment_fits
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.multiplicity import holm, normal_score
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.pricing import (
    error_unit,
    step,
)
from hetrisk.core.reach.brier import BrierScores
from hetrisk.core.reach.decision import Decision, Measure, decide
from hetrisk.core.reach.effects import effect_p_values
from hetrisk.core.reach.forms import FORMS
from hetrisk.core.reach.heterogeneity import Heterogeneity, heterogeneity, one_noise
from hetrisk.core.reach.regret import combined
from hetrisk.core.reach.resampling import RESAMPLES
from hetrisk.core.reach.rules import Tests
from hetrisk.core.result import (
    INVARIANT,
    SearchResult,
    SearchSettings,
    SourceRecord,
)
from hetrisk.core.sources.hinted import hinted
from hetrisk.core.sources.named import named
from hetrisk.core.sources.proposal import HINTED, NAMED, Proposal
from hetrisk.core.thresholds import THRESHOLDS


@dataclass(frozen=True, eq=False)
class TestedSource:
    """A source and the partition of it that is to decide.

    ``p_value`` is that of one regression, ``effects`` (d,) those of one mechanism for each effect
    of the target (one for other columns), ``noise`` that of noise of one size; all are corrected
    for the number of sources, the first for that of partitions as well, and held against ``level``.
    ``others`` are further partitions that surely differ, to be heard where this one leaves nothing
    out.
    """

    proposal: Proposal
    found: Heterogeneity
    p_value: float
    effects: FloatArray
    noise: float
    level: float
    others: tuple[TestedSource, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the environments have regressions of their own."""
        return self.p_value < self.level

    @property
    def shifting(self) -> BoolArray:
        """(d,) effects of the target whose mechanism differs between the environments."""
        shifting: BoolArray = self.effects < self.level
        return shifting

    @property
    def used(self) -> bool:
        """Whether it takes part in the decision by itself."""
        return self.differs or bool(self.shifting.any())

    @property
    def noisy(self) -> bool:
        """Whether the environments differ in the size of their noise."""
        return self.noise < self.level


def test_sources(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings, level: float
) -> list[TestedSource]:
    """Test every source: the surest of its partitions, corrected for their number (Bonferroni)
    and, over the sources, by Holm's step-down rule; all of them together at ``level``. Other
    partitions of a source, if they are to decide, have to differ surely by themselves.

    Effects of the target have as much again, and so has the noise, where columns leave: either is a
    reason to leave some out, and to shrink no direction.
    """
    proposals = [hinted(rows, family, groups, column) for column in settings.hints]
    if settings.environments is not None:
        proposals.insert(0, named(rows, family, groups, settings.environments, settings.cells))
    asked: list[tuple[list[Proposal], list[Heterogeneity], FloatArray]] = []
    for several in proposals:
        found = [heterogeneity(p.merged.cells, family.n_targets) for p in several]
        if found:
            # Bonferroni within a source: its partitions (six intervals, two halves) are looks at
            # the same column, and only one of them goes on.
            each = np.minimum(len(found) * np.array([f.p_value for f in found]), 1.0)
            asked.append((several, found, each))
    corrected = holm(np.array([float(each.min()) for _, _, each in asked]))
    tested = []
    for (several, found, each), least in zip(asked, corrected, strict=True):
        p_values = np.minimum(len(asked) * each, 1.0)
        p_values[np.argmin(each)] = least
        telling = [
            TestedSource(
                several[i],
                found[i],
                float(p_values[i]),
                *_further(several[i], family, groups, settings, len(asked)),
                level,
            )
            for i in _telling(several, found, p_values, level)
        ]
        tested.append(replace(telling[0], others=tuple(telling[1:])))
    return tested


def _telling(
    several: list[Proposal], found: list[Heterogeneity], p_values: FloatArray, level: float
) -> list[int]:
    """Numbers of the partitions that surely differ, most regret first; else of the surest one.

    Of coarse ones then: where nothing differs, what is shown is known as well as may be.
    """
    sure = [i for i in range(len(found)) if p_values[i] < level]
    if sure:
        return sorted(sure, key=lambda i: -found[i].regret)
    return [min(range(len(found)), key=lambda i: (several[i].merged.fine, p_values[i]))]


def _further(
    proposal: Proposal, family: Family, groups: IntArray, settings: SearchSettings, n_sources: int
) -> tuple[FloatArray, float]:
    """P-values of one mechanism of each effect (d,) and of one noise, corrected for the sources."""
    if not FORMS[settings.form].leaves_columns:
        return np.ones(len(groups)), 1.0
    effects = effect_p_values(proposal.merged.cells, proposal.levels, family.n_targets, groups)
    noise = one_noise(proposal.merged.cells, family.n_targets).p_value
    return np.minimum(n_sources * effects, 1.0), min(n_sources * noise, 1.0)


def decide_given(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    tested: list[TestedSource],
    used: list[TestedSource],
) -> SearchResult:
    """Decide by regret in the environments of the sources ``used``, of all that were ``tested``.

    Those whose regressions differ decide together. Where they leave nothing out, other partitions
    that surely differ are heard in their place; and then, by themselves, those along which only
    effects of the target shift.
    """
    turns = _turns(used)
    used, decision = turns[0], _decision(rows, family, groups, settings, turns[0])
    for turn in turns[1:]:
        if decision.verdict == INVARIANT:
            break
        other = _decision(rows, family, groups, settings, turn)
        if other.verdict == INVARIANT:
            used, decision = turn, other
    tested = [next((u for u in used if u in t.others), t) for t in tested]
    count = sum(len(t.found.environments.rows) for t in used)
    # What other rows are placed by: the named environments, or the hint that differs most surely.
    surest = min(used, key=lambda t: (t.proposal.kind != NAMED, t.p_value))
    linear = family.closed_form
    shrunk = not FORMS[settings.form].leaves_columns and decision.verdict == INVARIANT
    return SearchResult(
        support=decision.support,
        gates=decision.support.astype(np.float64),
        partition=_partition(rows, family, surest),
        environment_names=surest.proposal.names,
        evidence=decision.evidence,
        sources=source_records(tested, settings, _blamed(decision), used),
        curve=decision.curve,
        stability=decision.stability,
        n_resamples=RESAMPLES if used[0].differs or decision.verdict == INVARIANT else 0,
        agreement=decision.agreement,
        leave_one_out=decision.leave_one_out,
        verdict=decision.verdict,
        reason=decision.reason,
        history=(step(decision.support, count, decision.curve, settings),),
        moments=surest.proposal.merged.cells.moments(1) if linear else None,
        # Every row has a name, those of labels too thin for an environment among them; not every
        # row has a hint.
        pooled=_pooled(surest.proposal) if linear and surest.proposal.kind == NAMED else None,
        directions=decision.coef[1:] if shrunk else None,
        offsets=decision.coef[0] if shrunk else None,
    )


def _turns(used: list[TestedSource]) -> list[list[TestedSource]]:
    """What decides together, in the order in which it is heard."""
    first = [t for t in used if t.differs] or used
    apart = [t for t in used if t not in first]
    turns = [first]
    for i, source in enumerate(first):
        turns += [[*first[:i], other, *first[i + 1 :]] for other in source.others]
    return turns + ([apart] if apart else [])


def _pooled(proposal: Proposal) -> Moments:
    """Moments of (x, y) over all rows of all levels."""
    return proposal.levels.merged(np.ones((len(proposal.levels.weight), 1))).moments(1).pooled()


def _decision(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    used: list[TestedSource],
) -> Decision:
    """Hand the environments of some sources to `decide`, side by side."""
    names = tuple(name for t in used for name in _held_names(t))
    # A column is doubted by whichever source doubts it most, corrected for their number below.
    p_value = np.min([t.found.column_p_values for t in used], axis=0)
    return decide(
        [t.proposal.merged.cells for t in used],
        combined([t.found.environments for t in used]),
        Tests(
            columns=np.minimum(p_value * len(used), 1.0),
            effects=np.min([t.effects for t in used], axis=0),
            chance=None if used[0].differs else used[0].p_value,
            noise=min(t.noise for t in used),
        ),
        names,
        groups,
        settings,
        error_unit(family),
        _measure(rows, family),
    )


def _measure(rows: RowSource, family: Family) -> Measure | None:
    """For labels: the squared error of a model out of fold."""
    brier = BrierScores.of(rows, family)
    if brier is None:
        return None

    def measure(support: BoolArray, scores: FloatArray | None) -> float:
        return brier.columns(support) if scores is None else brier.directions(scores)

    return measure


def _held_names(tested: TestedSource) -> tuple[str, ...]:
    held = tested.proposal.merged.cells.held
    return tuple(n for n, h in zip(tested.proposal.names, held, strict=True) if h)


def source_records(
    tested: list[TestedSource],
    settings: SearchSettings,
    blamed: IntArray | None = None,
    used: Sequence[TestedSource] = (),
) -> tuple[SourceRecord, ...]:
    """What every source showed, and the hints that nothing could be asked of.

    ``blamed`` are the columns that left in the environments of the sources ``used``, if some did,
    the one that takes most of the regret away first.
    """
    asked = {t.proposal.source for t in tested}
    silent = [column.name for column in settings.hints if column.name not in asked]
    return (
        *(_record(t, settings, blamed if t in used else None) for t in tested),
        *(_silent_record(name) for name in silent),
    )


def _silent_record(name: str) -> SourceRecord:
    sentence = f"{name}: no two groups of rows to compare; it has no effect."
    return SourceRecord(name, HINTED, 1, 1.0, normal_score(1.0), None, False, sentence)


def _record(
    tested: TestedSource, settings: SearchSettings, blamed: IntArray | None
) -> SourceRecord:
    """What a source showed; ``blamed`` are columns that left in its environments, if some did.

    It speaks most against the one of them whose coefficient differs most surely; without any, of
    all columns: beside a shortcut that moves the coefficients of the causes move, too, and may do
    so more surely.
    """
    column = _most_about(tested)
    if blamed is not None:
        column = int(blamed[np.argmin(tested.found.column_p_values[blamed])])
    count, proposal = len(tested.found.environments.rows), tested.proposal
    p_value, used = tested.p_value, tested.used
    if tested.differs:
        about = "no column by itself" if column is None else f"most about {settings.name(column)}"
        what = f"{count} environments differ beyond chance, {about}"
    elif tested.used:
        p_value, column = float(tested.effects.min()), int(np.argmin(tested.effects))
        what = (
            f"{settings.name(column)}, an effect of the target, follows from it in another way in "
            f"some of {count} environments"
        )
    elif tested.noisy and blamed is not None:
        p_value, used = tested.noise, True
        what = f"{count} environments differ in the size of their noise"
    elif count < 2:
        what = "one environment, nothing to compare"
    else:
        changes = f"nothing {'but the noise ' if tested.noisy else ''}changes beyond chance"
        if tested.p_value < THRESHOLDS.alpha:
            changes = "something may change, by less than three standard errors,"
        what = f"{changes} between its {count} environments; it has no effect"
    return SourceRecord(
        proposal.source,
        proposal.kind,
        count,
        p_value,
        normal_score(p_value),
        column if used else None,
        used,
        f"{proposal.source} ({proposal.how}): {what}.",
    )


def _blamed(decision: Decision) -> IntArray | None:
    """Columns left out, that which takes most of the regret away first; None where none is."""
    regret = decision.evidence.regret
    left = np.flatnonzero(~decision.support & np.isfinite(regret))
    return left[np.argsort(-regret[left], kind="stable")] if len(left) else None


def _most_about(tested: TestedSource) -> int | None:
    """The column whose coefficient differs most surely; None where none does by itself."""
    p_values = tested.found.column_p_values
    column = int(np.argmin(p_values)) if len(p_values) else None
    if column is None or p_values[column] * len(p_values) >= THRESHOLDS.alpha:
        return None
    return column


@dataclass(frozen=True)
class AssignedPartition(Partition):
    """Environments that rows carry; rows that do not are placed by how well each fits them."""

    assignment: Assignment
    fits: MixtureParameters

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return self.assignment.n_environments

    @property
    def needs_features(self) -> bool:
        """Rows say themselves where they belong."""
        return False

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, K) probabilities by the regressions of the environments."""
        return self.fits.responsibilities(X, y)

    def of_rows(self, rows: Rows) -> FloatArray:
        """(n, K) as the rows say, where they do."""
        if rows.environments is None and rows.hints is None:
            return self.responsibilities(rows.X, rows.y)
        shares = self.assignment.shares(rows)
        if shares is not None:
            return shares
        codes = self.assignment.codes(rows)
        # Rows that belong to none are spread over all.
        known = np.eye(self.n_environments)[np.maximum(codes, 0)]
        return np.where(codes[:, None] >= 0, known, 1.0 / self.n_environments)


def _partition(rows: RowSource, family: Family, tested: TestedSource) -> Partition:
    """The environments of a source, with a regression in each to place other rows by."""
    assignment = tested.proposal.assignment
    carried = AssignedPartition(assignment, _no_mixture(assignment.n_environments, family))
    cells = tested.proposal.merged.cells
    if family.closed_form:
        fits = moment_fits(cells.moments(family.n_targets))
    else:
        fits = environment_fits(rows, family, carried)
    # A mixture of the environments' own regressions: rows that carry no label are placed by it.
    weights = fits.weight / max(float(fits.weight.sum()), TINY)
    variance = np.ones(len(weights))
    if family.has_variance:
        variance[cells.held] = np.maximum(tested.found.fits.own, TINY)
    return replace(
        carried, fits=MixtureParameters(weights, fits.coef, fits.intercept, variance, family)
    )


def _no_mixture(K: int, family: Family) -> MixtureParameters:
    empty = np.zeros((K, 0))
    return MixtureParameters(np.full(K, 1.0 / K), empty, np.zeros(K), np.ones(K), family)
