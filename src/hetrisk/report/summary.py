"""What a page is made of: computed once, when a model is fitted, and kept with it.

Numbers, texts and tuples of them alone: a model file stores a summary as it is, and no row of the
table is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hetrisk.core.result import ColumnEvidence, Forecast, Ranked, ReachLine, Tested
from hetrisk.report.decision import Decision


@dataclass(frozen=True)
class Origin:
    """The table a model was fitted on, and how.

    Attributes
    ----------
    source : name of the file, or "".
    target, task : the column predicted; "regression" or "classification", and why.
    n_rows, n_columns : rows with a target, columns of the table.
    time, environment, weight : columns that are no plain features, or "".
    notes, left_out : (column, what was done), (column, why it is not used).
    leaks : sentences about columns that give the target away.
    command : to fit again, as it is typed; "" where it was not fitted from a file.
    version : of hetrisk.
    """

    source: str
    target: str
    task: str
    reason: str
    n_rows: int
    n_columns: int
    time: str = ""
    environment: str = ""
    weight: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    leaks: tuple[str, ...] = ()
    command: str = ""
    version: str = ""


@dataclass(frozen=True)
class ColumnLine:
    """A column of the table as the model uses it.

    Attributes
    ----------
    name : of the column.
    weight : how far predictions move when its values are exchanged between rows, in standard
        deviations of the target (of the label's probability); 0 where it is not used.
    p_slope : that its slope is the same in all environments, corrected; NaN where not tested.
    slopes : the least and the greatest slope over environments; NaN where there is none.
    reason : a sentence about it, or "".
    """

    name: str
    weight: float
    p_slope: float
    slopes: tuple[float, float]
    reason: str


@dataclass(frozen=True)
class Difference:
    """What is different in an environment, the largest difference first."""

    environment: str
    n_rows: int
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Quality:
    """Outcomes against predictions, in groups of rows of like prediction.

    Attributes
    ----------
    outcome : the class whose probability this is, or "" for numbers.
    predicted, observed : (Q,) means in each group.
    low, high : (Q,) 95 % interval of a share, or the lowest and highest tenth of outcomes.
    count : (Q,) rows.
    held_out : whether the rows were not learned from.
    """

    outcome: str
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: tuple[int, ...]
    held_out: bool


@dataclass(frozen=True)
class Summary:
    """All that a page, the terminal and ``--json`` show of a fitted model.

    Attributes
    ----------
    origin : the table.
    decision : what to do.
    reach : the reach asked for.
    ranking, backtest, forecast, reach_curve, break_even : of the backtest.
    columns : those of the table that the model may use, the most important first.
    evidence : what was found of each column's relation to the target.
    differences : between environments.
    cautions : sentences about what may hurt later.
    advice : how to get a better answer: which columns to name.
    quality : None where it was not measured.
    verdict, verdict_reason : of the search for stable columns where nothing was backtested, or "".
    """

    origin: Origin
    decision: Decision
    reach: float
    ranking: tuple[Ranked, ...]
    backtest: tuple[Tested, ...]
    forecast: Forecast
    reach_curve: tuple[ReachLine, ...]
    break_even: float
    columns: tuple[ColumnLine, ...]
    evidence: tuple[ColumnEvidence, ...]
    differences: tuple[Difference, ...]
    cautions: tuple[str, ...]
    advice: tuple[str, ...]
    quality: Quality | None
    verdict: str = ""
    verdict_reason: str = ""
