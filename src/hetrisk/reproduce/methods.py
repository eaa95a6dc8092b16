"""The methods of the tables: what each is called, how it is built, and what it is given.

A method is a line of `METHODS`. Its ``fit`` gets the task's training rows (and, if it says so,
their environment labels or hints of them) and never anything of the test environments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.baselines import BASELINES
from hetrisk.datasets.task import REGRESSION, ShiftTask
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor

Build = Callable[[ShiftTask, int], Any]
ROWS, HINTED, TOLD = "not told", "hinted", "told"  # what a method knows of the environments
WRONG = 0.2  # share of hints that are drawn at random


@dataclass(frozen=True)
class Method:
    """One row of a table.

    Attributes
    ----------
    label : what the row is called.
    paper : the paper's row it is compared with, or None.
    build : ``build(task, seed)`` returns an unfitted estimator.
    given : what ``fit`` is given beside X and y: nothing, hints (environment labels, a fifth of
        them replaced at random), or the environment labels.
    features : columns it may see, from the task; None for all of them.
    """

    label: str
    paper: str | None
    build: Build
    given: str = ROWS
    features: Callable[[ShiftTask], Any] | None = None

    def fit(self, task: ShiftTask, seed: int) -> Any:
        """Fit on the training rows of a task."""
        model = self.build(task, seed)
        X, y, environments = task.train
        X = X[:, self._columns(task)]
        if self.given == HINTED:
            return model.fit(X, y, hints=hints_of(task, seed))
        return model.fit(X, y, environments=environments) if self.given == TOLD else model.fit(X, y)

    def view(self, model: Any, task: ShiftTask) -> Predictor:
        """Return the fitted model as seen by whoever has all columns of the task."""
        return Predictor(model, self._columns(task))

    def _columns(self, task: ShiftTask) -> Any:
        return slice(None) if self.features is None else self.features(task)


def hints_of(task: ShiftTask, seed: int) -> np.ndarray:
    """(n,) environment of each training row, but for a fifth of the rows, drawn at random."""
    rng = np.random.default_rng(seed)
    environments = task.train.environments
    drawn = rng.integers(0, len(task.environment_names), len(environments))
    return np.where(rng.random(len(environments)) < WRONG, drawn, environments)


@dataclass(frozen=True)
class Predictor:
    """A model that predicts from some of the columns."""

    model: Any
    columns: Any

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict from all columns."""
        predicted: np.ndarray = self.model.predict(X[:, self.columns])
        return predicted


def _mean(task: ShiftTask, seed: int) -> Any:
    return DummyRegressor() if task.task_type == REGRESSION else DummyClassifier()


def _erm(task: ShiftTask, seed: int) -> Any:
    if task.task_type == REGRESSION:
        return LinearRegression()
    # Next to no penalty: just enough for separable classes to have a solution.
    return LogisticRegression(C=1e4, solver="newton-cholesky", max_iter=500)


def _baseline(task: ShiftTask, seed: int, name: str) -> Any:
    kind = BASELINES[name]
    model = kind.regressor if task.task_type == REGRESSION else kind.classifier
    seeded = {"random_state": seed} if "random_state" in model().get_params() else {}
    return model(**seeded)


def _dro(task: ShiftTask, seed: int) -> Any:
    """DRO on standardised columns: its distances are in the columns' units."""
    return make_pipeline(StandardScaler(), _baseline(task, seed, "dro"))


def hrm_model(task: ShiftTask, seed: int, trees: bool = False, **parameters: Any) -> Any:
    regression = task.task_type == REGRESSION
    if trees:
        boosted = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
        parameters["final_estimator"] = boosted(random_state=seed)
    kind = HRMRegressor if regression else HRMClassifier
    return kind(feature_groups=task.feature_groups, random_state=seed, **parameters)


def _invariant(task: ShiftTask) -> Any:
    return task.invariant


def _labelled(name: str) -> Build:
    return partial(_baseline, name=name)


METHODS: dict[str, Method] = {
    "mean": Method("Mean predictor", None, _mean),
    "erm": Method("ERM", "ERM", _erm),
    "ridge-1se": Method("Ridge, one standard error", None, _labelled("ridge-1se")),
    "dro": Method("DRO", "DRO", _dro),
    "eiil": Method("EIIL", "EIIL", _labelled("eiil")),
    "anchor": Method("Anchor regression (labels)", None, _labelled("anchor"), given=TOLD),
    "irm": Method("IRM (labels)", "IRM (labels)", _labelled("irm"), given=TOLD),
    "vrex": Method("V-REx (labels)", None, _labelled("vrex"), given=TOLD),
    "group-dro": Method("GroupDRO (labels)", None, _labelled("group-dro"), given=TOLD),
    "hrm-s": Method("HRM-s", "HRM-s", partial(hrm_model, method="gates", max_rounds=1)),
    "hrm-gates": Method("HRM (gates)", "HRM", partial(hrm_model, method="gates")),
    "hrm": Method("HRM (default)", "HRM", hrm_model),
    "hrm-trees": Method("HRM (default) + boosted trees", None, partial(hrm_model, trees=True)),
    "oracle": Method("Oracle", None, _erm, features=_invariant),
}
REAL_METHODS = tuple(name for name in METHODS if name != "oracle")  # the truth is unknown there
