"""What estimators of a linear model share: checks, shapes, predictions, environments of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.families import Bernoulli, Family, Gaussian, Multinomial
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.predictor import IDENTITY, SOFTMAX, Inputs, LinearPart, Predictor, single
from hetrisk.estimators.inputs import as_blocks, by_features, check_classes

MOST_COEFFICIENTS = 10_000  # of a multinomial: their curvature alone takes 800 MB


class LinearModel(BaseEstimator, ABC):
    """What a fit asks of the kind of target, numbers or labels."""

    predictor_: Predictor | None

    def _check(
        self, X: Any, y: Any, sample_weight: Any, environments: FloatArray | None = None
    ) -> tuple[Blocks, Family]:
        """Rows in blocks, and the family of their target."""
        labels = is_classifier(self)
        rows = as_blocks(self, X, y, sample_weight, environments=environments, labels=labels)
        return self._read(rows)

    @abstractmethod
    def _read(self, rows: Blocks) -> tuple[Blocks, Family]:
        """Rows with numbers for their target, and its family."""

    @abstractmethod
    def _keep(self, coef: FloatArray, intercept: FloatArray) -> None:
        """Set ``coef_``, ``intercept_`` and ``predictor_``."""


class LinearRegressor(RegressorMixin):
    """Numbers: ``coef_`` (d,), ``intercept_`` and ``predictor_``."""

    predictor_: Predictor | None

    def predict(self, X: Any) -> FloatArray:
        """(n,) predictions."""
        return _predicted(self, X)[:, 0]

    def _read(self, rows: Blocks) -> tuple[Blocks, Family]:
        return rows, Gaussian()

    def _keep(self, coef: FloatArray, intercept: FloatArray) -> None:
        self.coef_, self.intercept_ = coef, float(intercept)
        self.predictor_ = _predictor(coef[None], np.array([self.intercept_]), IDENTITY)


class LinearClassifier(ClassifierMixin):
    """Labels: ``coef_`` and ``intercept_`` in scikit-learn's shapes, ``predictor_``."""

    classes_: np.ndarray
    predictor_: Predictor | None

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels."""
        check_is_fitted(self, "support_")
        labels: np.ndarray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C) probabilities of the classes."""
        return _predicted(self, X)

    def _read(self, rows: Blocks) -> tuple[Blocks, Family]:
        self.classes_ = check_classes(rows.labels())
        n_classes = len(self.classes_)
        coefficients = (n_classes - 1) * (rows.n_features + 1)
        if n_classes > 2 and coefficients > MOST_COEFFICIENTS:
            raise ValueError(
                f"y must hold fewer classes: {n_classes} on {rows.n_features} columns make "
                f"{coefficients:,} coefficients, more than the {MOST_COEFFICIENTS:,} that can be "
                "fitted together. Merge classes, or is y a number?"
            )
        family = Bernoulli() if n_classes == 2 else Multinomial(n_classes)
        return rows.encoded(self.classes_), family

    def _keep(self, coef: FloatArray, intercept: FloatArray) -> None:
        self.coef_, self.intercept_ = np.atleast_2d(coef), np.atleast_1d(intercept)
        scores, shift = self.coef_, self.intercept_
        if len(scores) == 1:  # the first of two classes is the reference
            scores, shift = np.vstack([0 * scores, scores]), np.append(0.0, shift)
        self.predictor_ = _predictor(scores, shift, SOFTMAX)


class WithEnvironments(LinearModel):
    """Environments of rows: a fit sets the three attributes below."""

    _scale: Any
    _memberships: Any  # block of standardised rows -> (n, K) probabilities
    _environment_proba: FloatArray | None  # of the training rows, or (n,) codes; None out of core

    def predict_environment_proba(self, X: Any, y: Any = None) -> FloatArray:
        """(n, K) probability that rows belong to each environment, by how y answers to X."""
        check_is_fitted(self, "support_")
        rows = as_blocks(self, X, y, labels=is_classifier(self), reset=False)
        if is_classifier(self):
            rows = rows.encoded(self.classes_)
        standard = rows.standardised(self._scale.centre, self._scale.divisor)
        return standard.collect(self._memberships)

    def predict_environments(self, X: Any, y: Any = None) -> IntArray:
        """(n,) environment each row most probably belongs to."""
        return self.predict_environment_proba(X, y).argmax(axis=1)

    @property
    def environment_proba_(self) -> FloatArray:
        """(n, K) probability that each training row belongs to each environment."""
        check_is_fitted(self, "support_")
        if self._environment_proba is None:
            raise AttributeError(
                "environment_proba_ and environments_ are not held for rows out of core; "
                "call predict_environments(X, y) on the rows of interest."
            )
        if self._environment_proba.ndim == 2:
            return self._environment_proba
        codes = self._environment_proba.astype(np.int64)
        return np.eye(self._n_environments + 1)[codes][:, : self._n_environments]

    @property
    def environments_(self) -> IntArray:
        """(n,) environment of each training row: the most probable one; -1 for none."""
        share = self.environment_proba_
        return np.where(share.sum(axis=1) > 0, share.argmax(axis=1), -1)


def _predictor(coef: FloatArray, intercept: FloatArray, link: str) -> Predictor:
    return single(LinearPart(coef.T.copy(), intercept, np.zeros(len(intercept))), link=link)


def _predicted(model: Any, X: Any) -> FloatArray:
    """(n, 1) numbers, or (n, C) probabilities."""
    check_is_fitted(model, "support_")
    return by_features(model, X, partial(_of, predictor=model.predictor_))


def _of(X: FloatArray, predictor: Predictor) -> FloatArray:
    return predictor.predict(Inputs(X))
