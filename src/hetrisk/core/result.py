"""What comes back: from a backtest, from a search for stable columns; and what rows carry aside."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    name: str
    kind: str
    position: int
    levels: tuple[str, ...] = ()
    missing: bool = False
    further: bool = False


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
