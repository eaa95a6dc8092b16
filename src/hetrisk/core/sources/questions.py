"""Ask a table what nobody named: the driver, which knows only the list of questions.

Each question looks at what the ones before it left. The level is shared out equally among those
that test something, so that in one population all of them together speak up with a probability
of ``level`` at most. Nothing depends on a seed or on the order of the rows: rows are put into an
order of their own first, and every draw comes from one fixed stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import BoolArray, Held, IntArray, Rows, RowSource
from hetrisk.core.result import HOMOGENEOUS, INVARIANT, UNSEARCHED, UNSTABLE
from hetrisk.core.sources.copies import LabelCopy
from hetrisk.core.sources.effect import Effect
from hetrisk.core.sources.hidden import Hidden
from hetrisk.core.sources.proxy import Proxy
from hetrisk.core.sources.question import Answer, Case, Finding, Question
from hetrisk.core.thresholds import THRESHOLDS, Thresholds

QUESTION_ROWS: Budget[int] = 10_000  # rows the questions are asked of, before all rows confirm
SEED: Constant[int] = 0  # of that sample, and of the order of its rows

PARTS: Budget[int] = 5  # of the sample, one of which is missing where it is asked again
REPEATS: Budget[int] = 2  # of the questions, at most, where a set of columns is to leave

QUESTIONS: tuple[Question[Any], ...] = (Effect(), Proxy(), Hidden(), LabelCopy())


def ask(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    keep: BoolArray,
    level: float = THRESHOLDS.alpha,
    thresholds: Thresholds = THRESHOLDS,
    decide: bool = False,
) -> Answer:
    """Search standardised rows for columns whose relation to the target may not hold elsewhere.

    Parameters
    ----------
    rows : standardised rows.
    family : of the target.
    groups : (d,) columns of one group leave or stay together.
    keep : (d,) columns that never leave.
    level : of all tests together.
    thresholds : of the search.
    decide : whether only what leaves counts, and not how sure that is.
    """
    sample = _in_order(rows.sample(QUESTION_ROWS, SEED))
    nothing = np.zeros(len(groups), dtype=bool)
    if len(sample) < thresholds.rows_needed(len(groups)):
        return Answer(nothing, (), UNSEARCHED)
    questions = [q for q in QUESTIONS if q.applies(family)]
    # Equal shares, fixed before anything is seen: a question that finds nothing gives none back.
    each = level / sum(question.tests for question in questions)
    # Constant in the sample: it says nothing here, whatever it does elsewhere.
    constant = sample.X.std(axis=0) < ROUNDING
    leave, findings = nothing, []
    for question in questions:
        case = Case(sample, family, groups, keep, leave | constant, each, thresholds, decide)
        finding = question.ask(case, rows)
        findings.append(finding)
        leave = leave | finding.against
    return _answer(leave, constant, tuple(findings))


def leaves_again(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    keep: BoolArray,
    level: float,
    leave: BoolArray,
) -> BoolArray:
    """(d,) columns that leave where the same is asked of four fifths of the rows, once or twice.

    What a test finds narrowly, or a set of columns cures narrowly, hangs on a few of the rows. The
    second time another fifth of the sample is missing; it is not asked where all that is to
    ``leave`` (d,) has left the first time.
    """
    sample = _in_order(rows.sample(QUESTION_ROWS, SEED))
    part, again = np.arange(len(sample)) % PARTS, np.zeros_like(leave)
    for missing in range(REPEATS):
        chosen = part != missing
        some = Rows(sample.X[chosen], sample.y[chosen], sample.weight[chosen])
        asked = ask(Held(some), family, groups, keep, level, decide=True)
        again |= asked.leave
        if again[leave].all():
            break
    return again


def _answer(leave: BoolArray, constant: BoolArray, findings: tuple[Finding, ...]) -> Answer:
    """Leave what the questions speak against; where nothing safe would be left, nothing."""
    safe = all(finding.safe for finding in findings) and not (leave | constant).all()
    if not safe:
        return Answer(np.zeros_like(leave), findings, UNSTABLE)
    return Answer(leave, findings, INVARIANT if leave.any() else HOMOGENEOUS)


def _in_order(sample: Rows) -> Rows:
    """Rows that count, in an order that depends on nothing but the rows themselves."""
    # Sorted by value, then shuffled by a fixed seed: the same rows in any order give the same
    # sample, and no question sees them sorted.
    order = np.lexsort((*sample.X.T, sample.y))
    order = order[sample.weight[order] > 0]
    order = order[np.random.default_rng(SEED).permutation(len(order))]
    return Rows(sample.X[order], sample.y[order], sample.weight[order])
