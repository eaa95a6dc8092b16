"""Heterogeneous risk minimisation as scikit-learn estimators: numbers, and labels.

What the two share is in `hetrisk.estimators.base`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted

from hetrisk.blocks import Blocks
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.estimators.base import METHODS, HRMBase, Method, UnstableWarning
from hetrisk.estimators.checks import (
    check_classification_rows,
    check_regression_rows,
)
from hetrisk.estimators.environments import EnvironmentSummary
from hetrisk.estimators.final import (
    linear_regression,
    logistic_regression,
)
from hetrisk.estimators.inputs import by_features

__all__ = [
    "METHODS",
    "EnvironmentSummary",
    "HRMClassifier",
    "HRMRegressor",
    "Method",
    "UnstableWarning",
]


class HRMRegressor(RegressorMixin, HRMBase):
    """Regression that keeps working when environments shift.

    Parameters
    ----------
    method : {"auto", "gates", "gates-literal"}, default="auto"
        "auto" finds environments (named, hinted, hidden) and decides by regret; "gates" is the
        joint loop of the paper with three additions: a penalty that gates cannot escape by
        shrinking, the round chosen by how it carries over to other environments, a refit on the
        open features; "gates-literal" is the paper without them.
    reach : float, default=4.0
        The shift to be prepared for: 0 nothing shifts (plain ERM), 1 the future is all like one
        environment seen, k the mechanism moves k times as far from the average. With "gates" it
        only prices the answer, which does not depend on it.
    form : {"columns", "directions"}, default="columns"
        Leave columns out, or shrink directions (for columns that are mixtures of causes, where
        named or hinted environments differ in how these lie and spread; without such environments
        columns leave all the same, as the reason says). Of named and hinted environments, columns
        leave only where they are to blame: next to nothing moves without them.
    n_environments : int or "auto", default="auto"
        With "gates": environments of a clustering.
    max_rounds : int, default=10
        With "gates": most rounds of clustering and selection; 1 is HRM-s.
    final_estimator : estimator or None, default=None
        Fitted on the columns that stay; None for least squares.
    invariance_penalty, gate_penalty : float or "auto", default="auto"
        With "gates": strength lambda of the penalty on gradients that differ between
        environments; price alpha of an open gate.
    gate_noise : float, default=0.1
        With "gates": standard deviation of the gates.
    feature_groups : array-like of shape (n_features,) or None, default=None
        A name or integer per column; columns of one group share a decision.
    keep : list of names or positions, bool array of shape (n_features,), or None, default=None
        Columns that never leave. Not with "gates", nor is another form.
    random_state : int, RandomState or None, default=None
        With "gates": seed of every random choice. "auto" gives the same answer whatever it is.
    n_jobs : int or None, default=None
        With "gates": threads for the clusterings tried in a round.
    verbose : int, default=0
        1 prints what the search does.

    Attributes
    ----------
    support_ : (d,) bool array
        Columns used.
    gates_ : (d,) array
        Soft mask in [0, 1].
    coef_, intercept_ : array, float
        The linear model on the user's scale, zero outside the support; only where
        ``final_estimator`` is None.
    erm_coef_, erm_intercept_ : array, float
        Those of plain ERM.
    verdict_ : {"invariant", "homogeneous", "unstable", "unsearched"}
        What was found. Only "invariant" differs from plain ERM: columns left, or directions
        were shrunk, which pays within the reach; copies of a label alone leave by assumption.
    verdict_reason_ : str
        The same in a few sentences.
    evidence_ : `hetrisk.core.result.Evidence`
        What decided about every column: prints as a table; ``evidence_.rows()`` for a frame.
    sources_ : tuple of `hetrisk.core.result.SourceRecord`
        Every source of environments looked at.
    reach_curve_ : `hetrisk.core.result.ReachCurve`
        Expected error against the reach, of this model and of plain ERM.
    break_even_ : float
        The reach from which on this model is the better one; infinite where none is known.
    stability_ : (d,) array
        Share of resamples in which each column left.
    n_resamples_ : int
        Of how many; 0 where there was nothing to resample, as for what leaves by assumption.
    leave_one_out_ : tuple
        Errors in each environment when it was left out of the fit; empty with fewer than three,
        once those too thin for their columns are merged.
    environments_, environment_proba_ : arrays
        Environment of each training row and the probabilities behind it; not held for rows out
        of core.
    environment_labels_ : tuple
        Their names.
    environment_summary_ : `EnvironmentSummary`
        The environments side by side.
    reference_ : `hetrisk.core.drift.reference.Reference`
        What the training rows looked like.
    history_ : list of `hetrisk.core.result.HistoryRecord`
        Every step.
    n_rounds_ : int
        Rounds.
    final_estimator_ : estimator
        The fitted final model on the columns that stayed.

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> task = load_task("selection_bias", seed=0)
    >>> X, y, shops = task.train.X, task.train.y, task.train.environments
    >>> model = HRMRegressor().fit(X, y, environments=shops)
    >>> model.verdict_
    'invariant'
    """

    def predict(self, X: Any) -> FloatArray:
        """(n,) predictions."""
        check_is_fitted(self, "support_")
        if self.final_estimator is None:
            line = partial(_line, coef=self.coef_, intercept=self.intercept_)
            return by_features(self, X, line)
        return by_features(self, X, self._on_support("predict"))

    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Blocks, Family]:
        return check_regression_rows(self, X, y, sample_weight, finite=False)

    def _linear_model(self) -> Any:
        self.intercept_ = float(self.intercept_)
        return linear_regression(self.coef_[self.support_], self.intercept_)


class HRMClassifier(ClassifierMixin, HRMBase):
    """Classification that keeps working when environments shift.

    Binary or multiclass, labels of any type. Parameters and attributes are those of
    `HRMRegressor`, with a logistic final model by default, and ``classes_``. ``coef_`` is
    (1, d) for two classes and (C, d) for more, as in scikit-learn.
    """

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels."""
        check_is_fitted(self, "support_")
        if self.final_estimator is None:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return by_features(self, X, self._on_support("predict"))

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C) probabilities of the classes."""
        check_is_fitted(self, "support_")
        if self.final_estimator is None:
            shares = partial(_class_shares, coef=self.coef_, intercept=self.intercept_)
            return by_features(self, X, shares)
        return by_features(self, X, self._on_support("predict_proba"))

    def _check(self, X: Any, y: Any, sample_weight: Any) -> tuple[Blocks, Family]:
        return check_classification_rows(self, X, y, sample_weight)

    def _linear_model(self) -> Any:
        self.coef_, self.intercept_ = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return logistic_regression(self.coef_[:, self.support_], self.intercept_, self.classes_)

    def _labels(self, y: FloatArray) -> np.ndarray:
        return self.classes_[y.astype(int)]


def _line(X: FloatArray, coef: FloatArray, intercept: float) -> FloatArray:
    return X @ coef + intercept


def _class_shares(X: FloatArray, coef: FloatArray, intercept: FloatArray) -> FloatArray:
    eta = X @ coef.T + intercept
    return softmax(eta if len(coef) > 1 else np.hstack([0 * eta, eta]))
