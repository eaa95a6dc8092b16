"""The default search: sources propose partitions, regret decides, the result says the verdict.

Environments that the user names are used as they are, and no others are looked for. Hints are
tested with a correction for how many there are; those along which something changes beyond chance
are used together. With neither, or where no hint speaks, the rows themselves are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.cells import Assignment
from hetrisk.core.numerics.comparison import environment_fits, moment_fits
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.multiplicity import holm
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.paper import loop
from hetrisk.core.pricing import error_unit, one_environment, plain_result, priced, step
from hetrisk.core.reach.decision import Decision, decide, listed
from hetrisk.core.reach.heterogeneity import HIGHEST_SCORE, Heterogeneity, heterogeneity
from hetrisk.core.reach.regret import Environments, combined
from hetrisk.core.reach.settings import SETTINGS
from hetrisk.core.result import (
    HOMOGENEOUS,
    INVARIANT,
    UNSEARCHED,
    UNSTABLE,
    Findings,
    SearchResult,
    SearchSettings,
    SourceRecord,
)
from hetrisk.core.sources.ask import ask
from hetrisk.core.sources.base import Answer, Finding
from hetrisk.core.sources.hinted import hinted
from hetrisk.core.sources.named import named
from hetrisk.core.sources.proposal import HIDDEN, VISIBLE, Proposal
from hetrisk.core.sources.sets import EnvironmentGrams

FEWEST_ROWS = 40  # below which, or with fewer than 3 a coefficient, nothing is looked for


@dataclass(frozen=True)
class Tested:
    """A source and the partition of it that differs most; ``p_value`` is corrected."""

    proposal: Proposal
    found: Heterogeneity
    p_value: float
    used: bool


def discover(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> SearchResult:
    """Search standardised rows for relations that differ between environments."""
    if rows.n_rows < max(FEWEST_ROWS, 3 * (1 + rows.n_features)):
        return plain_result(rows, family, groups, settings, UNSEARCHED, _too_few(rows))
    tested = _test_sources(rows, family, settings)
    used = [t for t in tested if t.used]
    if used:
        return _decided(rows, family, groups, settings, tested, used)
    if settings.environments is not None:
        return _decided(rows, family, groups, settings, tested, tested)
    found = ask_the_rows(rows, family, groups, settings)
    records = tuple(_record(t, settings) for t in tested)
    return replace(found, sources=(*records, *found.sources))


def discover_by_gates(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> SearchResult:
    """Search by the joint loop of the paper, and price what it found."""
    return priced(rows, family, groups, settings, loop.discover(rows, family, groups, settings))


def discover_to_the_letter(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> SearchResult:
    """Search as `discover_by_gates`, with nothing added to the paper, and price what it found."""
    found = loop.discover(rows, family, groups, settings, literal=True)
    return priced(rows, family, groups, settings, found)


def ask_the_rows(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> SearchResult:
    """Environments that nobody named: ask the rows, and price the answer."""
    d = rows.n_features
    answer = ask(rows, family, groups, settings.kept(d))
    if answer.verdict == UNSEARCHED:
        return plain_result(rows, family, groups, settings, UNSEARCHED, _too_few(rows))
    partition, null = _blamed(answer, rows, family)
    findings = Findings(
        support=~answer.leave,
        gates=(~answer.leave).astype(np.float64),
        partition=partition,
        verdict=answer.verdict,
        reason="",
        reasons=tuple(_why(answer, j) for j in range(d)),
        history=(),
        p_value=answer.p_value if answer.findings else None,
        assumed=_assumed(answer),
        sources=tuple(_asked(f, f.against & answer.leave) for f in answer.findings),
    )
    found = priced(rows, family, groups, settings, findings, null)
    return replace(found, reason=_answer_reason(answer, found, groups, settings))


def _blamed(
    answer: Answer, rows: RowSource, family: Family
) -> tuple[Partition, tuple[Environments, ...]]:
    """The environments that speak against most columns, and what chance would show in them."""
    speaking = [f for f in answer.findings if f.partitions and f.against.any()]
    if answer.verdict != INVARIANT or not speaking:
        return one_environment(rows, family), ()
    first = max(speaking, key=lambda f: int(f.against.sum()))
    null = first.chance[0] if first.chance else ()
    return first.partitions[0], tuple(_environments(grams) for grams in null)


def _environments(grams: EnvironmentGrams) -> Environments:
    K = len(grams.rows)
    return Environments(
        gram=grams.gram,
        rows=grams.rows,
        share=grams.share,
        partition=np.zeros(K, dtype=np.int64),
        pooled=np.tensordot(grams.share, grams.gram, axes=1),
        n_rows=float(grams.rows.sum()),
        n_targets=1,
        phi=np.ones(K),
    )


def _assumed(answer: Answer) -> BoolArray:
    assumed = np.zeros_like(answer.leave)
    for finding in answer.findings:
        if finding.assumption:
            assumed |= finding.against & answer.leave
    return assumed


def _why(answer: Answer, j: int) -> str:
    """What became of a column, in a sentence."""
    against = [f for f in answer.findings if f.against[j]]
    if not against:
        return "Kept: nothing speaks against it."
    by = "an assumption" if against[0].assumption else f"p = {against[0].column_p_values[j]:.2g}"
    if answer.leave[j]:
        return f"Left out: {against[0].name} ({by})."
    return f"Kept for want of a safe set: {against[0].name} speaks against it ({by})."


def _asked(finding: Finding, left: BoolArray) -> SourceRecord:
    """A question as a source that was looked at."""
    columns = np.flatnonzero(left)
    most = int(columns[np.argmin(finding.column_p_values[columns])]) if len(columns) else None
    return SourceRecord(
        finding.name,
        HIDDEN if finding.kind == HIDDEN else VISIBLE,
        max((p.n_environments for p in finding.partitions), default=1),
        finding.p_value,
        float(np.clip(norm.isf(finding.p_value), -HIGHEST_SCORE, HIGHEST_SCORE)),
        most,
        bool(left.any()),
        finding.sentence,
    )


def _answer_reason(
    answer: Answer, found: SearchResult, groups: IntArray, settings: SearchSettings
) -> str:
    """The verdict in words: what was left out and at what price, or why nothing was."""
    if answer.verdict == HOMOGENEOUS:
        asked = ", ".join(f.name for f in answer.findings)
        return f"Nothing usable was found (asked: {asked}). The model is plain ERM on all columns."
    if answer.verdict == UNSTABLE:
        said = " ".join(f.sentence for f in answer.findings if f.against.any() or not f.safe)
        return f"{said} No set of columns is safe."
    left, together = (len(np.unique(some)) for some in (groups[answer.leave], groups))
    price = found.curve.error[0] / max(found.curve.error_erm[0], TINY) - 1.0
    said = " ".join(f.sentence for f in answer.findings if (f.against & answer.leave).any())
    assumed = " That is an assumption, not a test." if _assumed(answer).any() else ""
    return (
        f"{left} of {together} columns left out ({listed(answer.leave, groups, settings)}). {said}"
        f"{assumed} Where nothing shifts, that costs {max(price, 0.0):.1%} more error; "
        f"{_pays(found)}."
    )


def _pays(found: SearchResult) -> str:
    """From which reach on, as far as environments can be told apart that nobody named."""
    if np.isinf(found.curve.break_even):
        return "how far a shift must go for that to pay, these rows do not show"
    return f"it pays from reach {found.curve.break_even:.2g} on"


def _too_few(rows: RowSource) -> str:
    needed = max(FEWEST_ROWS, 3 * (1 + rows.n_features))
    return (
        f"Not searched: {rows.n_rows} rows are too few for {rows.n_features} columns; at least "
        f"{needed} are needed. The model is plain ERM on all columns."
    )


def _test_sources(rows: RowSource, family: Family, settings: SearchSettings) -> list[Tested]:
    """Test every source: the best of its partitions, corrected for their number (Bonferroni)
    and, over the sources, by Holm's step-down rule.
    """
    if settings.environments is not None:
        proposals = [[named(rows, family, settings.environments)]]
    else:
        proposals = [hinted(rows, family, column) for column in settings.hints]
    best: list[tuple[Proposal, Heterogeneity, float]] = []
    for several in proposals:
        found = [heterogeneity(p.merged.cells, family.n_targets) for p in several]
        if found:
            first = int(np.argmin([f.p_value for f in found]))
            p_value = min(1.0, len(found) * found[first].p_value)
            best.append((several[first], found[first], p_value))
    corrected = holm(np.array([p for _, _, p in best]))
    return [
        Tested(proposal, found, float(p), bool(p < SETTINGS.alpha))
        for (proposal, found, _), p in zip(best, corrected, strict=True)
    ]


def _decided(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    tested: list[Tested],
    used: list[Tested],
) -> SearchResult:
    environments = combined([t.found.environments for t in used])
    names = tuple(name for t in used for name in _held_names(t))
    p_value = np.min([t.found.column_p_values for t in used], axis=0)
    decision = decide(
        [t.proposal.merged.cells for t in used],
        environments,
        np.minimum(p_value * len(used), 1.0),
        names,
        groups,
        settings,
        error_unit(family),
        chance=None if used[0].used else used[0].p_value,
    )
    first = min(used, key=lambda t: t.p_value)
    return SearchResult(
        support=decision.support,
        gates=decision.support.astype(np.float64),
        partition=_partition(rows, family, first),
        environment_names=first.proposal.names,
        evidence=decision.evidence,
        sources=tuple(_record(t, settings) for t in tested),
        curve=decision.curve,
        stability=decision.stability,
        n_resamples=SETTINGS.resamples,
        leave_one_out=decision.leave_one_out,
        verdict=decision.verdict,
        reason=decision.reason,
        history=(step(decision.support, len(environments.rows), decision.curve, settings),),
        coef=decision.coef[1:, 0] if family.closed_form else None,
        intercept=float(decision.coef[0, 0]) if family.closed_form else None,
        moments=first.proposal.merged.cells.moments(1) if family.closed_form else None,
        directions=decision.coef[1:] if _shrunk(decision.verdict, settings) else None,
        offsets=decision.coef[0] if _shrunk(decision.verdict, settings) else None,
        row_factors=_row_factors(decision, environments, used, settings.reach),
    )


def _shrunk(verdict: str, settings: SearchSettings) -> bool:
    return settings.form == "directions" and verdict == INVARIANT


def _held_names(tested: Tested) -> tuple[str, ...]:
    held = tested.proposal.merged.cells.held
    return tuple(n for n, h in zip(tested.proposal.names, held, strict=True) if h)


def _record(tested: Tested, settings: SearchSettings) -> SourceRecord:
    column = int(np.argmin(tested.found.column_p_values))
    count = len(tested.found.environments.rows)
    proposal = tested.proposal
    if tested.used:
        sentence = (
            f"{proposal.source} ({proposal.how}): {count} environments differ beyond chance, most "
            f"about {settings.name(column)}."
        )
    else:
        sentence = (
            f"{proposal.source} ({proposal.how}): nothing changes beyond chance between its "
            f"{count} environments; it has no effect."
        )
    return SourceRecord(
        proposal.source,
        proposal.kind,
        count,
        tested.p_value,
        float(np.clip(norm.isf(tested.p_value), -HIGHEST_SCORE, HIGHEST_SCORE)),
        column if tested.used else None,
        tested.used,
        sentence,
    )


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


def _partition(rows: RowSource, family: Family, tested: Tested) -> Partition:
    """The environments of a source, with a regression in each to place other rows by."""
    assignment = tested.proposal.assignment
    carried = AssignedPartition(assignment, _no_mixture(assignment.n_environments, family))
    cells = tested.proposal.merged.cells
    if family.closed_form:
        fits = moment_fits(cells.moments(family.n_targets))
    else:
        fits = environment_fits(rows, family, carried)
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


@dataclass(frozen=True)
class RowFactors:
    """How many times a row counts: 1 + k^2 w_e / share_e, summed over the partitions."""

    assignments: tuple[Assignment, ...]
    extra: tuple[FloatArray, ...]

    def __call__(self, rows: Rows) -> FloatArray:
        """(n,) factors."""
        factor = np.ones(len(rows))
        for assignment, extra in zip(self.assignments, self.extra, strict=True):
            shares = assignment.shares(rows)
            if shares is None:
                factor += np.append(extra, 0.0)[assignment.codes(rows)]
            else:
                factor += shares @ extra
        return factor


def _row_factors(
    decision: Decision, environments: Environments, used: list[Tested], reach: float
) -> Callable[[Rows], FloatArray] | None:
    if not decision.multipliers.any():
        return None
    each = reach**2 * decision.multipliers / environments.share
    extra = []
    for i, tested in enumerate(used):
        held = tested.proposal.merged.cells.held
        factors = np.zeros(len(held))
        factors[held] = each[environments.partition == i]
        extra.append(factors)
    return RowFactors(tuple(t.proposal.assignment for t in used), tuple(extra))
