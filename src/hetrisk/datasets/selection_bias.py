"""Regression under selection bias: which rows were kept decides what V_b says about y.

A row is kept with probability prod_b |r|^(-5 |f(phi) - sign(r) v_b|), so V_b resembles f(phi)
(r > 0) or its mirror image (r < 0) though neither causes the other. Keeping rows by trial and
error starves when several columns are biased (all of them must be close to f at once), so the
kept rows are drawn exactly instead. Given f, each v_b is independent of the rest and has density

    p(v given f) = N(v; 0, 1) exp(-c |f - s v|) / Z(f),      c = 5 log|r|,  s = sign(r),

a normal times a Laplace factor: two truncated normals glued together at s v = f. What is left of
the selection is the probability that the row's f survives, (Z(f) / Z(0))^n_b, where

    Z(f) = E_v exp(-c |f - v|) = e^(c^2/2) [e^(cf) Phi(-f - c) + e^(-cf) Phi(f - c)]

peaks at f = 0.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.checks import RandomState, at_least

NOISE = 0.3  # standard deviation of y around f


def make_selection_bias(
    n_samples: int,
    r: float,
    n_features: int = 10,
    n_biased: int = 1,
    beta: float = 1.0,
    random_state: RandomState = None,
) -> tuple[FloatArray, FloatArray]:
    """Draw rows of one environment of the selection-bias mechanism.

    ``y = phi @ theta + beta phi_1 phi_2 phi_3 + N(0, 0.3^2)`` with
    ``phi_i = 0.8 z_i + 0.2 z_(i+1)`` and independent standard normal ``z`` and ``psi``; rows are
    then selected by `r` as the module describes.

    Parameters
    ----------
    n_samples : number of rows kept.
    r : strength (at least 1 in size) and direction (sign) of the bias; r = 1 selects nothing away.
    n_features : d; the first ``d // 2`` columns are phi (invariant), the others psi.
    n_biased : how many psi columns, from the first, are V_b; the other psi are pure noise.
    beta : weight of the product of the first three phi, which no linear model can express.
    random_state : seed or `numpy.random.Generator`.

    Returns
    -------
    X : (n_samples, n_features)
    y : (n_samples,)

    Examples
    --------
    >>> X, y = make_selection_bias(5000, r=1.9, random_state=0)
    >>> bool(np.corrcoef(X[:, 5], y)[0, 1] > 0.5)
    True
    """
    at_least("n_samples", n_samples, 1)
    at_least("n_features", n_features, 6)
    if not 1.0 <= abs(r) < np.inf:
        raise ValueError(f"r must be finite with |r| >= 1; got {r!r}.")
    n_phi = n_features // 2
    if not 0 <= n_biased <= n_features - n_phi:
        raise ValueError(
            f"n_biased must be between 0 and {n_features - n_phi}, the number of psi columns; "
            f"got {n_biased!r}."
        )
    rng = np.random.default_rng(random_state)
    theta = selection_bias_coefficients(n_phi)
    rate = 5.0 * np.log(abs(r))
    phi, f = _surviving_phi(n_samples, theta, beta, rate, n_biased, rng)
    psi = rng.standard_normal((n_samples, n_features - n_phi))
    psi[:, :n_biased] = np.sign(r) * _normal_laplace(f, rate, n_biased, rng)
    y = f + NOISE * rng.standard_normal(n_samples)
    return np.hstack([phi, psi]), y


def selection_bias_coefficients(n_phi: int) -> FloatArray:
    """Return theta, the linear part of y on the `n_phi` invariant columns.

    theta_i = (-1)^i (i mod 3 + 1) / 2, as in the authors' release: it reproduces the published
    numbers, which those printed in the appendix do not.
    """
    i = np.arange(n_phi)
    return (-1.0) ** i * (i % 3 + 1) / 2


def log_survival(f: FloatArray, rate: float) -> FloatArray:
    """Return log Z(f): how likely a row with this f is to be kept for one biased column."""
    above = rate * f + log_ndtr(-f - rate)
    below = -rate * f + log_ndtr(f - rate)
    return rate**2 / 2 + np.logaddexp(above, below)


def _surviving_phi(
    n: int, theta: FloatArray, beta: float, rate: float, n_biased: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw phi and f(phi) from their distribution among the kept rows."""
    peak = log_survival(np.zeros(1), rate)[0]
    kept_phi: list[FloatArray] = []
    kept_f: list[FloatArray] = []
    missing = n
    while missing > 0:
        z = rng.standard_normal((4 * missing + 64, len(theta) + 1))
        phi = 0.8 * z[:, :-1] + 0.2 * z[:, 1:]
        f = phi @ theta + beta * phi[:, 0] * phi[:, 1] * phi[:, 2]
        log_keep = n_biased * (log_survival(f, rate) - peak)
        keep = np.log(rng.random(len(f))) < log_keep
        kept_phi.append(phi[keep][:missing])
        kept_f.append(f[keep][:missing])
        missing -= len(kept_f[-1])
    return np.concatenate(kept_phi), np.concatenate(kept_f)


def _normal_laplace(f: FloatArray, rate: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw (n, size) values w with density proportional to N(w; 0, 1) exp(-rate |f - w|).

    Above f the density is N(-rate, 1), below it N(rate, 1); each side is drawn by inverting its
    distribution function in logs, since f may lie far out in the tail of either.
    """
    f = np.repeat(f[:, None], size, axis=1)
    log_above = rate * f + log_ndtr(-f - rate)
    log_below = -rate * f + log_ndtr(f - rate)
    above = np.log(rng.random(f.shape)) < log_above - np.logaddexp(log_above, log_below)
    tail = np.where(above, -f - rate, f - rate)
    t = ndtri_exp(np.log1p(-rng.random(f.shape)) + log_ndtr(tail))  # a normal below `tail`
    return np.where(above, -rate - t, rate + t)
