"""Stable columns: regression, classification and selection with those that hold everywhere.

Shells: rows are checked and standardised, `hetrisk.core.stable` decides which columns leave, and a
plain model is fitted on those that stay.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    TransformerMixin,
    _fit_context,
)
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from hetrisk.blocks import ArrayBlocks, Blocks, is_out_of_core
from hetrisk.blocks import as_blocks as as_far_blocks
from hetrisk.blocks.stream import single_blas_thread
from hetrisk.core.environments.memberships import Memberships
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.records import Records
from hetrisk.core.result import ColumnEvidence
from hetrisk.core.stable.inferred import search_inferred
from hetrisk.core.stable.search import Found, Question, search_known
from hetrisk.estimators.final import (
    FINAL_ROWS,
    fit_estimator,
    plain_fit,
    total_weight,
)
from hetrisk.estimators.inputs import by_features
from hetrisk.estimators.keep import feature_gates, kept_columns
from hetrisk.estimators.known import known_environments
from hetrisk.estimators.linear import LinearClassifier, LinearRegressor, WithEnvironments
from hetrisk.estimators.scales import Scale, measure_scale

__all__ = ["StableClassifier", "StableRegressor", "StableSelector"]


class _Stable(WithEnvironments):
    """What regression and classification share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reach": [Interval(Real, 0, None, closed="left")],
        "keep": ["array-like", str, Integral, None],
        "feature_groups": ["array-like", None],
        "final_estimator": [HasMethods(["fit", "predict"]), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        reach: float = 1.0,
        keep: Any = None,
        feature_groups: Any = None,
        final_estimator: Any = None,
        verbose: int = 0,
    ) -> None:
        self.reach = reach
        self.keep = keep
        self.feature_groups = feature_groups
        self.final_estimator = final_estimator
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any = None, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Decide which columns leave, and fit the model on those that stay.

        Parameters
        ----------
        X : (n, d) array or DataFrame of numbers, or `hetrisk.blocks.Blocks` that hold features,
            target, weights and environments together (then the others stay None).
        y : (n,) target.
        environments : (n,) labels, dates or numbers, or a frame of several such columns, or (n, K)
            responsibilities: where each row comes from. Dates and floats have an order, integers
            and text have none. None: environments are looked for in the rows.
        sample_weight : (n,) counts of rows: a row of weight two is the row twice.
        """
        if is_out_of_core(X):
            X = as_far_blocks(X, y, sample_weight, environments)
            y = sample_weight = environments = None
        rows, family = self._check(X, y, sample_weight)
        rows, levels = known_environments(rows, environments)
        names = getattr(self, "feature_names_in_", None)
        scale = measure_scale(rows, family, names)
        standard = rows.standardised(scale.centre, scale.divisor)
        question, weight = self._question(rows.n_features, scale), total_weight(rows)
        with single_blas_thread():  # many small products: threads would wait for each other
            if levels:
                found = search_known(standard, family, levels, question, weight)
            else:
                found = search_inferred(standard, family, question, weight, self._copies())
        self._keep_found(found, family, scale)
        self._fit_final(rows, standard, family)
        self._keep_environments(rows, standard, found)
        if self.verbose:
            print(f"{type(self).__name__}: {self.verdict_}. {self.verdict_reason_}")
        return self

    def _question(self, d: int, scale: Scale) -> Question:
        names = getattr(self, "feature_names_in_", None)
        shown = tuple(f"x{j}" for j in range(d)) if names is None else tuple(map(str, names))
        groups = feature_gates(self.feature_groups, d, scale.constant)
        kept = kept_columns(self.keep, names, d) | scale.constant
        # A column that is asked for keeps its group.
        return Question(float(self.reach), groups, np.isin(groups, groups[kept]), shown)

    def _keep_found(self, found: Found, family: Family, scale: Scale) -> None:
        self._family, self._scale = family, scale
        self.support_ = found.support & ~scale.constant
        self.verdict_, self.verdict_reason_ = found.verdict, found.reason
        slopes = scale.coef(np.ones(len(found.support)))
        self.evidence_ = Records(
            _in_units(column, slope, not constant)
            for column, slope, constant in zip(found.evidence, slopes, scale.constant, strict=True)
        )
        self.sources_ = Records(found.sources)
        self.stability_ = found.stability

    def _fit_final(self, rows: Blocks, standard: Blocks, family: Family) -> None:
        if self.final_estimator is None:
            coef, intercept = plain_fit(standard, family, self.support_)
            self._keep(self._scale.coef(coef), self._scale.intercept(coef, intercept))
            self.final_estimator_ = None
            return
        held = isinstance(rows, ArrayBlocks)
        sample = rows.sample(rows.n_rows if held else FINAL_ROWS, 0)
        target = self._labels(sample.y)
        self.final_estimator_ = fit_estimator(self.final_estimator, sample, self.support_, target)
        self.predictor_ = None
        for name in ("coef_", "intercept_"):
            self.__dict__.pop(name, None)

    def _keep_environments(self, rows: Blocks, standard: Blocks, found: Found) -> None:
        d = rows.n_features
        self._memberships = Memberships.of(found.sums, self._family, d)
        self._n_environments, self._environment_proba = len(found.sums), None
        if isinstance(rows, ArrayBlocks):
            self._environment_proba = standard.collect(found.membership)

    def _of_final(self, X: Any, method: str) -> np.ndarray:
        check_is_fitted(self, "support_")
        function = getattr(self.final_estimator_, method)
        return by_features(self, X, partial(_selected, function=function, support=self.support_))

    def _copies(self) -> bool:
        """Whether columns that copy a label leave by assumption."""
        return False

    def _labels(self, y: FloatArray) -> np.ndarray:
        return y


class StableRegressor(LinearRegressor, _Stable):
    """Least squares on the columns whose relation to y is the same in all environments.

    Parameters
    ----------
    reach : float, default=1.0
        How far beyond the environments seen the world may go: 0 the average environment, 1 the
        worst one seen, and as far again for each further 1. A column leaves if that lowers the
        loss there (X_t), or if it is the column that moved and not y.
    keep : list of names or positions, bool array of shape (n_features,), or None, default=None
        Columns that never leave.
    feature_groups : array-like of shape (n_features,) or None, default=None
        A name or integer per column; columns of one group share a decision.
    final_estimator : estimator or None, default=None
        Fitted on the columns that stay; None for least squares.
    verbose : int, default=0
        1 prints the verdict.

    Attributes
    ----------
    support_ : (d,) bool array
        Columns used.
    coef_, intercept_ : array, float
        The linear model, zero outside the support; only where ``final_estimator`` is None.
    verdict_ : {"columns left out", "differences stay", "no difference found", "too few rows"}
        "differences stay": something differs between environments, but leaving columns out would
        not help.
    verdict_reason_ : str
        The same in two sentences whose numbers are the rule.
    evidence_ : records of `hetrisk.core.result.ColumnEvidence`
        What is known of every column; ``evidence_.to_frame()`` for a frame.
    sources_ : records of `hetrisk.core.result.Source`
        Every source of environments that was asked.
    stability_ : (d,) array
        Share of resamples (four fifths of the rows) in which the same is decided of each column.
    environments_, environment_proba_ : arrays
        Environment of each training row (-1 for none), and the probabilities behind it; not held
        for rows out of core.
    final_estimator_ : estimator or None
        The fitted final model on the columns that stayed, where one was given.
    predictor_ : `hetrisk.core.predictor.Predictor` or None
        The model as plain arrays; None where ``final_estimator`` was given.

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> task = load_task("selection_bias", seed=0)
    >>> X, y, shops = task.train.X, task.train.y, task.train.environments
    >>> StableRegressor().fit(X, y, environments=shops).verdict_
    'columns left out'
    """

    def predict(self, X: Any) -> FloatArray:
        """(n,) predictions."""
        if self.final_estimator is not None:
            return self._of_final(X, "predict")
        return super().predict(X)


class StableClassifier(LinearClassifier, _Stable):
    """Logistic regression on the columns whose relation to the label is the same everywhere.

    Binary or multiclass, labels of any type. Parameters and attributes are those of
    `StableRegressor`, and ``classes_``; ``coef_`` is (1, d) for two classes and (C, d) for more, as
    in scikit-learn. Which columns leave is decided on the squared error of the label.

    Parameters
    ----------
    reach, keep, feature_groups, final_estimator, verbose : as in `StableRegressor`.
    assume_label_copies : bool, default=False
        Without known environments: leave out columns that no other column explains once the label
        is known, as copies of it do (a reading of the outcome). That is an assumption, not a test.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_Stable._parameter_constraints,
        "assume_label_copies": ["boolean"],
    }

    def __init__(
        self,
        reach: float = 1.0,
        keep: Any = None,
        feature_groups: Any = None,
        final_estimator: Any = None,
        assume_label_copies: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(reach, keep, feature_groups, final_estimator, verbose)
        self.assume_label_copies = assume_label_copies

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels."""
        if self.final_estimator is not None:
            return self._of_final(X, "predict")
        return super().predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C) probabilities of the classes."""
        if self.final_estimator is not None:
            return self._of_final(X, "predict_proba")
        return super().predict_proba(X)

    def _copies(self) -> bool:
        return self.assume_label_copies

    def _labels(self, y: FloatArray) -> np.ndarray:
        return self.classes_[y.astype(int)]


TASKS: dict[str, type[_Stable]] = {
    "regression": StableRegressor,
    "classification": StableClassifier,
}


class StableSelector(SelectorMixin, TransformerMixin, BaseEstimator):
    """Select the columns whose relation to y is the same in all environments.

    Parameters
    ----------
    reach, keep, feature_groups, verbose : as in `StableRegressor`.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto" takes a continuous y for regression and labels (integers included) for
        classification; rows out of core need it said.

    Attributes
    ----------
    support_, verdict_, verdict_reason_, evidence_, sources_, stability_ : as in `StableRegressor`.
    estimator_ : the fitted `StableRegressor` or `StableClassifier` behind the selection.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in _Stable._parameter_constraints.items() if k != "final_estimator"},
        "task": [StrOptions({"auto", *TASKS})],
    }

    def __init__(
        self,
        reach: float = 1.0,
        keep: Any = None,
        feature_groups: Any = None,
        task: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.reach = reach
        self.keep = keep
        self.feature_groups = feature_groups
        self.task = task
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any = None, *, environments: Any = None, sample_weight: Any = None
    ) -> Self:
        """Select columns; parameters as in `StableRegressor.fit`."""
        given = {k: v for k, v in self.get_params(deep=False).items() if k != "task"}
        self.estimator_ = TASKS[self._task(X, y)](**given)
        self.estimator_.fit(X, y, environments=environments, sample_weight=sample_weight)
        fitted = vars(self.estimator_)
        for name in (*_SHARED, "feature_names_in_"):
            self.__dict__.pop(name, None)
            if name in fitted:
                setattr(self, name, fitted[name])
        return self

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "support_")
        return self.support_

    def _task(self, X: Any, y: Any) -> str:
        if self.task != "auto":
            return self.task
        if is_out_of_core(X):
            raise ValueError(
                "task must be 'regression' or 'classification' for rows out of core; got 'auto'."
            )
        continuous = y is None or type_of_target(y).startswith("continuous")
        return "regression" if continuous else "classification"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


_SHARED = (
    "n_features_in_",
    "support_",
    "verdict_",
    "verdict_reason_",
    "evidence_",
    "sources_",
    "stability_",
)


def _selected(X: FloatArray, function: Any, support: BoolArray) -> np.ndarray:
    return np.asarray(function(X[:, support]))


def _in_units(column: ColumnEvidence, slope: float, varies: bool) -> ColumnEvidence:
    """The slopes of a column in the user's units."""
    slopes = tuple(slope * c if varies else 0.0 for c in column.coefficients)
    return replace(column, kept=column.kept and varies, coefficients=slopes)
