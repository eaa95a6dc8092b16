"""The scikit-learn face of the baselines: validate, solve, and translate the weights back.

A method is a `Method` that maps a `Problem` to weights; together with `LinearRegressorBase` or
`LinearClassifierBase` it becomes an estimator. Labels with more than two classes are learned
one class against the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hetrisk.baselines.choice import STRENGTH, Choice, choose, choose_by_environments, folds
from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import LogisticRisks, Risks, SquaredRisks
from hetrisk.blocks.labels import quoted
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.numerics.spread import column_spread
from hetrisk.estimators.memberships import memberships
from hetrisk.estimators.scales import Scale, scale_of


class Method(BaseEstimator, ABC):
    """A way from a problem to weights.

    Attributes
    ----------
    strength : name of the parameter that holds the strength, where there is one to choose.
    standardise : whether the method sees standardised columns; its objective must then be free
        of the columns' units, so that this only helps the optimiser.
    """

    strength: ClassVar[str] = ""
    standardise: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def _solve(self, problem: Problem) -> tuple[FloatArray, Choice | None]:
        """Weights, the intercept last, and how their strength was chosen."""

    def _scale(self, X: FloatArray, y: FloatArray) -> Scale:
        """Centre and spread of the columns; without ``standardise`` they keep their units."""
        scale = scale_of(column_spread(Rows(X, y, np.ones(len(X)))))
        return scale if self.standardise else replace(scale, spread=np.ones_like(scale.spread))

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike, environments: ArrayLike | None) -> Self:
        """Fit to rows that the face of the method, regression or classification, checks."""


class Tuned(Method):
    """A method with one strength that the rule of `choice` may choose.

    Attributes
    ----------
    values : strengths to choose from, weakest first.
    """

    values: ClassVar[tuple[float, ...]]
    random_state: int | None

    @abstractmethod
    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        """Weights for each of ``values``, weakest first; each may start from the one before."""

    @property
    def _parameter_constraints(self) -> dict[str, list[Any]]:  # type: ignore[override]
        return {self.strength: STRENGTH, "random_state": ["random_state"]}

    def _solve(self, problem: Problem) -> tuple[FloatArray, Choice]:
        given = getattr(self, self.strength)
        if isinstance(given, str):
            choice = self._choose(problem)
        else:
            choice = Choice(float(given), np.empty(0), np.empty(0), 0.0)
        ladder = [value for value in self.values if value < choice.value]
        return self._path(problem, [*ladder, choice.value])[-1], choice

    def _choose(self, problem: Problem) -> Choice:
        environment = np.unique(problem.environments.argmax(axis=1), return_inverse=True)[1]
        if environment.max() > 1:
            return choose_by_environments(self.values, environment, partial(self._risks, problem))
        strata = environment
        if problem.family.labels:
            strata = 2 * strata + problem.y.astype(np.int64)
        fold = folds(strata, self.random_state)
        return choose(self.values, fold, partial(self._risks, problem))

    def _risks(self, problem: Problem, train: IntArray, test: IntArray) -> FloatArray:
        """(n_values, K) risks of every strength fitted on some rows, on others."""
        return problem.take(test).held_out_risks(self._path(problem.take(train), self.values))


class Penalised(Tuned):
    """A method whose strength is a penalty."""

    strength = "penalty"

    def __init__(
        self, penalty: float | Literal["auto"] = "auto", *, random_state: int | None = 0
    ) -> None:
        self.penalty = penalty
        self.random_state = random_state


class Labelled(Method):
    """A method that is told the environments."""

    def fit(self, X: ArrayLike, y: ArrayLike, *, environments: ArrayLike | None = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : (n, d) features.
        y : (n,) targets or labels.
        environments : a label per row or (n, K) responsibilities. Without them all rows share
            one environment, in which nothing differs.
        """
        return self._fit(X, y, environments=environments)


class Unlabelled(Method):
    """A method that is told nothing but the rows."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit.

        Parameters
        ----------
        X : (n, d) features.
        y : (n,) targets or labels.
        """
        return self._fit(X, y, None)


class LinearRegressorBase(RegressorMixin, Method):
    """Least squares face: ``coef_`` (d,), ``intercept_``, ``choices_`` (one `Choice`)."""

    def _fit(self, X: ArrayLike, y: ArrayLike, environments: ArrayLike | None) -> Self:
        self._validate_params()
        rows: tuple[FloatArray, np.ndarray] = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        features, target = rows[0], rows[1].astype(np.float64)
        scale = self._scale(features, target)
        problem = _problem(scale, features, scale.target(target), environments, SquaredRisks)
        weights, choice = self._solve(problem)
        self.coef_, self.intercept_ = _original(scale, weights)
        self.choices_ = () if choice is None else (choice,)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : (n, d) features.
        """
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        predicted: FloatArray = rows @ self.coef_ + self.intercept_
        return predicted


class LinearClassifierBase(ClassifierMixin, Method):
    """Logistic face: ``classes_``, ``coef_`` (1 or C, d), ``intercept_``, ``choices_``."""

    def _fit(self, X: ArrayLike, y: ArrayLike, environments: ArrayLike | None) -> Self:
        self._validate_params()
        rows: tuple[FloatArray, np.ndarray] = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(rows[1])
        self.classes_, codes = np.unique(rows[1], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes; got only one class, {quoted(self.classes_[0])}."
            )
        scale = self._scale(rows[0], np.zeros(len(codes)))
        first = _problem(scale, rows[0], np.zeros(len(codes)), environments, LogisticRisks)
        targets = [(codes == c).astype(np.float64) for c in range(len(self.classes_))]
        solved = [
            self._solve(replace(first, y=target))
            for target in (targets[1:] if len(targets) == 2 else targets)
        ]
        original = [_original(scale, weights) for weights, _ in solved]
        self.coef_ = np.stack([coef for coef, _ in original])
        self.intercept_ = np.array([intercept for _, intercept in original])
        self.choices_ = tuple(choice for _, choice in solved if choice is not None)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Log odds: (n,) for two classes, (n, C) of each class against the rest otherwise.

        Parameters
        ----------
        X : (n, d) features.
        """
        check_is_fitted(self)
        rows: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        scores: FloatArray = rows @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """(n, C) probabilities of the classes.

        Parameters
        ----------
        X : (n, d) features.
        """
        p: FloatArray = special.expit(self.decision_function(X))
        if len(self.classes_) == 2:
            return np.column_stack([1 - p, p])
        total = p.sum(axis=1, keepdims=True)
        even = np.full_like(p, 1 / p.shape[1])
        shares: FloatArray = np.divide(p, total, out=even, where=total > 0)
        return shares

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict classes.

        Parameters
        ----------
        X : (n, d) features.
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        classes: np.ndarray[Any, Any] = self.classes_[chosen]
        return classes


def _problem(
    scale: Scale, X: FloatArray, y: FloatArray, environments: ArrayLike | None, family: type[Risks]
) -> Problem:
    """Rows on their scale; environments without rows are left out, and None is one of all rows."""
    shares = np.ones((len(y), 1))
    if environments is not None:
        shares, _ = memberships(environments, len(y))
    Z = np.column_stack([scale.features(X), np.ones(len(y))])
    return Problem(Z, y, shares[:, shares.sum(axis=0) > 0], family)


def _original(scale: Scale, weights: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients and intercept in the user's units, from weights with the intercept last."""
    return scale.coef(weights[:-1]), float(scale.intercept(weights[:-1], weights[-1]))
