"""Environments that nobody named, looked for in the rows themselves.

A column that follows from the target predicts well until its mechanism changes. So of every column
that does (`roles`) it is asked whether its mechanism is the same in all rows: whether its spread
about the target follows the target alone (`mechanism`), and whether, given the target, it is one
population (`score`). A proxy for a curve of the causes is asked the same, given the curve. What is
asked of each is a pair (column | given), one p-value, at one level (Holm). Columns leave where H0
is rejected and what that costs is no more than the reach allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.environments.content import parts, sampled
from hetrisk.core.environments.levels import design
from hetrisk.core.environments.memberships import Memberships
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.multiplicity import holm, p_text
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.result import VERDICTS, ColumnEvidence, Source
from hetrisk.core.stable.decision import with_copies
from hetrisk.core.stable.flexible import flexible_mean
from hetrisk.core.stable.mechanism import mechanisms_differ
from hetrisk.core.stable.regressions import Regressions
from hetrisk.core.stable.roles import bent, effects
from hetrisk.core.stable.score import Score, two_slope_score
from hetrisk.core.stable.search import FOLDS, Found, Question
from hetrisk.core.stable.two_slopes import FAR

# Level of all tests of one table together: between 0.01, at which one draw in ten of the weakest
# published setting is missed, and the conventional 0.05, at which real tables are harmed.
LEVEL = 0.02
# Factor by which the error may rise, beyond one, for each unit of reach: what hidden environments
# would cost is not seen. Designs rise by 0.1 to 1.5; columns that all but repeat y by more.
RISE = 1.5
QUESTION_ROWS: Budget[int] = 4_000  # that questions are asked of, chosen by content
ROWS_A_COLUMN: Budget[int] = 5  # below which, of eight columns at least, nothing is asked
NAMES = ("effects of the target", "copies of the label")

LEFT_OUT, DIFFERENCES, NOTHING, TOO_FEW = VERDICTS


@dataclass(frozen=True)
class _Asked:
    """What was asked of the columns that follow from the target (or from its curve).

    Attributes
    ----------
    columns : (m,) them.
    p_values : (m,) of one mechanism: the smaller one, where two are asked, doubled.
    by_slope : (m,) whether two slopes speak louder than the spread.
    scores : of two slopes; None where not asked.
    """

    columns: IntArray
    p_values: FloatArray
    by_slope: BoolArray
    scores: tuple[Score | None, ...]


def search_inferred(
    rows: RowSource, family: Family, question: Question, weight: float, copies: bool
) -> Found:
    """Ask the rows; ``copies`` says that columns which repeat a label leave by assumption."""
    sample = sampled(rows, QUESTION_ROWS, weight)
    d = rows.n_features
    if len(sample) < ROWS_A_COLUMN * max(d, 8) or question.keep.all():
        return _found(sample, family, question, None, np.ones(d, dtype=bool), "")
    Z = design(sample, family)
    question = replace(question, groups=with_copies(question.groups, (Z.T * sample.weight) @ Z))
    asked = _ask(sample, family, question.groups)
    support = _without(question, asked.columns[holm(asked.p_values) <= LEVEL])
    assumed = ""
    if copies and not family.closed_form:
        repeats = _copies(sample, family, asked.columns)
        if len(repeats):
            support &= _without(question, repeats)
            assumed = question.listed(~support)
    return _found(sample, family, question, asked, support, assumed)


def _ask(sample: Rows, family: Family, groups: IntArray) -> _Asked:
    """Recognise effects and proxies, and test the mechanism of each."""
    X, w, numbers = sample.X, sample.weight, family.closed_form
    basis = family.mean_basis(sample.y, FAR)
    effect = effects(X, basis, groups, w)
    given = {int(j): sample.y for j in np.flatnonzero(effect)}
    if numbers:
        curve = flexible_mean(X, sample.y, w)
        proxy = effects(X, np.column_stack([basis, bent(curve)]), groups, w) & ~effect
        given |= {int(j): curve for j in np.flatnonzero(proxy)}
    columns = np.array(sorted(given), dtype=np.int64)
    if not len(columns):
        return _Asked(columns, np.ones(0), np.zeros(0, dtype=bool), ())
    known = np.column_stack([np.ones(len(sample)), family.spread_basis(sample.y, FAR)])
    spread = mechanisms_differ(X, known, columns, groups, w)
    # Of a proxy the spread about the target says nothing: it does not follow from the target.
    spread[~effect[columns]] = 1.0
    scores = tuple(_score(given[int(j)], X[:, j], w) if numbers else None for j in columns)
    slope = np.array([1.0 if s is None else s.p_value for s in scores])
    tests = effect[columns] + np.array([s is not None for s in scores])
    p_values = np.minimum(np.maximum(tests, 1) * np.minimum(spread, slope), 1.0)
    return _Asked(columns, p_values, slope < spread, scores)


def _score(given: FloatArray, column: FloatArray, weight: FloatArray) -> Score | None:
    """The score of two slopes; None for two values, which have no spread to be asked about."""
    low, high = column.min(), column.max()
    if np.all((column == low) | (column == high)):
        return None
    return two_slope_score(given[:, None], column, weight)


def _without(question: Question, columns: IntArray) -> BoolArray:
    """(d,) what stays when columns leave with their groups, but for those to be kept."""
    gone = np.isin(question.groups, question.groups[columns]) & ~question.keep
    return np.asarray(~gone, dtype=bool)


def _copies(sample: Rows, family: Family, columns: IntArray) -> IntArray:
    """Effects of a label, the strongest first, until one says more of it than all that stay."""
    share, targets = sample.weight / sample.weight.sum(), family.targets(sample.y)
    X, Y = sample.X - share @ sample.X, targets - share @ targets
    own = np.outer(share @ X**2, share @ Y**2)
    told = (((share[:, None] * X).T @ Y) ** 2 / np.maximum(own, TINY)).max(axis=1)
    order = columns[np.argsort(-told[columns], kind="stable")]
    for count in range(1, len(order) + 1):
        stay = np.setdiff1d(np.arange(X.shape[1]), order[:count])
        if told[order[count - 1]] > told[stay].max(initial=0.0):
            return order[:count]
    return order[:0]


def _found(
    sample: Rows,
    family: Family,
    question: Question,
    asked: _Asked | None,
    support: BoolArray,
    assumed: str,
) -> Found:
    """Dispose of what was found, and put it into words."""
    Z, d = design(sample, family), len(support)
    pooled = (Z.T * sample.weight) @ Z
    every = np.ones(d, dtype=bool)
    proposed, rise = support, _rise(pooled, support)
    dear = rise > 1.0 + RISE * question.reach
    if dear:
        support = every
    shares = _environments(asked, proposed, len(sample))
    sums = np.einsum("nk,ni,nj->kij", shares * sample.weight[:, None], Z, Z, optimize=True)
    verdict = LEFT_OUT if not support.all() else NOTHING
    verdict = TOO_FEW if asked is None else DIFFERENCES if dear else verdict
    stability = _stability(sample, asked, support)
    p_columns = np.full(d, np.nan)
    if asked is not None:
        p_columns[asked.columns] = asked.p_values
    reason = _reason(sample, question, asked, proposed, rise, verdict, assumed)
    coef = Regressions.on(sums, every).coef[:-1, 1:, -1]
    evidence = tuple(
        ColumnEvidence(
            question.names[j],
            bool(support[j]),
            tuple(coef[:, j].tolist()) if len(coef) > 1 else (),
            np.nan,
            float(p_columns[j]),
            float(stability[j]),
            _column_reason(j, question, p_columns, support, proposed),
        )
        for j in range(d)
    )
    source = Source(
        NAMES[1] if assumed else NAMES[0],
        False,
        len(sums),
        float(np.nanmin(p_columns)) if np.isfinite(p_columns).any() else 1.0,
        not support.all(),
        reason,
    )
    return Found(
        support,
        verdict,
        reason,
        evidence,
        (source,) if asked is not None else (),
        stability,
        sums,
        Memberships.of(sums, family, d),
    )


def _rise(pooled: FloatArray, support: BoolArray) -> float:
    """Mean squared error without the columns, over that with all."""
    if support.all():
        return 1.0
    fits = [Regressions.on(pooled[None], s).rss[-1] for s in (support, np.ones_like(support))]
    return float(fits[0] / max(float(fits[1]), TINY))


def _environments(asked: _Asked | None, support: BoolArray, n: int) -> FloatArray:
    """(n, K) shares: by the slope of the plainest column that leaves, where slopes speak."""
    one = np.ones((n, 1))
    if asked is None or support.all():
        return one
    plain = [
        (p, j)
        for j, (column, p) in enumerate(zip(asked.columns, asked.p_values, strict=True))
        if not support[column] and asked.by_slope[j]
    ]
    if not plain:
        return one
    score = asked.scores[min(plain)[1]]
    assert score is not None
    return np.column_stack([1.0 - score.second, score.second])


def _stability(sample: Rows, asked: _Asked | None, support: BoolArray) -> FloatArray:
    """(d,) share of parts of the rows, by content, in which two slopes gain; one elsewhere."""
    stability = np.ones(len(support))
    if asked is None or support.all():
        return stability
    part = parts(sample, FOLDS)
    for column, by_slope, score in zip(asked.columns, asked.by_slope, asked.scores, strict=True):
        if by_slope and score is not None and not support[column]:
            gain = np.bincount(part, score.gain * sample.weight, FOLDS)
            stability[column] = float((gain > 0).mean())
    return stability


def _reason(
    sample: Rows,
    question: Question,
    asked: _Asked | None,
    proposed: BoolArray,
    rise: float,
    verdict: str,
    assumed: str,
) -> str:
    """Two sentences whose numbers are the rule."""
    if asked is None:
        return (
            f"The {len(sample)} rows are too few to look for environments among "
            f"{len(proposed)} columns. All columns stay."
        )
    count = len(asked.columns)
    p = float(asked.p_values.min(initial=1.0))
    if verdict == NOTHING:
        of = f"{count} of {len(proposed)} columns may follow from the target"
        return f"{of}, and none in more than one way ({p_text(p)}). All columns stay."
    out = question.listed(~proposed)
    how = "does not follow from the target in one way everywhere"
    opening = f"{assumed} repeats the label: by assumption" if assumed else f"{out} {how}"
    opening += "" if assumed else f" ({p_text(p)})"
    if verdict == DIFFERENCES:
        return (
            f"{opening}. Without it the error is {rise:.2g} times as large, more than the "
            f"{1.0 + RISE * question.reach:.2g} that reach {question.reach:g} allows: all stay."
        )
    left = " it leaves" if assumed else ": left out"
    price = f"That makes the squared error {rise:.2g} times as large where nothing shifts."
    return f"{opening}{left}. {price}"


def _column_reason(
    j: int, question: Question, p: FloatArray, support: BoolArray, proposed: BoolArray
) -> str:
    if question.keep[j]:
        return "Stays: asked for."
    if not proposed[j]:
        test = "" if np.isnan(p[j]) else f" ({p_text(float(p[j]))})"
        why = "it does not follow from the target in one way"
        return (
            f"Left out: {why}{test}." if not support[j] else f"Stays, though {why}{test}: too dear."
        )
    if np.isnan(p[j]):
        return "Stays: it does not follow from the target."
    return (
        f"Stays: it follows from the target in one way, as far as is seen ({p_text(float(p[j]))})."
    )
