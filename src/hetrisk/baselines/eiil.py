"""Environment inference for invariant learning (Creager et al., arXiv:2010.07249).

Two environments are inferred from a reference model f (ERM) by maximising the IRM penalty over
soft assignments u_i in [0, 1],

    maximise  G_1(u)^2 + G_2(u)^2,   G_1 = mean_i u_i s_i,   G_2 = mean_i (1 - u_i) s_i,

where s_i is the derivative of row i's loss in the scale of f. The objective is convex in u
through G_1 alone, so its maximum is at a corner: G_1 as large as it can be, which puts the rows
with s_i > 0 in one environment and the others in the second. That is the exact solution of the
problem that gradient ascent approaches. IRM on these two environments follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hetrisk.baselines.base import LinearClassifierBase, LinearRegressorBase, Penalised, Unlabelled
from hetrisk.baselines.irm import PENALTIES, irm_path
from hetrisk.baselines.problem import Problem
from hetrisk.core.numerics.rows import FloatArray


def scale_derivatives(problem: Problem, w: FloatArray) -> FloatArray:
    """(n,) derivative s_i of each row's loss at s f_i, in s at s = 1."""
    f = problem.Z @ w
    return problem.family.slope(f, problem.y) * f


def inferred_environments(problem: Problem) -> FloatArray:
    """(n, 2) environments that maximise the IRM penalty of the ERM model."""
    first = scale_derivatives(problem, problem.pooled().erm()) > 0
    return np.column_stack([first, ~first]).astype(np.float64)


class _EIIL(Penalised, Unlabelled):
    values = PENALTIES

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        inferred = replace(problem, environments=inferred_environments(problem))
        return irm_path(inferred.risks(), values)


class EIILRegressor(_EIIL, LinearRegressorBase):
    """IRM on two environments inferred from where least squares over- and undershoots.

    Parameters
    ----------
    penalty : strength of IRM on the inferred environments; 0 counts both once. "auto" chooses
        it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """


class EIILClassifier(_EIIL, LinearClassifierBase):
    """IRM on two environments inferred from where logistic regression over- and undershoots.

    Parameters
    ----------
    penalty : strength of IRM on the inferred environments; 0 counts both once. "auto" chooses
        it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """
