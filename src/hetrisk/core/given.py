"""Environments that rows carry: in those that differ, regret decides.

Sources whose regressions differ beyond chance decide together; else those along which an effect of
y follows from it in another way. Of each source the partition with the most regret is heard first,
and the next where it leaves nothing out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.cells import Assignment, CellMoments
from hetrisk.core.numerics.environment_fits import environment_fits, moment_fits
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.pricing import error_unit, step
from hetrisk.core.reach.brier import BrierScores
from hetrisk.core.reach.decision import Decision, Measure, decide
from hetrisk.core.reach.forms import FORMS
from hetrisk.core.reach.regret import combined
from hetrisk.core.reach.resampling import RESAMPLES
from hetrisk.core.reach.rules import Tests
from hetrisk.core.result import INVARIANT, SearchResult, SearchSettings
from hetrisk.core.sources.levels import each_by_itself
from hetrisk.core.sources.proposal import NAMED, Proposal
from hetrisk.core.sources.tested import TestedSource, source_records


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
        pooled=_pooled(surest.proposal) if linear else None,
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
    """Moments of (x, y) over the rows of all levels, those in no environment among them."""
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
        [levels for t in used if (levels := _levels(t)) is not None],
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


def _levels(tested: TestedSource) -> CellMoments | None:
    """The levels that the environments of a source were merged from, if they were."""
    levels = each_by_itself(tested.proposal.levels)
    if levels is None or len(levels.weight) == int(tested.proposal.merged.cells.held.sum()):
        return None
    return levels


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


def _blamed(decision: Decision) -> IntArray | None:
    """Columns left out, that which takes most of the regret away first; None where none is."""
    regret = decision.evidence.regret
    left = np.flatnonzero(~decision.support & np.isfinite(regret))
    return left[np.argsort(-regret[left], kind="stable")] if len(left) else None


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
        if rows.environments is None and rows.aside is None:
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
