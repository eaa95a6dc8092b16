"""What a search is asked (`SearchSettings`), and what it brings back (`SearchResult`).

A search works on standardised rows; the estimators translate to the user's scale. One that decides
first and is priced afterwards brings `Findings`, of which `hetrisk.core.pricing` makes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray

INVARIANT = "invariant"  # columns left out, or directions shrunk: the model pays at the reach
HOMOGENEOUS = "homogeneous"  # searched, nothing usable: plain ERM
UNSTABLE = "unstable"  # environments differ, but no answer is safe: plain ERM, with a warning
UNSEARCHED = "unsearched"  # too few rows to look: plain ERM
RMSE, BRIER = "RMSE", "root Brier score"  # units of errors: of numbers, of probabilities


def silent(message: str) -> None:
    """Say nothing."""


def one_by_one(function: Callable[[Any], Any], tasks: Iterable[Any]) -> list[Any]:
    """Run independent tasks one after the other."""
    return [function(task) for task in tasks]


@dataclass(frozen=True)
class NamedEnvironments:
    """Environments that the user named.

    Attributes
    ----------
    names : of the environments.
    position : column of the hints that holds their codes; None where rows carry responsibilities.
    ordered : whether the names have an order: numbers, dates.
    """

    names: tuple[str, ...]
    position: int | None
    ordered: bool


@dataclass(frozen=True)
class SideColumn:
    """A column of side information.

    Attributes
    ----------
    name : as the user calls it.
    kind : "category", "number" or "date" (days since 1970).
    position : column of the hints that holds it.
    levels : names of the codes of a category, in order; () for the others.
    missing : whether values are missing.
    further : whether there are levels beside these, too rare to be told apart: code -1.
    form : the format of dates that are text; "" where they are dates already.
    """

    name: str
    kind: str
    position: int
    levels: tuple[str, ...] = ()
    missing: bool = False
    further: bool = False
    form: str = ""


@dataclass(frozen=True)
class SearchSettings:
    """What a search is asked to do; None stands for "auto".

    Attributes
    ----------
    reach : how far a shift may go.
    form : "columns" or "directions".
    keep : (d,) columns that never leave; None for none.
    environments : those the user named, or None; cells : their moments by fold, if at hand.
    hints : columns of side information.
    feature_names : of the columns, for messages.
    n_environments : number of environments of a partition, or None to choose it.
    max_rounds : most rounds of clustering and selection.
    invariance_penalty : strength of the penalty on what differs between environments, or None.
    gate_penalty : price of an open gate, or None.
    gate_noise : standard deviation of the gates.
    seed : of every random choice.
    verbose : called with a line of progress.
    run : applies a function to independent tasks and returns the list of results, perhaps
        several at a time.
    """

    reach: float = 4.0
    form: str = "columns"
    keep: BoolArray | None = None
    environments: NamedEnvironments | None = None
    cells: CellMoments | None = None
    hints: tuple[SideColumn, ...] = ()
    feature_names: tuple[str, ...] | None = None
    n_environments: int | None = None
    max_rounds: int = 10
    invariance_penalty: float | None = None
    gate_penalty: float | None = None
    gate_noise: float = 0.1
    seed: int = 0
    verbose: Callable[[str], None] = silent
    run: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = one_by_one

    def name(self, column: int) -> str:
        """What to call a column in a sentence."""
        return f"x{column}" if self.feature_names is None else self.feature_names[column]

    def kept(self, d: int) -> BoolArray:
        """(d,) columns that never leave."""
        return np.zeros(d, dtype=bool) if self.keep is None else self.keep


@dataclass(frozen=True)
class Evidence:
    """What decided about each of the d columns; every array has length d.

    Attributes
    ----------
    margin : the decision: relative rise of the error expected at the reach asked for, were the
        decision about the column (its group) the other one. Positive: the decision pays.
    price : relative rise of the error where nothing shifts when the column is not in the model.
    regret : share of the plain model's worst regret that goes away when the column alone leaves;
        NaN where no environments were compared.
    p_value : that the column's coefficient, or its mechanism where it is an effect of the target,
        is the same in all environments (the smaller of the two), corrected for the
        number of columns and sources; 1 where it was not tested.
    assumed : left by an assumption, not by a test.
    reason : one sentence a column.
    columns : names of the columns; () for x0, x1, ...

    Printed it is a table, and ``pandas.DataFrame(evidence.rows())`` is a frame of it.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([0.1])
    >>> print(Evidence(one, one, one, one, one > 1, ("Kept.",), ("size",)))
    column  margin  price  regret  p_value  reason
    size      +10%   +10%    0.10      0.1  Kept.
    """

    margin: FloatArray
    price: FloatArray
    regret: FloatArray
    p_value: FloatArray
    assumed: BoolArray
    reason: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """One record a column, with its name."""
        count = len(self.reason)
        shown = self.columns or [f"x{j}" for j in range(count)]
        return [
            {
                "column": shown[j],
                "margin": float(self.margin[j]),
                "price": float(self.price[j]),
                "regret": float(self.regret[j]),
                "p_value": float(self.p_value[j]),
                "assumed": bool(self.assumed[j]),
                "reason": self.reason[j],
            }
            for j in range(count)
        ]

    def __str__(self) -> str:
        heads = ("column", "margin", "price", "regret", "p_value", "reason")
        lines = [
            (
                row["column"],
                f"{row['margin']:+.0%}",
                f"{row['price']:+.0%}",
                f"{row['regret']:.2f}",
                f"{row['p_value']:.2g}",
                row["reason"],
            )
            for row in self.rows()
        ]
        widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        aligned = [
            "  ".join(
                cell.ljust(width) if i in (0, 5) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (heads, *lines)
        ]
        return "\n".join(aligned)


@dataclass(frozen=True)
class SourceRecord:
    """A source of environments that was looked at, and what it showed.

    Attributes
    ----------
    name : "environments", the name of a hint, or what was looked for in the rows themselves.
    kind : "named", "hinted", "visible" or "hidden".
    n_environments : of the partition that showed most.
    p_value : that its environments share one regression, corrected for all partitions tried; where
        only that is refuted, one mechanism of an effect of the target, or noise of one size.
    score : the same as a normal score.
    column : the column it speaks against most, or None.
    used : whether it took part in the decision.
    sentence : what it showed.
    """

    name: str
    kind: str
    n_environments: int
    p_value: float
    score: float
    column: int | None
    used: bool
    sentence: str


@dataclass(frozen=True)
class EnvironmentScore:
    """One environment left out of the fit: root squared errors there of three models.

    ``rows`` are effective rows; ``error`` is this model's, ``error_erm`` plain ERM's and
    ``error_anchor`` anchor regression's (gamma 5), all fitted to the other environments.
    """

    label: str
    rows: float
    error: float
    error_erm: float
    error_anchor: float


@dataclass(frozen=True)
class HistoryRecord:
    """A step of the search.

    Attributes
    ----------
    round : number, from 1.
    n_environments : of the partition looked at.
    score, score_name : how good the selection is, and what that number is.
    support : the columns selected.
    chosen : whether this is the step the result was taken from.
    log_likelihood : of the clustering, where there was one.
    invariance_penalty, gate_penalty : those the gates were fitted with, where there were gates.
    note : what else happened, in words.
    """

    round: int
    n_environments: int
    score: float
    score_name: str
    support: tuple[bool, ...]
    chosen: bool
    log_likelihood: float = float("nan")
    invariance_penalty: float | None = None
    gate_penalty: float | None = None
    note: str = ""


@dataclass(frozen=True)
class ReachCurve:
    """Expected error against the reach of the shift.

    Attributes
    ----------
    reach : (G,) grid.
    error, error_erm : (G,) expected error of this model and of plain ERM.
    low, high, low_erm, high_erm : (G,) bands for the worst environment to come: the spread of
        the environments seen, and the noise of the rows.
    left_out : columns that would be left out at each reach.
    unit : "RMSE", or "root Brier score" for labels.
    break_even : the reach from which on this model is the better one; 0 from the start, inf never.
    """

    reach: FloatArray
    error: FloatArray
    error_erm: FloatArray
    low: FloatArray
    high: FloatArray
    low_erm: FloatArray
    high_erm: FloatArray
    left_out: tuple[tuple[int, ...], ...]
    unit: str
    break_even: float

    def scaled(self, factor: float) -> ReachCurve:
        """The same in another unit of the target."""
        names = ("error", "error_erm", "low", "high", "low_erm", "high_erm")
        return replace(self, **{name: factor * getattr(self, name) for name in names})


@dataclass(frozen=True)
class SearchResult:
    """What a search brings back, on standardised rows.

    Attributes
    ----------
    support : (d,) columns to use.
    gates : (d,) soft mask in [0, 1].
    partition : the environments, to be applied to any rows.
    environment_names : of the environments of the partition.
    evidence : per column.
    sources : every source that was looked at.
    curve : the reach curve.
    stability : (d,) share of resamples in which each column left; n_resamples : of how many.
    agreement : share of them in which the answer pays.
    leave_one_out : what leaving each environment out gave; () with fewer than three.
    verdict : one of the four words above; reason : a sentence or two, with its numbers.
    history : the steps of the search.
    coef, intercept : the linear model, (d,) and a float, or (C, d) and (C,) for C > 2 classes;
        None to leave the refit on ``support`` to the estimator.
    moments : of (x, y) in each environment, where the target is one number; None otherwise.
    pooled : the same over all rows that carry a label or a value, those in no environment among
        them; rows without are not.
    directions, offsets : (d, t) and (t,) linear scores to use in place of columns; None for
        columns.
    """

    support: BoolArray
    gates: FloatArray
    partition: Partition
    environment_names: tuple[str, ...]
    evidence: Evidence
    sources: tuple[SourceRecord, ...]
    curve: ReachCurve
    stability: FloatArray
    n_resamples: int
    agreement: float
    leave_one_out: tuple[EnvironmentScore, ...]
    verdict: str
    reason: str
    history: tuple[HistoryRecord, ...]
    coef: FloatArray | None = None
    intercept: FloatArray | float | None = None
    directions: FloatArray | None = None
    offsets: FloatArray | None = None
    moments: Moments | None = None
    pooled: Moments | None = None


@dataclass(frozen=True)
class Findings:
    """What a search found, before it is priced: see `SearchResult`."""

    support: BoolArray
    gates: FloatArray
    partition: Partition
    verdict: str
    reason: str
    reasons: tuple[str, ...]
    history: tuple[HistoryRecord, ...]
    coef: FloatArray | None = None
    intercept: FloatArray | float | None = None
    p_value: FloatArray | None = None
    assumed: BoolArray | None = None
    sources: tuple[SourceRecord, ...] = ()


@dataclass(frozen=True)
class Ranked:
    """A candidate, as the backtest ranks it.

    Attributes
    ----------
    candidate : its name.
    mean, worst : error over the environments left out: the root of the mean of their losses (for
        labels the mean log loss), and that of the worst.
    criterion : X_t, the loss the choice is made by, at the reach asked for; NaN where it failed.
    ratio : criterion over that of plain.
    ratio_low, ratio_high : two standard errors about it, over the environments left out.
    chosen : whether it is deployed.
    note : why it is chosen, or not; the error where it failed.
    """

    candidate: str
    mean: float
    worst: float
    criterion: float
    ratio: float
    ratio_low: float
    ratio_high: float
    chosen: bool
    note: str


@dataclass(frozen=True)
class Tested:
    """A candidate in an environment left out.

    Attributes
    ----------
    candidate : its name.
    environment : the environment left out, as the user calls it (a period, a site or a group).
    cut : what was learned from ended here, "" without time.
    horizon : periods between the last one learned from and the one judged; NaN without time.
    known : with time and environment both: whether rows of the environment were learned from.
    n_rows : judged.
    error : root mean squared error, or log loss for labels.
    """

    candidate: str
    environment: str
    cut: str
    horizon: float
    known: bool
    n_rows: int
    error: float


@dataclass(frozen=True)
class Expected:
    """An error to expect: the mean over environments not seen, and a 90 % band for one of them."""

    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Horizon:
    """What to expect so many periods ahead: this model, plain, and the constant."""

    horizon: float
    label: str
    chosen: Expected
    plain: Expected
    constant: Expected
    n_environments: int


@dataclass(frozen=True)
class Forecast:
    """The error to expect in an environment not seen.

    Attributes
    ----------
    mean, lower, upper : of the model chosen: mean, and a 90 % band for one environment.
    plain, constant : the same for these two.
    by_horizon : the same by periods ahead; () without time.
    plain_fails_at : the first horizon (with time; else the reach) from which on plain errs more
        than the constant; inf where it never does.
    unit : "RMSE" or "log loss".
    n_environments : left out, which all of this rests on; 0 where nothing could be backtested and
        the figures are those of random cross-validation.
    """

    mean: float
    lower: float
    upper: float
    plain: Expected
    constant: Expected
    by_horizon: tuple[Horizon, ...]
    plain_fails_at: float
    unit: str
    n_environments: int


@dataclass(frozen=True)
class ReachLine:
    """Square root of X_t (log loss: X_t) of three models at one reach."""

    reach: float
    chosen: float
    plain: float
    constant: float


@dataclass(frozen=True)
class ColumnEvidence:
    """What is known of one column's relation to the target.

    Attributes
    ----------
    column : its name.
    kept : whether the model uses it.
    coefficients : its slope in each environment, in the user's units; () without environments.
    p_slope : H0: given the other columns, its slope is the same in all environments.
    p_column : H0: the column itself, given those that stay, is the same in all environments.
    stability : share of resamples in which the same was decided of it.
    reason : a sentence whose numbers are the rule.
    """

    column: str
    kept: bool
    coefficients: tuple[float, ...]
    p_slope: float
    p_column: float
    stability: float
    reason: str


VERDICTS = ("columns left out", "differences stay", "no difference found", "too few rows")


@dataclass(frozen=True)
class Source:
    """A source of environments that was asked, and what it showed.

    Attributes
    ----------
    name : what the user calls it, or the question that was put to the rows.
    known : whether the environments were named.
    n_environments : compared.
    p_value : H0: the regression of the target (or of a column) is the same in all of them.
    used : whether columns left on its account.
    sentence : what it showed.
    """

    name: str
    known: bool
    n_environments: int
    p_value: float
    used: bool
    sentence: str
