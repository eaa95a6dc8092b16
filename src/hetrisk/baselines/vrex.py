"""Risk extrapolation by variance (V-REx; Krueger et al., arXiv:2003.00688).

minimise  sum_e p_e R_e(w)  +  penalty * Var_e R_e(w),

where p_e is the share of rows in environment e, so that the first term is the pooled risk and a
penalty of 0 is ERM; the variance counts every environment once.
The target of a regression is standardised, so that the penalty has no units.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hetrisk.baselines.base import Labelled, LinearClassifierBase, LinearRegressorBase, Penalised
from hetrisk.baselines.problem import Problem
from hetrisk.baselines.risks import Risks, minima
from hetrisk.core.numerics.rows import FloatArray

PENALTIES = (0.0, *(float(10.0**k) for k in range(-2, 5)))


def vrex_objective(w: FloatArray, risks: Risks, penalty: float) -> tuple[float, FloatArray]:
    """V-REx and its gradient, both divided by 1 + penalty to keep their size in bounds."""
    at = risks.evaluate(w)
    gap = at.risk - at.risk.mean()
    k = len(gap)
    value = risks.share @ at.risk + penalty * gap @ gap / k
    gradient = risks.share @ at.gradient + 2 * penalty * gap @ at.gradient / k
    return float(value) / (1 + penalty), gradient / (1 + penalty)


class _VREx(Penalised, Labelled):
    values = PENALTIES

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        risks = problem.risks()
        objectives = [
            partial(vrex_objective, risks=risks, penalty=penalty) if penalty > 0 else None
            for penalty in values
        ]
        return minima(objectives, risks.erm())


class VRExRegressor(_VREx, LinearRegressorBase):
    """Linear regression with risks that differ little between labelled environments.

    Parameters
    ----------
    penalty : weight of the variance of the risks; 0 is least squares. "auto" chooses it on
        held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """


class VRExClassifier(_VREx, LinearClassifierBase):
    """Logistic regression with risks that differ little between labelled environments.

    Parameters
    ----------
    penalty : weight of the variance of the risks; 0 is logistic regression. "auto" chooses it
        on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """
