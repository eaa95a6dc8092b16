"""Anchor regression on named environments, from their moments alone.

With the environment as a categorical anchor A, anchor regression (Rothenhaeusler et al., Journal
of the Royal Statistical Society B, 2021) minimises

    |(I - P_A) r|^2 + gamma |P_A r|^2,   r = y - x'b, all centred.

P_A replaces a row by the mean of its environment, so the first term is the scatter of r within
environments and the second the scatter of their means. Both follow from the environments'
moments: the estimate is least squares on the scatter W + gamma B, where W is the scatter of
(x, y) within and B that between environments. gamma = 1 is plain least squares, 0 takes the
environments' means out (fixed effects), and a large gamma asks the mean residual to be the same
in every environment.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.linear import LinearFit, least_squares
from hetrisk.core.numerics.moments import Moments


def anchor_moments(environments: Moments, gamma: float) -> Moments:
    """Pool environments, the scatter of their means counted ``gamma`` times.

    Parameters
    ----------
    environments : moments of (x, y) in K environments; further axes before these are kept.
    gamma : at least 0.

    Returns
    -------
    Moments whose least squares is anchor regression; the mean is that of all rows, so the
    intercept is not penalised.
    """
    weight = environments.weight.sum(axis=-1)
    share = environments.weight / np.where(weight > 0, weight, 1.0)[..., None]
    mean = (share[..., None] * environments.mean).sum(axis=-2)
    gap = environments.mean - mean[..., None, :]
    # The scatter of the environments' means about that of all rows: P_A r is constant within them.
    between = np.swapaxes(environments.weight[..., None] * gap, -1, -2) @ gap
    return Moments(weight, mean, environments.scatter.sum(axis=-3) + gamma * between)


def anchor_fit(environments: Moments, gamma: float) -> LinearFit:
    """Anchor regression with the environment as the anchor.

    Parameters
    ----------
    environments : moments of (x, y) in K environments.
    gamma : weight of the means' scatter; 1 is least squares.

    Returns
    -------
    LinearFit; its ``variance`` is the minimum of the penalised objective divided by the weight.
    """
    return least_squares(anchor_moments(environments, gamma))
