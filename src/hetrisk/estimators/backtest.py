"""`BacktestRegressor` and `BacktestClassifier`: choose a model by backtest, and foretell its error.

The estimators read the table, hand it to `hetrisk.core.backtest.decision.decide`, and predict by
what comes back.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, column_or_1d

from hetrisk.blocks import Blocks
from hetrisk.core.backtest.adaptation import LEAST_ROWS, Adaptation, adapt
from hetrisk.core.backtest.candidates import PLAIN
from hetrisk.core.backtest.decision import Outcome, decide
from hetrisk.core.backtest.foretell import half_width
from hetrisk.core.backtest.prepare import Prepared, prepare
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.predictor import Inputs
from hetrisk.estimators.candidates import EstimatorPart, candidates_for, plain_alone
from hetrisk.estimators.inputs import as_labels, as_numbers, as_weights, check_classes
from hetrisk.estimators.running import runner
from hetrisk.estimators.sheet import Sheet

__all__ = ["BacktestClassifier", "BacktestRegressor", "TooFewEnvironmentsWarning"]

LEAST_ENVIRONMENTS = 3  # two errors say nothing of how much errors differ
ROW_NUMBERS = "{!r} has a value of its own in every row, so it names no environment: not used. "


class TooFewEnvironmentsWarning(UserWarning):
    """There are no environments to backtest, or too few: the plain model is used."""


class _Backtest(BaseEstimator, ABC):
    """What regression and classification share: parameters, the fit, adaptation."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "candidates": "no_validation",  # type: ignore[dict-item]
        "time": [str, Integral, None],
        "environment": [str, Integral, None],
        "reach": [Interval(Real, 0, None, closed="left")],
        "gap": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        candidates: Any = "auto",
        time: str | int | None = None,
        environment: str | int | None = None,
        reach: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        gap: int = 0,
    ) -> None:
        self.candidates = candidates
        self.time = time
        self.environment = environment
        self.reach = reach
        self.gap = gap
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Backtest the candidates, and fit the one that is chosen to all rows.

        Parameters
        ----------
        X : (n, d) array, pandas or polars frame with the columns of time and environment among
            the others, or `hetrisk.blocks.Blocks` that hold them aside (then y stays None).
        y : (n,) target.
        sample_weight : (n,) non-negative weights. A weight counts rows: a row of weight 2 is two
            rows. Weights that sum to less than the rows that have one are scaled to a mean of one.
        """
        if not np.isfinite(self.reach):
            raise ValueError(f"reach must be finite; got {self.reach!r}.")
        if y is None and not isinstance(X, Blocks):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        self._sheet = Sheet.of(X, self.time, self.environment)
        source, self.n_rows_ = self._sheet.source(self, X, y, sample_weight)
        sheet = self._sheet
        self.n_features_in_ = sheet.n_columns
        if sheet.feature_names is not None:
            self.feature_names_in_ = np.asarray(sheet.feature_names, dtype=object)
        self.columns_, self.encoder_ = sheet.columns, sheet.encoder
        self.time_name_, self.environment_name_ = sheet.time_name, sheet.environment_name
        self.time_column_ = sheet.time_column
        self.environment_levels_ = np.asarray(sheet.levels, dtype=object)
        label = None if sheet.time_column is None else sheet.time_column.label
        # A column that says which row it is says nothing of where: no two rows share a place.
        levels = sheet.levels if len(sheet.levels) < self.n_rows_ else ()
        prepared = prepare(source, self._n_outputs, levels, label, self.gap)
        self.adaptation_: Adaptation | None = None
        why = self._too_few(prepared)
        numbered = ROW_NUMBERS.format(sheet.environment_name) if sheet.levels and not levels else ""
        candidates = candidates_for(
            self.candidates,
            prepared.layout,
            labels=self._n_outputs > 1,
            seed=_seed(self.random_state),
        )
        run, periods = runner(self.n_jobs, self.verbose), prepared.layout.periods
        given = (prepared.problem, prepared.splits, candidates, float(self.reach), run, periods)
        if not why:
            outcome = decide(*given)
        else:
            named = self.time is not None or self.environment is not None
            outcome = plain_alone(prepared.problem, candidates[: None if named else 2], run)
            if periods is None and len(prepared.splits) == 2:
                surely = decide(*given)
                if surely.name != PLAIN:
                    outcome, why = surely, self._two(surely)
        if why or numbered:
            warnings.warn(numbered + why, TooFewEnvironmentsWarning, stacklevel=2)
        self._keep(outcome, prepared)
        return self

    def _too_few(self, prepared: Prepared) -> str:
        """Why nothing can be backtested; "" where it can."""
        layout = prepared.layout
        if layout.periods is None and layout.sites is None:
            return (
                "There is nothing to backtest: name the column of time or of environments, "
                f"{type(self).__name__}(time=...) or (environment=...). The plain model is used. "
                "Whether the rows themselves show environments, StableRegressor and "
                "StableClassifier ask."
            )
        name, number, what = self._sheet.environment_name, 0, ("environment", "environments")
        if layout.sites is not None:
            number = len(layout.sites)
        if layout.periods is not None and len(layout.periods) > number:
            number, name = len(layout.periods), self._sheet.time_name
            what = ("period that can be judged", "periods that can be judged")
        left_out = {left.environment for split in prepared.splits for left in split.left}
        if number >= LEAST_ENVIRONMENTS and len(left_out) > 1:
            return ""
        why = f"{name!r} has {number} {what[number != 1]}"
        if number < LEAST_ENVIRONMENTS:
            why += f"; a backtest needs at least {LEAST_ENVIRONMENTS}"
        else:
            gap = f" with a gap of {self.gap}" if self.gap else ""
            why += f"; too few can be judged after a cut in time{gap}"
        return (
            f"{why}. The plain model is used, and the error foretold is that of random "
            "cross-validation: it says what to expect among rows like these, not in another "
            "environment."
        )

    def _two(self, outcome: Outcome) -> str:
        return (
            f"{self._sheet.environment_name!r} has 2 environments: how much errors differ between "
            f"environments is all but unknown. {outcome.name} is used all the same: it beats plain "
            "by two standard errors of the two and of their rows."
        )

    def _keep(self, outcome: Outcome, prepared: Prepared) -> None:
        self.best_name_ = outcome.name
        self.weights_ = outcome.weight
        self.ranking_, self.backtest_ = outcome.ranking, outcome.table
        self.forecast_, self.reach_curve_ = outcome.forecast, outcome.curve
        self.break_even_, self.quantiles_ = outcome.break_even, outcome.quantiles
        self._predictor, self._drift = outcome.predictor, outcome.drift
        self.periods_ = prepared.layout.periods
        members = outcome.predictor.members
        own = any(type(p) is EstimatorPart for m in members for p in m)
        self.predictor_ = None if own else outcome.predictor
        single = members[0] if len(members) == 1 else ()
        self.best_estimator_: Any = outcome.predictor
        if own and len(single) == 1:
            self.best_estimator_ = single[0].estimator  # type: ignore[attr-defined]

    def _predicted(self, X: Any) -> FloatArray:
        """(n, K) predictions for the rows of a table, or of blocks."""
        check_is_fitted(self, "ranking_")
        if isinstance(X, Blocks):
            return self._sheet.predicted(X, self._predictor)
        return self._predictor.predict(self._inputs(X))

    def _inputs(self, X: Any) -> Inputs:
        check_is_fitted(self, "ranking_")
        if isinstance(X, Blocks):
            raise ValueError("predict_interval and adapt need a table in memory; got blocks.")
        return self._sheet.inputs(self, X, needs_time=self._predictor.needs_time)

    def _adapted(self, X_new: Any, codes: FloatArray, sample_weight: Any) -> Self:
        rows = self._inputs(X_new)
        if len(rows) != len(codes):
            raise ValueError(f"y_new must have length {len(rows)}; got {len(codes)}.")
        if len(rows) < LEAST_ROWS:
            raise ValueError(
                f"adapt needs at least {LEAST_ROWS} labelled rows of the new environment; "
                f"got {len(rows)}."
            )
        weight = np.ones(len(codes))
        if sample_weight is not None:
            weight = as_weights(sample_weight, codes[:, None])
        moved, told = adapt(self._predictor, self._drift, rows, codes, weight)
        again = copy(self)
        again._predictor, again.adaptation_ = moved, told
        again.predictor_ = None if self.predictor_ is None else moved
        again.best_estimator_ = moved
        return again

    @property
    @abstractmethod
    def _n_outputs(self) -> int: ...

    @abstractmethod
    def _codes(self, y: Any) -> FloatArray:
        """(n,) numbers, or codes of the classes, which this finds."""

    @abstractmethod
    def _encoded(self, blocks: Blocks) -> Blocks:
        """The same for blocks."""


def _seed(random_state: Any) -> Any:
    """One seed for all fits: a generator would go on from fit to fit, and differ on processes."""
    if random_state is None or isinstance(random_state, Integral):
        return random_state
    return int(check_random_state(random_state).randint(2**31 - 1))


class BacktestRegressor(RegressorMixin, _Backtest):
    """Choose by backtest the model for environments not seen, and foretell its error.

    Candidates learn from some environments (the earlier periods, the other sites) and are judged
    in those left out, as deployment will. The average of a few candidates with least
    ``X_t = mean + t (worst - mean)`` of the losses in environments left out, t the ``reach``, is
    chosen if it beats *plain* (least squares on all columns and rows) by two standard errors over
    these environments, and in the average one by one; else plain is.

    Parameters
    ----------
    candidates : "auto"; a name or names of built-in ones (``constant``, ``plain``, ``ridge``,
        ``splines``, ``stable``, ``trees``, ``trees on splines``; with time ``level``,
        ``trend``, ``recent``, ``within``, ``trees on trend``; with both
        ``levels``); or a dict of names to scikit-learn estimators, or to built-in names. Plain and
        the constant always take part.
    time : column of X, by name or position, that says when: dates, periods or numbers.
    environment : column of X that says where.
    reach : how far beyond the backtest the world may go: 0 the average environment, 1 the worst
        that was left out, each further 1 as far again.
    random_state : for candidates of your own that take one and have none.
    n_jobs : processes for fits of candidates; None for one.
    verbose : whether to say what is being done, and how long it will take.
    gap : periods between the last one learned from and the first one judged.

    Attributes
    ----------
    best_name_ : the candidate chosen, or the average, as ``0.6 trees + 0.4 trend``.
    best_estimator_ : what it is: a `hetrisk.core.predictor.Predictor`, or your own estimator.
    predictor_ : the same as plain arrays; None where an estimator of your own has a part in it.
    ranking_ : a record a candidate: mean and worst error; criterion X_t, a loss (numbers: squared
        errors), and its ratio to plain's with two standard errors about it.
    backtest_ : a record a candidate and environment left out.
    forecast_ : the error to expect in an environment not seen, with a 90 % band, by horizon.
    reach_curve_, break_even_ : errors against reach; from which reach on the
        model beats plain: 0 where it does so in the average environment, inf where it never does.
    quantiles_ : half widths of intervals by horizon and level.
    weights_ : of the candidates in the model chosen.
    adaptation_ : what `adapt` changed, on a copy that it returned.
    columns_, encoder_, time_name_, environment_name_, environment_levels_, periods_ : how X is
        read.
    n_features_in_, feature_names_in_ : columns of X.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from hetrisk import BacktestRegressor
    >>> rng = np.random.default_rng(0)
    >>> year, size = np.repeat(np.arange(2010, 2020), 50), rng.normal(size=500)
    >>> price = 3 * size + 0.5 * (year - 2010) + rng.normal(size=500)
    >>> table = pd.DataFrame({"size": size, "year": year})
    >>> model = BacktestRegressor(time="year").fit(table, price)
    >>> model.best_name_
    '0.5 trend + 0.5 trees on trend'
    """

    @property
    def _n_outputs(self) -> int:
        return 1

    def _codes(self, y: Any) -> FloatArray:
        return as_numbers(y)

    def _encoded(self, blocks: Blocks) -> Blocks:
        return blocks

    def predict(self, X: Any) -> FloatArray:
        """(n,) predictions."""
        return self._predicted(X)[:, 0]

    def predict_interval(self, X: Any, level: float = 0.9) -> FloatArray:
        """(n, 2) lower and upper ends of intervals for the target.

        The half width is the ``level`` quantile, over the environments left out, of their own
        quantiles of absolute errors; with time it grows with the horizon as the errors did.
        """
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
        rows = self._inputs(X)
        centre = self._predictor.predict(rows)[:, 0]
        if self.quantiles_ is None:
            raise ValueError("there are no intervals: nothing was backtested and too few rows.")
        horizon = np.ones(len(rows))
        if self.periods_ is not None and rows.time is not None:
            horizon = self.periods_.horizon(rows.time)
        half = half_width(self.quantiles_, level, horizon)
        return np.column_stack([centre - half, centre + half])

    def adapt(self, X_new: Any, y_new: Any, *, sample_weight: Any = None) -> Self:
        """Return a fitted copy moved to a new environment by a few labelled rows of it.

        Level and slopes move as far as the rows say and as environments differed in the backtest
        (empirical Bayes); ``adaptation_`` says what changed. At least five rows.
        """
        check_is_fitted(self, "ranking_")
        return self._adapted(X_new, self._codes(y_new), sample_weight)


class BacktestClassifier(ClassifierMixin, _Backtest):
    """Choose by backtest the classifier for environments not seen, and foretell its log loss.

    As `BacktestRegressor`, with log loss in place of squared error and logistic regression as
    *plain*; parameters and attributes are the same.

    Attributes
    ----------
    classes_ : (K,) labels.

    Examples
    --------
    >>> import numpy as np
    >>> from hetrisk import BacktestClassifier
    >>> rng = np.random.default_rng(0)
    >>> site, x = np.repeat(np.arange(6), 60), rng.normal(size=360)
    >>> bought = x + rng.normal(size=360) > 0
    >>> model = BacktestClassifier(environment=1).fit(np.column_stack([x, site]), bought)
    >>> model.classes_
    array([False,  True])
    """

    @property
    def _n_outputs(self) -> int:
        return max(len(self.classes_), 2)

    def _codes(self, y: Any) -> FloatArray:
        classes, codes = np.unique(as_labels(y), return_inverse=True)
        self.classes_ = check_classes(classes)
        return codes.astype(np.float64)

    def _encoded(self, blocks: Blocks) -> Blocks:
        self.classes_ = check_classes(blocks.labels())
        return blocks.encoded(self.classes_)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) probabilities of the classes."""
        p = self._predicted(X)
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """(n,) most probable labels."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: np.ndarray = self.classes_[best]
        return labels

    def adapt(self, X_new: Any, y_new: Any, *, sample_weight: Any = None) -> Self:
        """Return a fitted copy moved to a new environment: see `BacktestRegressor.adapt`."""
        check_is_fitted(self, "ranking_")
        y_new = column_or_1d(y_new, warn=True)
        unknown = [v for v in np.unique(y_new).tolist() if v not in set(self.classes_.tolist())]
        if unknown:
            raise ValueError(
                f"y_new must hold labels among {self.classes_.tolist()}; got {unknown[0]!r}."
            )
        codes = np.searchsorted(self.classes_, y_new).astype(np.float64)
        return self._adapted(X_new, codes, sample_weight)
