"""From rows and what is known of them to a decision, its evidence and its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.core.environments.content import parts, sampled
from hetrisk.core.environments.levels import Environments, Levels, cell_sums, environments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.multiplicity import p_text
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.result import VERDICTS, ColumnEvidence, Source
from hetrisk.core.stable.decision import LEVEL, MOVED, NO_DIFFERENCE, PAYS, Decision, decide
from hetrisk.core.stable.evidence import RowEvidence
from hetrisk.core.stable.homogeneity import each_slope_differs
from hetrisk.core.stable.regressions import Regressions

TEST_ROWS: Budget[int] = 20_000  # that tests are made on, chosen by content
FOLDS: Budget[int] = 5  # resamples: all rows but one of so many parts, again by content

LEFT_OUT, DIFFERENCES, NOTHING, TOO_FEW = VERDICTS


@dataclass(frozen=True)
class Question:
    """What a search is asked.

    Attributes
    ----------
    reach : t in X_t.
    groups : (d,) columns of one group stay or leave together.
    keep : (d,) columns that never leave.
    names : of the columns.
    """

    reach: float
    groups: IntArray
    keep: BoolArray
    names: tuple[str, ...]

    def listed(self, columns: BoolArray) -> str:
        """Names of columns in a sentence; of a large number the first."""
        chosen = [self.names[j] for j in np.flatnonzero(columns)]
        more = f" and {len(chosen) - 5} more" if len(chosen) > 5 else ""
        return ", ".join(chosen[:5]) + more


@dataclass(frozen=True)
class Found:
    """What a search brings back, on standardised rows.

    Attributes
    ----------
    support : (d,) columns that stay.
    verdict : one of `hetrisk.core.result.VERDICTS`; reason : two sentences.
    evidence : per column. Coefficients are on standardised scales.
    sources : every source of environments that was asked.
    stability : (d,) share of resamples in which the same was decided of each column.
    sums : (K, q, q) of z z' in the environments of the source that decided.
    membership : (n, K) shares of rows in these, or (n,) their environments.
    """

    support: BoolArray
    verdict: str
    reason: str
    evidence: tuple[ColumnEvidence, ...]
    sources: tuple[Source, ...]
    stability: FloatArray
    sums: FloatArray
    membership: Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class _Answer:
    """What one source says."""

    environments: Environments
    decision: Decision
    evidence: RowEvidence
    rows: Rows


def search_known(
    rows: RowSource, family: Family, levels: tuple[Levels, ...], question: Question, weight: float
) -> Found:
    """Ask every source; what any of them leaves out is left out.

    ``weight`` is that of all rows. With several sources each is tested at its share of the level.
    """
    sample = sampled(rows, TEST_ROWS, weight)
    level = LEVEL / len(levels)
    answers = [_asked(rows, family, own, question, sample, level) for own in levels]
    # In no order but that of what they show.
    answers.sort(
        key=lambda a: (
            a.decision.support.all(),
            a.decision.p_slopes,
            a.environments.levels.name,
        )
    )
    support = np.all([a.decision.support for a in answers], axis=0)
    first = answers[0]
    stability = _stability(first, question, level)
    verdict = _verdict(first, support)
    return Found(
        support,
        verdict,
        _reason(first, question, support, verdict),
        _evidence(first, question, support, stability),
        tuple(_source(a, question) for a in answers),
        stability,
        first.environments.sums,
        first.environments.membership,
    )


def _asked(
    rows: RowSource,
    family: Family,
    levels: Levels,
    question: Question,
    sample: Rows,
    level: float,
) -> _Answer:
    found = environments(rows, family, levels)
    codes = found.codes(sample)
    evidence = RowEvidence(sample.X, family.targets(sample.y), codes, sample.weight)
    if len(found.names) < 2 or question.keep.all():
        every, nan = np.ones(len(question.groups), dtype=bool), np.nan
        nothing = Decision(every, NO_DIFFERENCE, 1.0, nan * every, nan, nan, nan, every)
        return _Answer(found, nothing, evidence, sample)
    decision = decide(
        found.sums,
        evidence,
        question.reach,
        question.groups,
        question.keep,
        level=level,
        merged=found.merged.merged,
    )
    return _Answer(found, decision, evidence, sample)


def _stability(answer: _Answer, question: Question, level: float) -> FloatArray:
    """(d,) share of resamples in which the same is decided, the same set proposed."""
    evidence, decision, d = answer.evidence, answer.decision, len(question.groups)
    if len(answer.environments.names) < 2:
        return np.ones(d)
    # Thin environments are clusters: the persons of a panel, the days of a month.
    source = answer.environments
    clusters = source.levels.codes(answer.rows) if source.merged.merged else None
    part = parts(answer.rows, FOLDS, clusters)
    Z = np.column_stack([np.ones(len(part)), evidence.X, evidence.Y])
    again = np.zeros(d)
    for fold in range(FOLDS):
        own = (part != fold) & (evidence.environments >= 0)
        some = RowEvidence(
            evidence.X[own], evidence.Y[own], evidence.environments[own], evidence.weight[own]
        )
        codes = some.environments
        sums = cell_sums(Z[own], some.weight, codes, int(codes.max(initial=0)) + 1)
        proposed = [] if decision.proposed.all() else [decision.proposed]
        if (sums[:, 0, 0] > 0).all():
            found = decide(
                sums,
                some,
                question.reach,
                question.groups,
                question.keep,
                level=level,
                candidates=proposed,
                merged=answer.environments.merged.merged,
            )
            again += found.support == decision.support
    return again / FOLDS


def _verdict(answer: _Answer, support: BoolArray) -> str:
    if not support.all():
        return LEFT_OUT
    if len(answer.environments.names) < 2:
        return TOO_FEW
    return NOTHING if answer.decision.why == NO_DIFFERENCE else DIFFERENCES


def _reason(answer: _Answer, question: Question, support: BoolArray, verdict: str) -> str:
    """Two sentences whose numbers are the rule."""
    decision, K = answer.decision, len(answer.environments.names)
    if verdict == TOO_FEW:
        return (
            f"The {len(answer.rows)} rows make {K} environment that holds enough of them for "
            f"{len(support)} columns: nothing can be compared. All columns stay."
        )
    if verdict == NOTHING:
        return (
            f"The regression of the target on all columns is the same in the {K} environments, as "
            f"far as the rows tell ({p_text(decision.p_slopes)}). All columns stay."
        )
    opening = (
        f"The regression of the target differs between the {K} environments "
        f"({p_text(decision.p_slopes)})"
    )
    if verdict == LEFT_OUT:
        out = question.listed(~support)
        return (
            f"{opening}, and with {out} left out {decision.regret_left:.0%} of that is left. "
            + (_why_left(decision, question))
        )
    return f"{opening}. {_why_stays(decision, question)}"


def _why_left(decision: Decision, question: Question) -> str:
    risk = f"{decision.risk:.3g} instead of {decision.risk_plain:.3g}"
    if decision.why == PAYS:
        return f"That lowers the loss at reach {question.reach:g} (X_t) to {risk}."
    p = float(np.nanmax(decision.p_columns[~decision.support]))
    return (
        "It is these columns that moved, not the target: given those that stay, each differs "
        f"itself between environments (largest {p_text(p)}); the loss at reach {question.reach:g} "
        f"is {risk} where no environment is worse than those seen."
    )


def _why_stays(decision: Decision, question: Question) -> str:
    if decision.proposed.all():
        return "No columns left out take most of that away: all stay."
    out = question.listed(~decision.proposed)
    return (
        f"It would go with {out} left out, but that raises the loss at reach {question.reach:g} "
        f"(X_t) from {decision.risk_plain:.3g} to {decision.risk:.3g}, and these columns are not "
        "what moved: the slope of a cause differs, and its mean is the best answer."
    )


def _evidence(
    answer: _Answer, question: Question, support: BoolArray, stability: FloatArray
) -> tuple[ColumnEvidence, ...]:
    decision, evidence, d = answer.decision, answer.evidence, len(support)
    p_slope, coef = np.ones(d), np.zeros((0, d))
    if len(answer.environments.names) > 1:
        each = [
            each_slope_differs(evidence.X, y, evidence.environments, evidence.weight)
            for y in evidence.Y.T
        ]
        p_slope = np.minimum(len(each) * np.min(each, axis=0), 1.0)
        fit = Regressions.on(answer.environments.sums, np.ones(d, dtype=bool))
        coef = fit.coef[:-1, 1:, -1]
    return tuple(
        ColumnEvidence(
            question.names[j],
            bool(support[j]),
            tuple(coef[:, j].tolist()),
            float(p_slope[j]),
            float(decision.p_columns[j]),
            float(stability[j]),
            _column_reason(j, decision, question, support, float(p_slope[j])),
        )
        for j in range(d)
    )


def _column_reason(
    j: int, decision: Decision, question: Question, support: BoolArray, p_slope: float
) -> str:
    if question.keep[j]:
        return "Stays: asked for."
    if not support[j]:
        how = {PAYS: "leaving it out lowers the loss", MOVED: "the column itself moved"}
        p = decision.p_columns[j]
        return f"Left out: {how.get(decision.why, 'another source')}" + (
            "." if np.isnan(p) else f" ({p_text(p)})."
        )
    if not decision.proposed[j]:
        return "Stays: it differs, but leaving it out would not help."
    return f"Stays: nothing is gained without it (its slope: {p_text(p_slope)})."


def _source(answer: _Answer, question: Question) -> Source:
    decision = answer.decision
    left = question.listed(~decision.support)
    said = {
        NO_DIFFERENCE: "one regression",
        PAYS: f"without {left} the loss is lower",
        MOVED: f"{left} moved",
    }.get(decision.why, "they differ, and nothing is gained by leaving columns out")
    return Source(
        answer.environments.levels.name,
        True,
        len(answer.environments.names),
        decision.p_slopes,
        not decision.support.all(),
        f"{len(answer.environments.names)} environments ({p_text(decision.p_slopes)}): {said}.",
    )
