"""Stochastic gates: a feature is let through by a clipped Gaussian between 0 and 1.

A gate is m = min(1, max(0, mu + e)) with e ~ N(0, s^2) (Yamada, Lindenbaum, Negahban and
Kluger, 2020). Its first two moments and the probability that it is open have closed forms in
the normal density f and distribution F, so an expectation over gates of anything quadratic in
them needs no sampling. With a = -mu/s and b = (1 - mu)/s::

    E[m]     = mu (F(b) - F(a)) + s (f(a) - f(b)) + F(-b)
    E[m^2]   = (mu^2 + s^2) (F(b) - F(a)) + 2 mu s (f(a) - f(b)) + s^2 (a f(a) - b f(b)) + F(-b)
    P(m > 0) = F(-a)

Where only samples will do (a loss that is not quadratic), `gate_draws` gives a fixed
quasi-random set of noises, so that the objective stays a deterministic function of mu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import FloatArray

ROOT_TAU: Constant[float] = float(np.sqrt(2.0 * np.pi))
UNDERFLOW: Constant[float] = 39.0  # standard deviations out, the normal density is zero


@dataclass(frozen=True)
class GateMoments:
    """Moments of gates and their derivatives in mu; every array has the shape of mu.

    Attributes
    ----------
    mean, second : E[m] and E[m^2].
    open : P(m > 0).
    d_mean, d_second, d_open : their derivatives with respect to mu.
    """

    mean: FloatArray
    second: FloatArray
    open: FloatArray
    d_mean: FloatArray
    d_second: FloatArray
    d_open: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Var(m), never negative."""
        variance: FloatArray = np.maximum(self.second - self.mean**2, 0.0)
        return variance


def gate_moments(mu: FloatArray, noise: float) -> GateMoments:
    """Moments of the gates with centres ``mu`` and noise standard deviation ``noise`` > 0.

    Accurate in absolute terms for mu from -1e3 to 1e3 and noise down to 1e-3: the probability of
    the interval is taken in whichever tail keeps its digits.
    """
    a, b = -mu / noise, (1.0 - mu) / noise
    f_a, f_b = _density(a), _density(b)
    # F(b) - F(a) loses everything when both are near one; there the upper tails differ instead.
    inside = np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
    beyond = ndtr(-b)
    # E[(mu + e); 0 < mu + e < 1] and E[(mu + e)^2; 0 < mu + e < 1]
    first = np.maximum(mu * inside + noise * (f_a - f_b), 0.0)
    # a f(a) is zero in the limit, but 0 * inf on the way there is not: f is cut first
    tails = noise**2 * (a * f_a - b * f_b)
    second = (mu**2 + noise**2) * inside + 2.0 * mu * noise * (f_a - f_b) + tails
    return GateMoments(
        mean=np.clip(first + beyond, 0.0, 1.0),
        second=np.clip(second + beyond, 0.0, 1.0),
        open=ndtr(-a),
        d_mean=inside,
        d_second=2.0 * first,
        d_open=f_a / noise,
    )


def gate_draws(n_draws: int, n_gates: int, seed: int = 0) -> FloatArray:
    """(n_draws, n_gates) standard normal noises from a scrambled Sobol sequence.

    Drawn in antithetic pairs (e, -e), so odd moments are exact. ``n_draws`` is rounded up to
    twice a power of two, where Sobol points are balanced.
    """
    power = max(int(np.ceil(np.log2(max(n_draws, 2) / 2))), 0)
    points = qmc.Sobol(n_gates, scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    half = ndtri(np.clip(points, ROUNDING, 1.0 - ROUNDING))
    draws: FloatArray = np.concatenate([half, -half])
    return draws


def _density(x: FloatArray) -> FloatArray:
    bounded = np.minimum(np.abs(x), UNDERFLOW)  # no inf * 0 later
    density: FloatArray = np.exp(-0.5 * bounded**2) / ROOT_TAU
    return np.where(np.abs(x) < UNDERFLOW, density, 0.0)
