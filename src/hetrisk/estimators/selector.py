"""The search for invariant features as a transformer."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from hetrisk.blocks import is_out_of_core
from hetrisk.core.numerics.rows import BoolArray
from hetrisk.estimators.base import HRMBase
from hetrisk.estimators.frames import encoded
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor

TASKS = {"regression": HRMRegressor, "classification": HRMClassifier}


class HRMSelector(SelectorMixin, BaseEstimator):
    """Select the columns whose relation to the target holds in every environment.

    The search of `HRMRegressor` and `HRMClassifier` as a transformer for pipelines.

    Parameters
    ----------
    method, reach, form, n_environments, max_rounds, invariance_penalty, gate_penalty, gate_noise, \
feature_groups, keep, random_state, n_jobs, verbose : as in `HRMRegressor`.
    task : ``"regression"``, ``"classification"``, or ``"auto"``: regression when y is
        continuous, classification when y is labels (integers included); rows out of core
        need it said.

    Attributes
    ----------
    support_, gates_, evidence_, sources_, reach_curve_, break_even_, stability_, n_resamples_, \
leave_one_out_, verdict_, verdict_reason_, history_, n_rounds_ : as in `HRMRegressor`.
    estimator_ : the fitted `HRMRegressor` or `HRMClassifier` behind the selection.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in HRMBase._parameter_constraints.items() if k != "final_estimator"},
        "task": [StrOptions({"auto", *TASKS})],
    }

    def __init__(
        self,
        method: str = "auto",
        reach: float = 4.0,
        form: str = "columns",
        n_environments: int | str = "auto",
        max_rounds: int = 10,
        invariance_penalty: float | str = "auto",
        gate_penalty: float | str = "auto",
        gate_noise: float = 0.1,
        feature_groups: Any = None,
        keep: Any = None,
        task: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.reach = reach
        self.form = form
        self.n_environments = n_environments
        self.max_rounds = max_rounds
        self.invariance_penalty = invariance_penalty
        self.gate_penalty = gate_penalty
        self.gate_noise = gate_noise
        self.feature_groups = feature_groups
        self.keep = keep
        self.task = task
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
    ) -> HRMSelector:
        """Search for environments and select the columns whose relation to y holds in all.

        Parameters
        ----------
        X, y, environments, hints, sample_weight : as in `HRMRegressor.fit`.

        Returns
        -------
        self
        """
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "task"}
        self.estimator_ = TASKS[self._task(X, y)](**parameters)
        self.estimator_.fit(X, y, environments, hints, sample_weight)
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        for name in (
            "support_",
            "gates_",
            "evidence_",
            "sources_",
            "reach_curve_",
            "break_even_",
            "stability_",
            "n_resamples_",
            "leave_one_out_",
            "verdict_",
            "verdict_reason_",
            "history_",
            "n_rounds_",
        ):
            setattr(self, name, getattr(self.estimator_, name))
        return self

    def transform(self, X: Any) -> Any:
        """Return the selected features; a frame that was encoded to be fitted is encoded again."""
        check_is_fitted(self)
        return super().transform(encoded(self.estimator_, X, reset=False))

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
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
