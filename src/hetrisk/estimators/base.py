"""What the HRM estimators share: their parameters, the search, the final model, what is kept of it.

The rows are checked and standardised, handed to a search (`METHODS`), the final model is fitted
on the columns the search selected, and everything is translated to the user's columns and scale.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from hetrisk.blocks import ArrayBlocks, Blocks, is_out_of_core
from hetrisk.blocks import as_blocks as as_far_blocks
from hetrisk.blocks.stream import single_blas_thread
from hetrisk.core import search
from hetrisk.core.drift.reference import Profile, measure, profile
from hetrisk.core.numerics.environment_fits import membership
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.reach.curve import FARTHEST
from hetrisk.core.reach.forms import FORMS
from hetrisk.core.result import UNSTABLE, SearchResult, SearchSettings, silent
from hetrisk.estimators.checks import feature_gates, workers
from hetrisk.estimators.environments import linear_losses, model_losses, summarise
from hetrisk.estimators.final import (
    FINAL_ROWS,
    few_rows,
    fit_estimator,
    linear_fit,
    of_all_rows,
    plain_fit,
)
from hetrisk.estimators.first_pass import first_pass
from hetrisk.estimators.frames import called, feature_groups, kept
from hetrisk.estimators.inputs import as_blocks, refuse_infinite
from hetrisk.estimators.keep import kept_columns
from hetrisk.estimators.representation import FittedReprMixin
from hetrisk.estimators.scales import Scale, measure_scale
from hetrisk.estimators.side_information import (
    Listed,
    SideInformation,
    carrying,
    listed_shares,
    refuse_known,
)

__all__ = ["METHODS", "HRMBase", "Method", "UnstableWarning"]

Search = Callable[[Any, Family, IntArray, SearchSettings], SearchResult]


@dataclass(frozen=True)
class Method:
    """A search; ``gates`` says that it has gates to tune and infers its environments itself."""

    search: Search
    gates: bool = False


METHODS: dict[str, Method] = {
    "auto": Method(search.discover),
}


class UnstableWarning(UserWarning):
    """Environments differ, but no answer is safe: plain ERM is used."""


class HRMBase(FittedReprMixin, BaseEstimator, ABC):
    """What regression, classification and selection share: parameters, search, final model."""

    coef_: Any
    intercept_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions(set(METHODS))],
        "reach": [Interval(Real, 0, FARTHEST, closed="both")],
        "form": [StrOptions(set(FORMS))],
        "n_environments": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "final_estimator": [HasMethods(["fit", "predict"]), None],
        "invariance_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gate_penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gate_noise": [Interval(Real, 0, None, closed="neither")],
        "feature_groups": ["array-like", None],
        "keep": ["array-like", str, Integral, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        method: str = "auto",
        reach: float = 4.0,
        form: str = "columns",
        n_environments: int | str = "auto",
        max_rounds: int = 10,
        final_estimator: Any = None,
        invariance_penalty: float | str = "auto",
        gate_penalty: float | str = "auto",
        gate_noise: float = 0.1,
        feature_groups: Any = None,
        keep: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.reach = reach
        self.form = form
        self.n_environments = n_environments
        self.max_rounds = max_rounds
        self.final_estimator = final_estimator
        self.invariance_penalty = invariance_penalty
        self.gate_penalty = gate_penalty
        self.gate_noise = gate_noise
        self.feature_groups = feature_groups
        self.keep = keep
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any = None,
        environments: Any = None,
        hints: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Find relations that differ between environments, and fit the model that breaks later.

        Parameters
        ----------
        X : (n, d) array, pandas or polars DataFrame (categories, dates and missing values
            included: see `hetrisk.estimators.frames`), or `hetrisk.blocks.Blocks` that hold
            features, target, weights, environments and hints together (then the others stay None).
        y : (n,) target.
        environments : (n,) labels, or a frame of one column, or (n, K) responsibilities: where
            each row comes from. The search uses these and looks for no others.
        hints : (n,) or (n, m) array, Series or DataFrame of numbers (spans of time included),
            dates (also as text) or categories, missing values allowed: columns that may go along
            with where rows come from. Never features.
        sample_weight : (n,) non-negative weights.

        Returns
        -------
        self
        """
        self._check_settings()
        if is_out_of_core(X):
            X = as_far_blocks(X, y, sample_weight, environments, hints)
            y = sample_weight = None
        rows, family = self._check(X, y, sample_weight)
        rows, side = carrying(rows, environments, hints)
        if METHODS[self.method].gates:
            refuse_known(self.method, side)
        first = first_pass(rows, family, side.labels)
        if first is None and isinstance(rows, ArrayBlocks):
            refuse_infinite(self, rows.X)
        seen = rows.sum(profile) if first is None else first.profile
        scale = measure_scale(rows, family, getattr(self, "feature_names_in_", None), seen.weighted)
        standard = rows.standardised(scale.centre, scale.divisor)
        cells = None if first is None else first.standardised(scale)
        settings = replace(self._settings(rows, side), cells=cells)
        found = self._search(standard, family, settings, scale.constant)
        found = of_all_rows(found, seen.weighted.weight)
        self._family, self._scale = family, scale
        self._keep_result(found, scale)
        plain = plain_fit(standard, family, known=found.pooled)
        self._fit_final(rows, standard, found, plain)
        self.reference_ = measure(rows, _listed(rows, side, seen), seen)
        self.environment_summary_ = summarise(
            standard,
            family,
            found.partition,
            scale,
            self._row_losses(),
            plain,
            self._standard_line() if self.final_estimator is None else None,
            found.moments,
        )
        self._keep_environments(rows, standard, found.partition)
        if found.verdict == UNSTABLE:
            warnings.warn(f"{found.reason} Plain ERM is used.", UnstableWarning, stacklevel=2)
        return self

    def _search(
        self, standard: Blocks, family: Family, settings: SearchSettings, constant: BoolArray
    ) -> SearchResult:
        groups = feature_gates(feature_groups(self), standard.n_features, constant)
        # A column that is asked for keeps its group.
        asked = settings.kept(standard.n_features)
        settings = replace(settings, keep=np.isin(groups, groups[asked]))
        with single_blas_thread():  # many small products: threads would wait for each other
            return METHODS[self.method].search(standard, family, groups, settings)

    def _keep_environments(self, rows: Blocks, standard: Blocks, partition: Partition) -> None:
        """Keep what `environment_proba_` needs, for rows in memory."""
        self._partition, self._environment_proba, self._carried = partition, None, None
        if not isinstance(rows, ArrayBlocks):
            return
        if partition.needs_features:
            member = partial(membership, partition=partition)
            self._environment_proba = standard.collect(member)
        else:
            self._carried = rows.featureless()

    def predict_environments(self, X: Any, y: Any = None) -> IntArray:
        """(n,) environment each row most probably belongs to.

        Rows out of core are passed as to `fit`. For more of them than the answer should take
        memory for, see `hetrisk.estimators.predictions.write_environments`.
        """
        return self.predict_environment_proba(X, y).argmax(axis=1)

    def predict_environment_proba(self, X: Any, y: Any = None) -> FloatArray:
        """(n, K) probability that each row belongs to each environment."""
        check_is_fitted(self, "support_")
        return self._standardised(X, y).collect(partial(membership, partition=self._partition))

    @property
    def environment_proba_(self) -> FloatArray:
        """(n, K) probability that each training row belongs to each environment."""
        check_is_fitted(self, "support_")
        if self._environment_proba is None and self._carried is not None:
            self._environment_proba = membership(self._carried, self._partition)
        if self._environment_proba is None:
            raise AttributeError(
                "environment_proba_ and environments_ are not held for rows out of core; "
                "call predict_environments(X, y) on the rows of interest."
            )
        return self._environment_proba

    @property
    def environments_(self) -> IntArray:
        """(n,) environment of each training row: the most probable one."""
        return self.environment_proba_.argmax(axis=1)

    def _check_settings(self) -> None:
        if self.final_estimator is not None and not FORMS[self.form].leaves_columns:
            raise ValueError(
                f"form={self.form!r} shrinks the coefficients of a linear model; final_estimator "
                f"must be None, got {self.final_estimator!r}."
            )
        gates, defaults = METHODS[self.method].gates, inspect.signature(HRMBase.__init__).parameters
        only_auto, only_gates = (
            ("keep", "form"),
            ("invariance_penalty", "gate_penalty", "gate_noise"),
        )
        for name in only_auto if gates else only_gates:
            # Nothing to keep is nothing asked for.
            if np.size(given := getattr(self, name)) and np.any(given != defaults[name].default):
                raise ValueError(
                    f"{name} has no meaning with method={self.method!r}: leave it out or use "
                    f"method='{'auto' if gates else 'gates'}'; got {given!r}."
                )

    def _settings(self, rows: Blocks, side: SideInformation) -> SearchSettings:
        def given(value: Any) -> Any:
            return None if value == "auto" else value

        names = getattr(self, "feature_names_in_", None)
        groups = feature_groups(self)
        return SearchSettings(
            reach=float(self.reach),
            form=self.form,
            keep=kept_columns(kept(self), names, rows.n_features),
            environments=side.labels,
            hints=side.hints,
            feature_names=None if names is None else called(names, groups),
            n_environments=given(self.n_environments),
            max_rounds=self.max_rounds,
            invariance_penalty=given(self.invariance_penalty),
            gate_penalty=given(self.gate_penalty),
            gate_noise=self.gate_noise,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            verbose=print if self.verbose else silent,
            run=workers(self.n_jobs),
        )

    def _keep_result(self, found: SearchResult, scale: Scale) -> None:
        self.support_ = found.support & ~(scale.constant & FORMS[self.form].leaves_columns)
        self.gates_ = np.where(scale.constant, 0.0, found.gates)
        names = getattr(self, "feature_names_in_", ())
        self.evidence_ = replace(found.evidence, columns=tuple(map(str, names)))
        self.sources_ = found.sources
        self.reach_curve_ = found.curve.scaled(float(scale.spread[-1]))
        self.break_even_ = found.curve.break_even
        self.stability_, self.n_resamples_ = found.stability, found.n_resamples
        self.leave_one_out_ = tuple(
            replace(
                score,
                error=score.error * scale.spread[-1],
                error_erm=score.error_erm * scale.spread[-1],
                error_anchor=score.error_anchor * scale.spread[-1],
            )
            for score in found.leave_one_out
        )
        self.verdict_, self.verdict_reason_ = found.verdict, found.reason
        self.environment_labels_ = found.environment_names
        self.history_ = list(found.history)
        self.n_rounds_ = len({record.round for record in found.history})

    def _fit_final(
        self,
        rows: Blocks,
        standard: Blocks,
        found: SearchResult,
        plain: tuple[FloatArray, FloatArray],
    ) -> None:
        self.erm_coef_ = self._scale.coef(plain[0])
        self.erm_intercept_ = self._scale.intercept(*plain)
        if self.final_estimator is None:
            coef, intercept = linear_fit(standard, self._family, found, plain)
            if few_rows(rows, self.support_) and self._family.closed_form:
                self.verdict_reason_ += (
                    f" With {rows.n_rows} rows for {int(self.support_.sum())} columns it is fitted "
                    "with a ridge, chosen by cross-validation."
                )
            self.coef_ = self._scale.coef(coef)
            self.intercept_ = self._scale.intercept(coef, intercept)
            self.final_estimator_ = self._linear_model()
            return
        sample = rows.sample(FINAL_ROWS if not isinstance(rows, ArrayBlocks) else rows.n_rows, 0)
        target = self._labels(sample.y)
        self.final_estimator_ = fit_estimator(self.final_estimator, sample, self.support_, target)

    def _standard_line(self) -> tuple[Any, Any]:
        """Coefficients and intercept of the linear model on standardised rows."""
        coef = self.coef_ * self._scale.spread[:-1] / self._scale.spread[-1]
        shift = self.intercept_ + self.coef_ @ self._scale.centre[:-1] - self._scale.centre[-1]
        return coef, shift / self._scale.spread[-1]

    def _row_losses(self) -> Callable[[Rows], FloatArray]:
        if self.final_estimator is None:
            coef, intercept = self._standard_line()
            return partial(linear_losses, family=self._family, coef=coef, intercept=intercept)
        return partial(
            model_losses,
            model=self.final_estimator_,
            support=self.support_,
            scale=self._scale,
            labels=self._labels,
        )

    def _standardised(self, X: Any, y: Any) -> Blocks:
        """Rows as the search saw them."""
        rows = as_blocks(self, X, y, labels=is_classifier(self), reset=False)
        if is_classifier(self):
            rows = rows.encoded(self.classes_)
        return rows.standardised(self._scale.centre, self._scale.divisor)

    @abstractmethod
    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Blocks, Family]:
        """Rows in blocks, and the family of their target."""

    @abstractmethod
    def _linear_model(self) -> Any:
        """Return the linear model as a scikit-learn estimator on the selected columns."""

    def _on_support(self, name: str) -> Callable[[FloatArray], np.ndarray]:
        """Return a method of the final model, as a function of all columns."""
        check_is_fitted(self, "support_")
        method = getattr(self.final_estimator_, name)
        return partial(_selected, method=method, support=self.support_)

    def _labels(self, y: FloatArray) -> np.ndarray:
        return y


def _selected(X: FloatArray, method: Callable[[FloatArray], Any], support: BoolArray) -> np.ndarray:
    return np.asarray(method(X[:, support]))


def _listed(rows: Blocks, side: SideInformation, seen: Profile) -> Listed:
    """Name and share of each environment that the user named."""
    if rows.environment_labels is None:
        return side.named
    return listed_shares(rows.environment_labels, seen.environments)
