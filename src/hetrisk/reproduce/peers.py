"""Other people's methods as estimators of ours: anchor regression and invariant prediction.

They need the extra ``peers`` (``pip install 'hetrisk[peers]'``); without it, or where a method
cannot be run, fitting says why.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.datasets.task import REGRESSION
from hetrisk.reproduce.records import NotApplicable

PEERS = ("ivmodels", "causalicp")
MOST_TESTS = 2500  # sets of columns times environments that invariant prediction goes through


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise ImportError(f"{package} is not installed: pip install 'hetrisk[peers]'.") from error


class PeerAnchorRegression(BaseEstimator):
    """Anchor regression of ``ivmodels``, the environment as a categorical anchor.

    Parameters
    ----------
    gamma : weight of the environments' mean residuals; 1 is least squares.
    task_type : of two classes the second is fitted as 1, the first as 0.
    """

    def __init__(self, gamma: float = 5.0, task_type: str = REGRESSION) -> None:
        self.gamma = gamma
        self.task_type = task_type

    def fit(self, X: FloatArray, y: np.ndarray, environments: IntArray) -> Self:
        """Fit on rows with the environment of each."""
        models = _library("ivmodels.models")
        codes = np.unique(environments, return_inverse=True)[1]
        anchors = np.eye(codes.max() + 1)[codes][:, 1:]
        target = np.asarray(y, dtype=np.float64) if self.task_type == REGRESSION else self._code(y)
        self.model_ = models.AnchorRegression(gamma=self.gamma).fit(X, target, Z=anchors)
        return self

    def _code(self, y: np.ndarray) -> FloatArray:
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise NotApplicable(f"anchor regression has no {len(self.classes_)} classes.")
        return codes.astype(np.float64)

    def predict(self, X: FloatArray) -> np.ndarray:
        """Predict numbers, or the class whose code is nearer."""
        value: np.ndarray = self.model_.predict(X)
        return value if self.task_type == REGRESSION else self.classes_[(value > 0.5).astype(int)]


class PeerInvariantPrediction(BaseEstimator):
    """Least squares on the parents that ``causalicp`` finds (Peters et al. 2016).

    Where no column is in every accepted set, or no set is accepted, the mean is predicted: that is
    what the method then has to say.

    Parameters
    ----------
    level : of the tests.
    task_type : it tests residuals of numbers, so labels are refused.
    """

    def __init__(self, level: float = 0.05, task_type: str = REGRESSION) -> None:
        self.level = level
        self.task_type = task_type

    def fit(self, X: FloatArray, y: np.ndarray, environments: IntArray) -> Self:
        """Fit on rows with the environment of each."""
        library = _library("causalicp")
        if self.task_type != REGRESSION:
            raise NotApplicable("causalicp tests residuals of numbers, not of labels.")
        d, known = X.shape[1], np.unique(environments)
        if 2**d * len(known) > MOST_TESTS:
            raise NotApplicable(
                f"2^{d} sets of columns in {len(known)} environments are more than the "
                f"{MOST_TESTS:,} tests it is given here."
            )
        rows = np.column_stack([X, y])
        found = library.fit([rows[environments == e] for e in known], d, alpha=self.level)
        self.support_ = np.isin(np.arange(d), sorted(found.estimate or ()))
        self.constant_ = float(np.mean(y))
        if self.support_.any():
            self.model_ = LinearRegression().fit(X[:, self.support_], y)
        return self

    def predict(self, X: FloatArray) -> np.ndarray:
        """Predict from the parents, or the mean where there are none."""
        if not self.support_.any():
            return np.full(len(X), self.constant_)
        predicted: np.ndarray = self.model_.predict(X[:, self.support_])
        return predicted
