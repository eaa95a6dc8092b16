"""The methods of the tables: what each is called, how it is built, and what it is given.

A method is a line of `METHODS`. Its ``fit`` gets the task's training rows (and, if it says so,
their environment labels) and never anything of the test environments.
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
from hetrisk.estimators.backtest import BacktestClassifier, BacktestRegressor
from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
from hetrisk.estimators.stable import StableClassifier, StableRegressor
from hetrisk.reproduce import nonlinear

Build = Callable[[ShiftTask, int], Any]
ROWS, LABELS, COLUMN = "rows", "labels", "column"  # what a method is given of the environments
SIMULATED = ("selection_bias", "anti_causal", "cats_and_dogs")
TABLES = ("income", "house_price")
CAR = "car_insurance"
EVERYWHERE = (*SIMULATED, *TABLES, CAR)
KERNEL = nonlinear.TASKS


@dataclass(frozen=True)
class Method:
    """One row of a table.

    Attributes
    ----------
    label : what the row is called.
    paper : the paper's row it is compared with, or None.
    build : ``build(task, seed)`` returns an unfitted estimator.
    given : what ``fit`` gets beside the columns and y: nothing, the environment labels, or these
        as a further column of X, the last (a test environment is one not seen before).
    features : columns it may see, from the task; None for all of them.
    tasks : those it is run on.
    """

    label: str
    paper: str | None
    build: Build
    given: str = ROWS
    features: Callable[[ShiftTask], Any] | None = None
    tasks: tuple[str, ...] = EVERYWHERE

    def fit(self, task: ShiftTask, seed: int) -> Any:
        """Fit on the training rows of a task."""
        model = self.build(task, seed)
        X, y, environments = task.train
        X = X[:, self._columns(task)]
        if self.given == COLUMN:
            return model.fit(np.column_stack([X, environments]), y)
        if self.given == LABELS:
            return model.fit(X, y, environments=environments)
        return model.fit(X, y)

    def view(self, model: Any, task: ShiftTask) -> View:
        """Return the fitted model as seen by whoever has all columns of the task."""
        new = len(task.environment_names) if self.given == COLUMN else None
        return View(model, self._columns(task), new)

    def _columns(self, task: ShiftTask) -> Any:
        return slice(None) if self.features is None else self.features(task)


@dataclass(frozen=True)
class View:
    """A model that predicts from some of the columns; ``new`` is the code of a new environment."""

    model: Any
    columns: Any
    new: int | None = None

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict from all columns."""
        X = X[:, self.columns]
        if self.new is not None:
            X = np.column_stack([X, np.full(len(X), self.new)])
        predicted: np.ndarray = self.model.predict(X)
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


def _hrm(task: ShiftTask, seed: int, **parameters: Any) -> Any:
    kind = HRMRegressor if task.task_type == REGRESSION else HRMClassifier
    return kind(random_state=seed, **parameters)


def _stable(task: ShiftTask, seed: int, **parameters: Any) -> Any:
    kind = StableRegressor if task.task_type == REGRESSION else StableClassifier
    return kind(feature_groups=task.feature_groups, **parameters)


def _trees(task: ShiftTask, seed: int) -> Any:
    regression = task.task_type == REGRESSION
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(random_state=seed)


def _backtest(task: ShiftTask, seed: int) -> Any:
    kind = BacktestRegressor if task.task_type == REGRESSION else BacktestClassifier
    return kind(environment=task.train.X.shape[1], random_state=seed)


def _invariant(task: ShiftTask) -> Any:
    return task.invariant


# One run from Psi = X under penalties that are not chosen; and what the authors released, as far
# as it is a setting of ours: three environments, hard assignment.
FIXED: dict[str, Any] = {"n_environments": 2, "invariance_penalty": 10.0, "gate_penalty": 0.003}
RELEASED: dict[str, Any] = {**FIXED, "n_environments": 3, "assignment": "hard"}

METHODS: dict[str, Method] = {
    "mean": Method("Constant", None, _mean, tasks=(*EVERYWHERE, *KERNEL)),
    "erm": Method("ERM", "ERM", _erm, tasks=(*EVERYWHERE, *KERNEL)),
    "dro": Method("DRO", "DRO", _dro),
    "eiil": Method("EIIL", "EIIL", partial(_baseline, name="eiil")),
    "irm": Method("IRM (labels)", "IRM (labels)", partial(_baseline, name="irm"), given=LABELS),
    "hrm-s": Method("HRM-s (one round)", "HRM-s", partial(_hrm, max_rounds=1)),
    "hrm-released": Method("HRM, K = 3, hard, one run", "HRM", partial(_hrm, **RELEASED)),
    "hrm-fixed": Method("HRM, fixed penalties, one run", "HRM", partial(_hrm, **FIXED)),
    "hrm": Method("HRM (default)", "HRM", _hrm),
    "stable": Method("Stable columns", "HRM", _stable),
    "stable-copies": Method(
        *("Stable columns (assume_label_copies)", None, partial(_stable, assume_label_copies=True)),
        tasks=(CAR,),
    ),
    "trees": Method("Boosted trees", None, _trees, tasks=(*TABLES, *KERNEL)),
    "backtest": Method("Backtest (labels)", None, _backtest, given=COLUMN, tasks=TABLES),
    "kernel-erm": Method("Nystroem, ERM", None, nonlinear.kernel_erm, tasks=KERNEL),
    "kernel-hrm": Method("Nystroem, HRM", None, nonlinear.kernel_hrm, tasks=KERNEL),
    "directions": Method("Directions (labels)", None, nonlinear.directions, LABELS, tasks=KERNEL),
    "kernel-directions": Method(
        *("Nystroem, Directions (labels)", None, nonlinear.kernel_directions, LABELS), tasks=KERNEL
    ),
    "oracle": Method("Oracle", None, _erm, features=_invariant, tasks=SIMULATED),
}


def methods_for(task: str) -> tuple[str, ...]:
    """Names of the methods that are run on a task."""
    return tuple(name for name, method in METHODS.items() if task in method.tasks)
