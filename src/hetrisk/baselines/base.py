"""The scikit-learn face of the baselines: validate, solve, and translate the weights back.

A method is a `Method` that maps a `Problem` to weights; together with `LinearRegressorBase` or
`LinearClassifierBase` it becomes an estimator. Labels with more than two classes are learned
one class against the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hetrisk.baselines.choice import STRENGTH, Choice, choose, choose_by_environments, folds
from hetrisk.baselines.problem import Problem, problem_scale, with_ones
from hetrisk.baselines.risks import LogisticRisks, SquaredRisks
from hetrisk.blocks.labels import quoted
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.estimators.memberships import memberships
from hetrisk.estimators.scales import Scale


class Method(BaseEstimator, ABC):
    """A way from a problem to weights, with one strength that the rule of `choice` may choose.

    Attributes
    ----------
    strength : name of the parameter that holds the strength.
    values : strengths to choose from, weakest first.
    standardise : whether the method sees standardised columns; its objective must then be free
        of the columns' units, so that this only helps the optimiser.
    """

    strength: ClassVar[str]
    values: ClassVar[tuple[float, ...]]
    standardise: ClassVar[bool] = True
    random_state: int | None

    @abstractmethod
    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        """Weights for each of ``values``, weakest first; each may start from the one before."""

    @property
    def _parameter_constraints(self) -> dict[str, list[Any]]:
        return {self.strength: STRENGTH, "random_state": ["random_state"]}

    def _check(self) -> None:
        self._validate_params()

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

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike, environments: ArrayLike | None) -> Self:
        """Fit to rows that the face of the method, regression or classification, checks."""


class Penalised(Method):
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
        self._check()
        rows: tuple[FloatArray, np.ndarray] = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        features, target = rows[0], rows[1].astype(np.float64)
        scale = problem_scale(features, target, standardise=self.standardise)
        problem = Problem(
            with_ones(scale.features(features)),
            scale.target(target),
            _occupied(environments, len(target)),
            SquaredRisks,
            *_units(scale),
        )
        weights, choice = self._solve(problem)
        self.coef_, self.intercept_ = _original(scale, weights)
        self.choices_ = (choice,)
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
        self._check()
        rows: tuple[FloatArray, np.ndarray] = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(rows[1])
        self.classes_, codes = np.unique(rows[1], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes; got only one class, {quoted(self.classes_[0])}."
            )
        scale = problem_scale(rows[0], None, standardise=self.standardise)
        Z, shares = with_ones(scale.features(rows[0])), _occupied(environments, len(codes))
        targets = [codes == c for c in range(len(self.classes_))]
        solved = [
            self._solve(
                Problem(Z, target.astype(np.float64), shares, LogisticRisks, *_units(scale))
            )
            for target in (targets[1:] if len(targets) == 2 else targets)
        ]
        original = [_original(scale, weights) for weights, _ in solved]
        self.coef_ = np.stack([coef for coef, _ in original])
        self.intercept_ = np.array([intercept for _, intercept in original])
        self.choices_ = tuple(choice for _, choice in solved)
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


def _occupied(environments: ArrayLike | None, n_rows: int) -> FloatArray:
    """(n, K) responsibilities of the environments that have rows; one of all rows where None."""
    if environments is None:
        return np.ones((n_rows, 1))
    shares, _ = memberships(environments, n_rows)
    return shares[:, shares.sum(axis=0) > 0]


def _units(scale: Scale) -> tuple[float, float]:
    """Return the unit of the columns (of the first, where each has its own) and the target's."""
    return float(scale.spread[0]), float(scale.spread[-1])


def _original(scale: Scale, weights: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients and intercept in the user's units, from weights with the intercept last."""
    return scale.coef(weights[:-1]), float(scale.intercept(weights[:-1], weights[-1]))
