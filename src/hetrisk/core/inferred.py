"""Environments that nobody named: ask the rows, price the answer, put it into words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hetrisk.core.numerics.cells import cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.multiplicity import normal_score
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, IntArray, RowSource
from hetrisk.core.pricing import (
    SoftAssignment,
    one_environment,
    plain_result,
    priced,
    too_few,
)
from hetrisk.core.reach.heterogeneity import environments_of
from hetrisk.core.reach.regret import Environments, says_nothing
from hetrisk.core.reach.sentences import ASKED_FOR, EMPTY, listed, out_of, unsteady
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
from hetrisk.core.sources.proposal import HIDDEN, VISIBLE
from hetrisk.core.sources.question import Answer, Finding
from hetrisk.core.sources.questions import ask, leaves_again


def search_inferred(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    level: float,
) -> SearchResult:
    """Ask the rows, all tests together at ``level``, and price the answer."""
    keep = settings.kept(rows.n_features)
    answer = ask(rows, family, groups, keep, level)
    if answer.verdict == UNSEARCHED:
        return plain_result(rows, family, groups, settings, UNSEARCHED, too_few(rows))
    findings, null = _findings(answer, rows, family, keep)
    found = priced(rows, family, groups, settings, findings, null)
    refused = _refused(answer, found, groups, settings) or _empty(answer, findings, rows, family)
    if refused is None and _as_a_set(answer).any():
        refused = _asked_again(rows, family, answer, groups, settings, level)
    if refused is None:
        return replace(found, reason=_answer_reason(answer, found, groups, settings))
    verdict, why = refused
    nothing = _all_kept(rows, family, answer, findings, verdict)
    plain = priced(rows, family, groups, settings, nothing)
    return replace(plain, reason=f"{_sentences(answer)} {why}")


def _findings(
    answer: Answer, rows: RowSource, family: Family, keep: BoolArray
) -> tuple[Findings, tuple[Environments, ...]]:
    """The answer as what a search found, and what chance would show in its environments."""
    partition, null = _main_partition(answer, rows, family)
    found = Findings(
        support=~answer.leave,
        gates=(~answer.leave).astype(np.float64),
        partition=partition,
        verdict=answer.verdict,
        reason="",
        reasons=tuple(_why(answer, j, keep) for j in range(len(answer.leave))),
        history=(),
        p_value=answer.p_value if answer.findings else None,
        assumed=_assumed(answer),
        sources=tuple(_question_record(f, f.against & answer.leave) for f in answer.findings),
    )
    return found, null


def _refused(
    answer: Answer, found: SearchResult, groups: IntArray, settings: SearchSettings
) -> tuple[str, str] | None:
    """The verdict, and why, where columns that something speaks against stay; else None.

    They leave if that pays within the reach and holds on other rows. What leaves by assumption has
    no environments to be priced in.
    """
    if answer.verdict != INVARIANT or _unpriced(answer):
        return None
    if found.curve.break_even > settings.reach:
        return HOMOGENEOUS, _not_worth_it(answer, found, groups, settings)
    doubt = _unsteady(answer, found, groups, settings)
    if doubt:
        return UNSTABLE, f"But {doubt} The model is plain ERM on all columns."
    return None


def _empty(
    answer: Answer, findings: Findings, rows: RowSource, family: Family
) -> tuple[str, str] | None:
    """The same where what stays predicts nothing."""
    if answer.verdict != INVARIANT:
        return None
    cells = cell_moments(rows, family, SoftAssignment(findings.partition), 1)
    if not says_nothing(environments_of(cells, family.n_targets), findings.support):
        return None
    return UNSTABLE, f"But without them {EMPTY}. The model is plain ERM on all columns."


def _asked_again(
    rows: RowSource,
    family: Family,
    answer: Answer,
    groups: IntArray,
    settings: SearchSettings,
    level: float,
) -> tuple[str, str] | None:
    """The same where columns that leave as a set do not do so again, some of the rows missing."""
    keep, together = settings.kept(rows.n_features), _as_a_set(answer)
    doubted = together & ~leaves_again(rows, family, groups, keep, level, together)
    if not doubted.any():
        return None
    return UNSTABLE, (
        "But the answer does not hold on other rows: asked twice of four fifths of them, the same "
        f"questions never leave out {listed(doubted, groups, settings)}. The model is plain ERM on "
        "all columns."
    )


WHY_KEPT = {
    HOMOGENEOUS: "Kept: leaving it out does not pay within the reach.",
    UNSTABLE: "Kept: that it leaves does not hold on other rows.",
}


def _all_kept(
    rows: RowSource, family: Family, answer: Answer, findings: Findings, verdict: str
) -> Findings:
    """The same findings, acted upon in no way."""
    full, kept = np.ones_like(findings.support), WHY_KEPT[verdict]
    return replace(
        findings,
        verdict=verdict,
        support=full,
        gates=full.astype(np.float64),
        partition=one_environment(rows, family),
        reasons=tuple(
            kept if left else why for left, why in zip(answer.leave, findings.reasons, strict=True)
        ),
        sources=tuple(replace(source, used=False) for source in findings.sources),
        assumed=np.zeros_like(full),
    )


def _unpriced(answer: Answer) -> bool:
    """Whether something leaves by assumption: no environments show what that is worth."""
    acting = [f for f in answer.findings if (f.against & answer.leave).any()]
    return any(f.assumption for f in acting)


def _as_a_set(answer: Answer) -> BoolArray:
    """(d,) columns that leave as a set: those that hidden slopes speak against.

    Only a set can be the wrong one. Effects and proxies are tested one by one: with a test of its
    own, a column needs no second opinion.
    """
    hidden = [f.against & answer.leave for f in answer.findings if f.kind == HIDDEN]
    together: BoolArray = np.any([np.zeros_like(answer.leave), *hidden], axis=0)
    return together


def _unsteady(
    answer: Answer, found: SearchResult, groups: IntArray, settings: SearchSettings
) -> str:
    """What does not hold on other rows, where columns leave as a set."""
    left = _as_a_set(answer)
    if not left.any():
        return ""
    where = f"in {found.agreement * found.n_resamples:.0f} of {found.n_resamples} resamples"
    return unsteady(where, found.agreement, left, found.stability, groups, settings)


def _not_worth_it(
    answer: Answer, found: SearchResult, groups: IntArray, settings: SearchSettings
) -> str:
    """Why columns that something speaks against stay."""
    even, left = found.curve.break_even, listed(answer.leave, groups, settings)
    when = f"from reach {even:.2g} on, beyond the {settings.reach:g} asked for"
    if np.isinf(even):
        when = "at no reach"
    return f"Leaving out {left} would pay {when}: plain ERM on all columns."


def _sentences(answer: Answer) -> str:
    return " ".join(f.sentence for f in answer.findings if (f.against & answer.leave).any())


def _main_partition(
    answer: Answer, rows: RowSource, family: Family
) -> tuple[Partition, tuple[Environments, ...]]:
    """The environments that speak against most columns, and what chance would show in them."""
    acting = [f for f in answer.findings if f.partitions and f.against.any()]
    if answer.verdict != INVARIANT or not acting:
        return one_environment(rows, family), ()
    first = max(acting, key=lambda f: int(f.against.sum()))
    return first.partitions[0], first.chance[0] if first.chance else ()


def _assumed(answer: Answer) -> BoolArray:
    assumed = np.zeros_like(answer.leave)
    for finding in answer.findings:
        if finding.assumption:
            assumed |= finding.against & answer.leave
    return assumed


def _why(answer: Answer, j: int, keep: BoolArray) -> str:
    """What became of a column, in a sentence."""
    if keep[j]:
        return ASKED_FOR
    against = [f for f in answer.findings if f.against[j]]
    if not against:
        return "Kept: nothing speaks against it."
    by = "an assumption" if against[0].assumption else f"p = {against[0].column_p_values[j]:.2g}"
    if answer.leave[j]:
        return f"Left out: {against[0].name} ({by})."
    return f"Kept for want of a safe set: {against[0].name} speaks against it ({by})."


def _question_record(finding: Finding, left: BoolArray) -> SourceRecord:
    """A question as a source that was looked at."""
    columns = np.flatnonzero(left if left.any() or finding.kept is None else finding.kept)
    most = int(columns[np.argmin(finding.column_p_values[columns])]) if len(columns) else None
    return SourceRecord(
        finding.name,
        HIDDEN if finding.kind == HIDDEN else VISIBLE,
        max((p.n_environments for p in finding.partitions), default=1),
        finding.p_value,
        normal_score(finding.p_value),
        most,
        bool(left.any()),
        finding.sentence,
    )


def _answer_reason(
    answer: Answer, found: SearchResult, groups: IntArray, settings: SearchSettings
) -> str:
    """The verdict in words: what was left out and at what price, or why nothing was."""
    kept = settings.kept(len(answer.leave))
    among = " among the columns that may leave" if kept.any() else ""
    with_kept = " that holds those to be kept" if kept.any() else ""
    if answer.verdict == HOMOGENEOUS:
        asked = ", ".join(f.name for f in answer.findings)
        nothing = f"Nothing usable was found{among} (asked: {asked})."
        return f"{nothing} The model is plain ERM on all columns."
    if answer.verdict == UNSTABLE:
        said = " ".join(f.sentence for f in answer.findings if f.against.any() or not f.safe)
        return f"{said} No set of columns{with_kept} is safe."
    price = found.curve.error[0] / max(found.curve.error_erm[0], TINY) - 1.0
    assumed = " That is an assumption, not a test." if _assumed(answer).any() else ""
    return (
        f"{out_of(answer.leave, np.ones_like(answer.leave), groups, settings)}. "
        f"{_sentences(answer)}"
        f"{assumed} Where nothing shifts, that costs {max(price, 0.0):.1%} more error; "
        f"{_pays(found)}."
    )


def _pays(found: SearchResult) -> str:
    """From which reach on, as far as environments can be told apart that nobody named."""
    if np.isinf(found.curve.break_even):
        return "how far a shift must go for that to pay, these rows do not show"
    return f"it pays from reach {found.curve.break_even:.2g} on"
