"""A task under shift: rows to learn from, and environments to be tested in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

REGRESSION = "regression"
CLASSIFICATION = "classification"
TASK_TYPES = (REGRESSION, CLASSIFICATION)


class Labelled(NamedTuple):
    """Rows with the environment each came from (a code into ``ShiftTask.environment_names``)."""

    X: FloatArray
    y: np.ndarray
    environments: IntArray


class Sample(NamedTuple):
    """Rows of one environment."""

    X: FloatArray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class ShiftTask:
    """Training rows, test environments, and what is known of the truth.

    Attributes
    ----------
    name : of the task, as `load_task` knows it.
    task_type : ``"regression"`` or ``"classification"``.
    train : X, y and environments (integer codes). Only methods that are given labels may look
        at the last.
    test : environment name -> (X, y), in the order of the table or figure.
    feature_names : (d,) names of the columns.
    feature_groups : (d,) integers; columns with the same one stand or fall together (the
        one-hot columns of one category).
    environment_names : names of the codes in ``train.environments``.
    invariant : (d,) the truly invariant features that y depends on, or None where unknown
        (real data).
    identifiable : (d,) features whose status the training rows can settle, or None where
        unknown. A column is *not* identifiable when the population's partial correlation with y
        given the others is within four standard errors of zero at this sample size: pure noise
        columns, and features whose coefficient happened to be drawn near zero. Whether a method
        keeps such a column makes no difference, so `recovered` does not look at it.
    setting : every parameter the task was made with, the seed included.
    """

    name: str
    task_type: str
    train: Labelled
    test: Mapping[str, Sample]
    feature_names: tuple[str, ...]
    feature_groups: IntArray
    environment_names: tuple[str, ...]
    invariant: BoolArray | None = None
    identifiable: BoolArray | None = None
    setting: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.train.X.shape[1])

    def recovered(self, support: np.ndarray) -> bool | None:
        """Say whether ``support`` is the invariant set on every identifiable feature.

        None where the truth is unknown.
        """
        if self.invariant is None:
            return None
        support = np.asarray(support, dtype=bool)
        if support.shape != self.invariant.shape:
            raise ValueError(
                f"support must have shape {self.invariant.shape}; got {support.shape}."
            )
        scored = np.ones(len(support), bool) if self.identifiable is None else self.identifiable
        return bool(np.array_equal(support[scored], self.invariant[scored]))


def pool(samples: Mapping[str, Sample], rng: np.random.Generator) -> Labelled:
    """Pool environments into one table, in random order; codes follow the mapping's order."""
    X = np.concatenate([sample.X for sample in samples.values()])
    y = np.concatenate([sample.y for sample in samples.values()])
    environments = np.repeat(np.arange(len(samples)), [len(s.y) for s in samples.values()])
    order = rng.permutation(len(y))
    return Labelled(X[order], y[order], environments[order])
