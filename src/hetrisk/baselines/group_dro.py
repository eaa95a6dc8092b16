"""Group distributionally robust optimisation (Sagawa et al., arXiv:1911.08731).

minimise  max_e R_e(w).

The risks are convex, so this equals its dual: maximise over shares q of the environments the
least value of sum_e q_e R_e(w). The dual function is concave with gradient R_e(w(q)), and has
only K unknowns; w(q) is a (weighted) least squares or logistic fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from hetrisk.baselines.base import Labelled, LinearClassifierBase, LinearRegressorBase
from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import Risks
from hetrisk.core.numerics.rows import FloatArray


def worst_case_weights(risks: Risks) -> FloatArray:
    """Weights that minimise the largest of the risks."""
    k = len(risks.weight)
    if k == 1:
        return risks.erm()

    def negative_dual(q: FloatArray) -> tuple[float, FloatArray]:
        w = risks.minimiser(np.maximum(q, 0.0))
        at = risks.evaluate(w).risk
        return -float(q @ at), -at

    found: Any = optimize.minimize(
        negative_dual,
        np.full(k, 1 / k),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * k,
        constraints=optimize.LinearConstraint(np.ones((1, k)), 1.0, 1.0),
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return risks.minimiser(np.maximum(found.x, 0.0))


class _GroupDRO(Labelled):
    def _solve(self, problem: Problem) -> tuple[FloatArray, None]:
        return worst_case_weights(problem.risks()), None


class GroupDRORegressor(_GroupDRO, LinearRegressorBase):
    """Linear regression with the least error in its worst labelled environment."""


class GroupDROClassifier(_GroupDRO, LinearClassifierBase):
    """Logistic regression with the least deviance in its worst labelled environment."""
