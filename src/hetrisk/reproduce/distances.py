"""How far apart environments are: the true ones, those of the first round, the learned ones.

Environments are told apart by P(Y given Psi), the relation of the target to the variant features:
it is what the search clusters on and what the shift changes, so the distance that tests the claim
is taken on those features (known in a simulation). On all features together a partition can look
wide merely by splitting the residuals of a misspecified model; that distance is recorded too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk import metrics
from hetrisk.datasets.task import ShiftTask
from hetrisk.reproduce.methods import METHODS

TRUE, FIRST, LAST = "true", "first round", "learned"
VARIANT, ALL = "variant features", "all features"
LEARNED = {FIRST: "hrm-s", LAST: "hrm"}


def measured_distances(task: ShiftTask, seed: int) -> dict[str, Any]:
    """Distance matrices by the features compared, then by whose environments they are."""
    if task.invariant is None:
        raise ValueError(f"the variant features of the task {task.name!r} are not known.")
    X, y, environments = task.train
    given: dict[str, Any] = {TRUE: environments}
    for name, method in LEARNED.items():
        given[name] = METHODS[method].fit(task, seed).environment_proba_
    views = {VARIANT: X[:, ~task.invariant], ALL: X}
    return {
        features: {
            name: metrics.environment_distance(
                _occupied(which), view, y, task_type=task.task_type
            ).tolist()
            for name, which in given.items()
        }
        for features, view in views.items()
    }


def _occupied(environments: np.ndarray) -> np.ndarray:
    """Leave out environments without rows."""
    if environments.ndim == 1:
        return environments
    return environments[:, environments.sum(axis=0) > 0]


def mean_distance(matrix: list[list[float]]) -> float:
    """Mean distance between two different environments; 0 if there is only one."""
    distances = np.asarray(matrix)
    pairs = distances[np.triu_indices(len(distances), k=1)]
    return float(pairs.mean()) if len(pairs) else 0.0
