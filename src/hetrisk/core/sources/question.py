"""What is asked of a table, and what comes back: questions, findings, the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.reach.regret import Environments
from hetrisk.core.thresholds import Thresholds

PROXY, EFFECT, COPY = "proxy", "effect", "label copy"


@dataclass(frozen=True)
class Finding:
    """What one question found.

    Attributes
    ----------
    name : of the question, for people.
    kind : `hetrisk.core.sources.proposal.HIDDEN`, `PROXY`, `EFFECT` or `COPY`.
    p_value : of one population; one where nothing could be tested.
    column_p_values : (d,) evidence against each column on its own, one where there is none.
    against : (d,) columns it speaks against.
    assumption : whether ``against`` rests on an assumption instead of a test.
    safe : whether what stays is safe as far as this question can tell.
    sentence : what was found, with its numbers.
    kept : (d,) columns it would speak against, were they not to be kept; None for none.
    partitions : environments under which the relation of these columns differs.
    chance : for each partition that was made from y, moments of the environments that targets of
        one population show, (x, y) standardised as the rows were; empty where y was not used.
    """

    name: str
    kind: str
    p_value: float
    column_p_values: FloatArray
    against: BoolArray
    assumption: bool
    safe: bool
    sentence: str
    kept: BoolArray | None = None
    partitions: tuple[Partition, ...] = ()
    chance: tuple[tuple[Environments, ...], ...] = ()


@dataclass(frozen=True)
class Answer:
    """What all questions together say.

    Attributes
    ----------
    leave : (d,) columns to leave out.
    findings : one a question, in the order they were asked.
    verdict : "homogeneous", "invariant" or "unstable" (heterogeneity is seen, and no set of
        columns makes y one population).
    """

    leave: BoolArray
    findings: tuple[Finding, ...]
    verdict: str

    @property
    def p_value(self) -> FloatArray:
        """(d,) the strongest evidence against each column."""
        smallest: FloatArray = np.min([f.column_p_values for f in self.findings], axis=0)
        return smallest


@dataclass(frozen=True)
class Case:
    """What a question is asked about.

    Attributes
    ----------
    sample : standardised rows.
    family : of the target.
    groups : (d,) columns of one group leave or stay together.
    keep : (d,) columns that never leave.
    excluded : (d,) columns that earlier questions left out: they are not looked at.
    level : of all tests one question makes.
    thresholds : of the search.
    decide : whether only the decision counts: p-values need not be exact where draws decide early.
    """

    sample: Rows
    family: Family
    groups: IntArray
    keep: BoolArray
    excluded: BoolArray
    level: float
    thresholds: Thresholds
    decide: bool = False

    @property
    def support(self) -> IntArray:
        """Columns still in play."""
        return np.flatnonzero(~self.excluded)


P = TypeVar("P")


class Question(ABC, Generic[P]):
    """A way in which relations may differ between environments that nobody named."""

    name: str
    kind: str
    tests: bool = True  # whether it takes a share of the level

    @abstractmethod
    def applies(self, family: Family) -> bool:
        """Whether this can be asked of such a target."""

    @abstractmethod
    def propose(self, case: Case) -> P:
        """Columns that look suspicious, and why: what `test` needs."""

    @abstractmethod
    def test(self, case: Case, proposal: P) -> Finding:
        """Test what was proposed, at the level of the case, and say it in a sentence."""

    @abstractmethod
    def confirm(self, case: Case, finding: Finding, rows: RowSource) -> Finding:
        """Ask all rows about what a sample showed; return the finding as they leave it."""

    def ask(self, case: Case, rows: RowSource) -> Finding:
        """Propose and test on the sample; where there are more rows, confirm."""
        finding = self.test(case, self.propose(case))
        # Finding nothing in a sample needs no confirmation; finding something does.
        if rows.n_rows > len(case.sample) and finding.against.any():
            finding = self.confirm(case, finding, rows)
        return finding


def nothing_found(question: Question[P], case: Case, p_value: float, sentence: str) -> Finding:
    """A finding against no column; what speaks against some replaces the parts that differ."""
    d = len(case.excluded)
    return Finding(
        name=question.name,
        kind=question.kind,
        p_value=p_value,
        column_p_values=np.ones(d),
        against=np.zeros(d, dtype=bool),
        assumption=False,
        safe=True,
        sentence=sentence,
    )


def mask_of(columns: IntArray, n_columns: int) -> BoolArray:
    """(d,) where the columns are."""
    mask = np.zeros(n_columns, dtype=bool)
    mask[columns] = True
    return mask


def count_text(count: int, noun: str) -> str:
    """A number of things in a sentence."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some_of(together: int, which: str, count: int, one: str, several: str) -> str:
    """So many of the columns ``which`` something is said of: the start of a sentence."""
    if together == 1:
        return f"The one column that {which} {one}"
    what = f"All {together} columns" if count == together else f"{count} of {together} columns"
    return f"{what} that {which} {one if count == 1 else several}"
