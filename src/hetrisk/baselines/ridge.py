"""Ridge regression, shrunk as far as one standard error of held-out risk allows.

minimise  R(w) + penalty * |coef|^2  on standardised columns.

The plainest robust method: it uses no environments, and the rule of `hetrisk.baselines.choice`
is the one-standard-error rule it is named after (Breiman et al., Classification and Regression
Trees, 1984). Any method that claims robustness should beat it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hetrisk.baselines.base import LinearClassifierBase, LinearRegressorBase, Penalised, Unlabelled
from hetrisk.baselines.problem import Problem
from hetrisk.core.numerics.rows import FloatArray


class _Ridge(Penalised, Unlabelled):
    values = (0.0, *(float(10.0 ** (k / 3)) for k in range(-12, 5)))

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        risks, path = problem.pooled(), []
        w = None
        for penalty in values:
            w = risks.minimiser(risks.share, w, penalty)
            path.append(w)
        return path


class OneStandardErrorRidgeRegressor(_Ridge, LinearRegressorBase):
    """Ridge regression with the strongest penalty within one standard error of the best.

    Parameters
    ----------
    penalty : of the squared coefficients on standardised columns; 0 is least squares. "auto"
        chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """


class OneStandardErrorRidgeClassifier(_Ridge, LinearClassifierBase):
    """Ridge logistic regression with the strongest penalty within one standard error of the best.

    Parameters
    ----------
    penalty : of the squared coefficients on standardised columns; 0 is logistic regression.
        "auto" chooses it on held-out training rows (see `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.
    """
