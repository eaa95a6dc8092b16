"""Invariant risk minimisation (Arjovsky et al., arXiv:1907.02893), the IRMv1 objective.

minimise  mean_e R_e(w)  +  penalty * mean_e D_e(w)^2,

where D_e(w) = w'grad R_e(w) is the derivative of R_e(s w) in a dummy scale s at s = 1: where it
vanishes, no environment wants the predictor stretched or shrunk. As published, every
environment counts once whatever its size, so a penalty of 0 is ERM with the environments
brought to equal weight. The target of a regression is standardised, so that the penalty has no
units.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hetrisk.baselines.base import Labelled, LinearClassifierBase, LinearRegressorBase, Penalised
from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import Risks, minima
from hetrisk.core.numerics.rows import FloatArray

PENALTIES = (0.0, *(float(10.0**k) for k in range(-2, 6)))


def irm_objective(w: FloatArray, risks: Risks, penalty: float) -> tuple[float, FloatArray]:
    """IRMv1 and its gradient, both divided by 1 + penalty to keep their size in bounds."""
    at = risks.evaluate(w)
    k = len(at.risk)
    scale = at.gradient @ w
    scale_gradient = at.gradient + risks.curvature(w, np.broadcast_to(w, at.gradient.shape))
    value = float(risks.even @ at.risk + penalty * scale @ scale / k)
    gradient = risks.even @ at.gradient + 2 * penalty * scale @ scale_gradient / k
    return value / (1 + penalty), gradient / (1 + penalty)


def irm_path(risks: Risks, penalties: Sequence[float]) -> list[FloatArray]:
    """Weights for increasing penalties, each started where the one before ended.

    The objective is not convex (w = 0 has no penalty at all): following the path from ERM
    on balanced environments keeps to the branch that predicts.
    """
    objectives = [
        partial(irm_objective, risks=risks, penalty=penalty) if penalty > 0 else None
        for penalty in penalties
    ]
    return minima(objectives, risks.minimiser(risks.even))


class _IRM(Penalised, Labelled):
    values = PENALTIES

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        return irm_path(problem.risks(), values)


class IRMRegressor(_IRM, LinearRegressorBase):
    """Linear regression whose scale is right in every labelled environment (IRMv1).

    Parameters
    ----------
    penalty : strength of invariance; 0 is least squares on environments of equal weight.
        "auto" chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> X, y, environments = load_task("selection_bias").train
    >>> model = IRMRegressor(penalty=1e4).fit(X, y, environments=environments)
    """


class IRMClassifier(_IRM, LinearClassifierBase):
    """Logistic regression whose scale is right in every labelled environment (IRMv1).

    Parameters
    ----------
    penalty : strength of invariance; 0 is logistic regression on environments of equal weight.
        "auto" chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """
