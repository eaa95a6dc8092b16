"""The cases of Kernelized HRM (Liu et al., NeurIPS 2021): our linear methods on kernel features."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.baselines import DirectionsClassifier, DirectionsRegressor
from hetrisk.datasets.task import REGRESSION, ShiftTask
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor

TASKS = ("copied_label", "selected_on_target")
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "copied labels .7/.9": ("copied_label", {"rates": (0.7, 0.9)}),
    "copied labels .7/.9, rotated": ("copied_label", {"rates": (0.7, 0.9), "rotated": True}),
    "copied labels .8/.9": ("copied_label", {"rates": (0.8, 0.9)}),
    "copied labels .8/.9, rotated": ("copied_label", {"rates": (0.8, 0.9), "rotated": True}),
    "selection, rotated (RMSE)": ("selected_on_target", {"rotated": True}),
}
REACH = 10.0  # the tests are 7 to 15 times as far as the environments are apart


class Lifted(BaseEstimator):
    """A linear method on the features of a radial kernel (Nystroem), the width scikit-learn's."""

    def __init__(self, model: Any, n_components: int = 50, random_state: int | None = None) -> None:
        self.model = model
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **given: Any) -> Self:
        """Fit the kernel's features, and the method on them."""
        lift = Nystroem(n_components=self.n_components, random_state=self.random_state)
        self.lift_ = make_pipeline(StandardScaler(), lift)
        self.model_ = clone(self.model).fit(self.lift_.fit_transform(X), y, **given)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(n,) predictions."""
        predicted: np.ndarray = self.model_.predict(self.lift_.transform(X))
        return predicted


def linear(task: ShiftTask, seed: int, regressor: Any, classifier: Any, lift: bool = True) -> Any:
    """One of two methods, whichever fits the target, on kernel features or on the columns."""
    model = (regressor if task.task_type == REGRESSION else classifier)()
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return Lifted(model, random_state=seed) if lift else model


_DIRECTIONS: dict[str, Any] = {
    "regressor": partial(DirectionsRegressor, reach=REACH),
    "classifier": partial(DirectionsClassifier, reach=REACH),
}
directions = partial(linear, **_DIRECTIONS, lift=False)
kernel_directions = partial(linear, **_DIRECTIONS)
kernel_erm = partial(linear, regressor=LinearRegression, classifier=LogisticRegression)
kernel_hrm = partial(linear, regressor=HRMRegressor, classifier=HRMClassifier)
