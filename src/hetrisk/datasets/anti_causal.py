"""Regression under an anti-causal effect: psi is caused by y, with noise that differs by place.

Environment i of ten draws phi ~ N(mu_i, I), y = theta_phi'phi + beta phi_1 phi_2 phi_3 + noise
and psi = theta_psi y + noise of variance sigma_i: psi is an excellent predictor where sigma_i is
small (training) and a useless one where it is large. The paper's tables are reproduced with sigma_i
as the variance of that noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.checks import RandomState, at_least, one_of, vector

NOISE = 0.3  # standard deviation of y
BETA = 0.1
SIGMA = np.array([0.2, 0.5, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0])
CENTRE = np.array([[1, 1], [1, -1], [-1, 1]] + [[-1, -1]] * 7, dtype=np.float64)  # of phi_4, phi_5
N_ENVIRONMENTS = len(SIGMA)


def make_anti_causal(
    n_samples: int,
    environment: int = 1,
    n_phi: int = 9,
    n_psi: int = 1,
    beta: float = BETA,
    theta_phi: Sequence[float] | np.ndarray | None = None,
    theta_psi: Sequence[float] | np.ndarray | None = None,
    random_state: RandomState = None,
) -> tuple[FloatArray, FloatArray]:
    """Draw rows of one environment of the anti-causal mechanism.

    Parameters
    ----------
    n_samples : number of rows.
    environment : 1 to 10.
    n_phi, n_psi : number of invariant columns (at least 5) and of anti-causal columns.
    beta : weight of the product of the first three phi.
    theta_phi, theta_psi : coefficients; drawn by `anti_causal_coefficients` where None. Rows
        of several environments of one world need the same coefficients: pass them.
    random_state : seed or `numpy.random.Generator`.

    Returns
    -------
    X : (n_samples, n_phi + n_psi), phi first.
    y : (n_samples,)
    """
    at_least("n_samples", n_samples, 1)
    at_least("n_phi", n_phi, 5)
    at_least("n_psi", n_psi, 0)
    one_of("environment", environment, range(1, N_ENVIRONMENTS + 1))
    rng = np.random.default_rng(random_state)
    drawn_phi, drawn_psi = anti_causal_coefficients(n_phi, n_psi, rng)
    theta_phi = drawn_phi if theta_phi is None else vector("theta_phi", theta_phi, n_phi)
    theta_psi = drawn_psi if theta_psi is None else vector("theta_psi", theta_psi, n_psi)
    rng.random(n_samples)  # as many draws as the stored figures were made with
    phi = rng.standard_normal((n_samples, n_phi))
    phi[:, 3:5] += CENTRE[environment - 1]
    y = phi @ theta_phi + beta * phi[:, 0] * phi[:, 1] * phi[:, 2]
    y += NOISE * rng.standard_normal(n_samples)
    psi = np.outer(y, theta_psi)
    psi += np.sqrt(SIGMA[environment - 1]) * rng.standard_normal(psi.shape)
    return np.hstack([phi, psi]), y


def anti_causal_coefficients(
    n_phi: int, n_psi: int, random_state: RandomState = None
) -> tuple[FloatArray, FloatArray]:
    """Draw theta_phi with mean 1 and deviation 1, theta_psi with mean 0.5 and deviation 0.1.

    The paper writes N(0.5, 0.1 I); like its N(0, 0.3) for the noise on y, this reproduces the
    published numbers with the second parameter read as a standard deviation.
    """
    rng = np.random.default_rng(random_state)
    return rng.normal(1.0, 1.0, n_phi), rng.normal(0.5, 0.1, n_psi)
