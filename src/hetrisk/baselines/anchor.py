"""Anchor regression with the environment as the anchor.

minimise  R(w) + (gamma - 1) * sum_e share_e m_e(w)^2,

where R is the mean squared error over all rows and m_e the mean residual of environment e: anchor
regression (Rothenhaeusler et al., arXiv:1801.06229) with a categorical anchor, solved in closed
form from the environments' moments.

gamma = 1 is ERM. It protects against shifts of the environments' means gamma times as large (in
squares) as those seen; what else may shift, it does not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hetrisk.baselines.base import Labelled, LinearRegressorBase, Tuned
from hetrisk.baselines.problem import Problem
from hetrisk.core.numerics.linear import LinearFit, least_squares
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import FloatArray, Rows

GAMMAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def anchor_fit(environments: Moments, gamma: float) -> LinearFit:
    """Anchor regression from the moments of (x, y) in K environments; gamma = 1 is least squares.

    P_A replaces a row by the mean of its environment, so |(I - P_A) r|^2 + gamma |P_A r|^2 is least
    squares on the scatter within environments plus gamma times that of their means.
    """
    share = environments.weight / environments.weight.sum()
    mean = share @ environments.mean
    gap = environments.mean - mean
    between = (environments.weight[:, None] * gap).T @ gap
    scatter = environments.scatter.sum(axis=0) + gamma * between
    return least_squares(Moments(environments.weight.sum(), mean, scatter))


class AnchorRegressor(Tuned, Labelled, LinearRegressorBase):
    """Anchor regression: least squares whose mean residual stays small in every environment.

    Parameters
    ----------
    gamma : weight of the scatter of the environments' mean residuals; 1 is least squares, 0
        takes the environments' means out. "auto" chooses it on held-out training rows (see
        `hetrisk.baselines.choice`).
    random_state : seed of the folds that "auto" deals.

    Examples
    --------
    >>> from hetrisk.datasets import load_task
    >>> X, y, environments = load_task("anti_causal").train
    >>> model = AnchorRegressor(gamma=5.0).fit(X, y, environments=environments)
    """

    strength = "gamma"
    values = GAMMAS

    def __init__(
        self,
        gamma: float | Literal["auto"] = "auto",
        *,
        random_state: int | None = 0,
    ) -> None:
        self.gamma = gamma
        self.random_state = random_state

    def _path(self, problem: Problem, values: Sequence[float]) -> list[FloatArray]:
        rows = Rows(problem.Z[:, :-1], problem.y, np.ones(len(problem.y)))
        of_environments = moments(rows, problem.environments)
        fits = [anchor_fit(of_environments, gamma) for gamma in values]
        return [np.append(fit.coef, fit.intercept) for fit in fits]
