"""Two regressions, each row following the second with a chance that is logistic in other columns.

    p(y | z, g) = sum_k pi_k(g) sum_l q_l|k N(y; z'b_k + m_l, v_l),   logit pi_2(g) = c_0 + g'c,

with the two-part noise of `hetrisk.core.sources.one_regression`: a mixture of experts (Jordan and
Jacobs 1994). As c grows it becomes one regression on either side of a cut. It is fitted by EM, for
a batch of targets, each from a cut of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit

from hetrisk.core.numerics.floors import RIDGE, SINGLE_TINY, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.sources.design import BatchDesign, Single
from hetrisk.core.sources.one_regression import (
    Noise,
    fit_given_noise,
    log_normal,
    noise_of_two,
    normalised,
)

ITERATIONS: Budget[int] = 50  # of EM
TOL: Budget[float] = 1e-5  # gain in mean log likelihood below which it stops
STARTS: Budget[tuple[float, ...]] = (8.0, 2.0)  # how steeply the chance rises at the cut
LONGEST_STEP: Budget[float] = 1.0  # of the chance's coefficients, in one iteration
STEEPEST: Budget[float] = 60.0  # a chance that rises so steeply is a step
NOISE_START: Budget[tuple[float, float]] = (0.6, 3.0)  # variances, relative to two regressions


@dataclass(frozen=True)
class Experts:
    """Two regressions: (B,) mean log likelihoods, (2, B, p) coefficients, (B, 1 + g) of the chance.

    ``weights`` (2, 2, B) shares of the parts of the noise (second) in each regression (first).
    """

    log_likelihood: Single
    coef: Single
    chance: FloatArray
    weights: Single
    noise: Noise


@dataclass(frozen=True)
class _State:
    """What EM holds of B targets between two steps.

    ``coef`` (2, B, p); ``chance`` (B, 1 + g); ``parts`` (2, B) share of the second part of the
    noise in each regression, ``mean`` (B,) of that part and ``variance`` (2, B) of both;
    ``residual`` two (B, n); ``one`` (B,) mean square of the residuals at the start.
    """

    coef: Single
    chance: FloatArray
    parts: Single
    mean: Single
    variance: Single
    residual: tuple[Single, Single]
    one: Single


def fit_experts(
    marks: FloatArray, design: BatchDesign, Y: Single, cuts: FloatArray, sharp: bool = False
) -> Experts:
    """Fit two regressions and their chance to targets (B, n), each from its cut, two starts.

    ``marks`` (n, g) the columns that the chance follows; ``cuts`` (B, 1 + g) coefficients of what
    is positive on one side of the cut, of a spread of one. A ``sharp`` chance stays as steep as a
    step: what is fitted is where to cut.
    """
    rises = (STEEPEST,) if sharp else STARTS
    starts = len(rises)
    Y, chance = np.repeat(Y, starts, axis=0), np.repeat(cuts, starts, axis=0)
    chance *= np.tile(rises, len(cuts))[:, None]
    given = np.column_stack([np.ones(len(marks)), marks])
    upper = np.triu_indices(given.shape[1])
    products = given[:, upper[0]] * given[:, upper[1]]
    state = _start(given, design, Y, chance)
    before = np.full(len(Y), -np.inf, dtype=np.float32)
    for iteration in range(ITERATIONS):
        shares = _log_shares(state, given)
        likelihood = normalised(shares, design.weight)
        if (iteration > 1 and np.all(likelihood - before < TOL)) or iteration == ITERATIONS - 1:
            break
        before = likelihood
        chance = _chance(state.chance, given, products, design.weight, shares[2] + shares[3])
        # All coefficients change alike: a step stays where it is while it steepens no more.
        steep = np.linalg.norm(chance[:, 1:], axis=1, keepdims=True) / STEEPEST
        chance = chance / np.maximum(steep, TINY if sharp else 1.0)
        state = replace(_step(state, design, Y, shares), chance=chance)
    best = np.argmax(likelihood.reshape(-1, starts), axis=1)
    best = best + starts * np.arange(len(Y) // starts)
    parts = state.parts
    noise = Noise(state.mean[best], state.variance[:, best], parts[1][best], state.one[best])
    weights = np.stack([1 - parts, parts], axis=1)[:, :, best]
    coef, chance = state.coef[:, best], state.chance[best]
    return Experts(likelihood[best], coef, chance, weights, noise)


def _start(given: FloatArray, design: BatchDesign, Y: Single, chance: FloatArray) -> _State:
    """Every row with the chance that it has at the start."""
    second: Single = expit(chance @ given.T).astype(np.float32)
    w, mask = design.weight, np.ones((len(Y), design.n_columns), dtype=bool)
    coef = np.stack([design.fits(w * r, w * r * Y, mask) for r in (1 - second, second)])
    residual = (design.residuals(Y, coef[0]), design.residuals(Y, coef[1]))
    one = ((1 - second) * residual[0] ** 2 + second * residual[1] ** 2) @ w
    variance = np.stack([part * one for part in NOISE_START])
    parts = np.full((2, len(Y)), 0.25, dtype=np.float32)
    return _State(coef, chance, parts, np.zeros_like(one), variance, residual, one)


def _log_shares(state: _State, given: FloatArray) -> list[Single]:
    """Four (B, n): log of chance times density, regressions first, parts of the noise second."""
    logit = state.chance @ given.T
    chance = [log_expit(-logit).astype(np.float32), log_expit(logit).astype(np.float32)]
    off = state.mean[:, None]
    return [
        log_normal(state.residual[k] - part * off, state.variance[part], share) + chance[k]
        for k in (0, 1)
        for part, share in ((0, 1 - state.parts[k]), (1, state.parts[k]))
    ]


def _step(state: _State, design: BatchDesign, Y: Single, shares: list[Single]) -> _State:
    """Noise, then slopes, each the best given the others."""
    w, one, residual = design.weight, state.one, state.residual
    size = np.maximum(np.stack([s @ w for s in shares]), SINGLE_TINY)
    parts = np.stack([size[1] / (size[0] + size[1]), size[3] / (size[2] + size[3])])
    parts = np.clip(parts, SINGLE_TINY, 1 - SINGLE_TINY).astype(np.float32)
    noise = noise_of_two(residual, shares, one, w)
    mask = np.ones((len(Y), design.n_columns), dtype=bool)
    coef = [fit_given_noise(design, Y, mask, shares[2 * k : 2 * k + 2], noise) for k in (0, 1)]
    moved = (design.residuals(Y, coef[0]), design.residuals(Y, coef[1]))
    return _State(np.stack(coef), state.chance, parts, noise.mean, noise.variance, moved, one)


def _chance(
    chance: FloatArray, given: FloatArray, products: FloatArray, weight: Single, second: Single
) -> FloatArray:
    """(B, 1 + g) a Newton step of the logistic regression of following the second on the marks.

    ``products`` of two columns of ``given`` (n, 1 + g), the constant among them.
    """
    p = given.shape[1]
    upper = np.triu_indices(p)
    expected = expit(chance @ given.T)
    slope = (weight * (second - expected)) @ given
    # The curvature of B logistic regressions is one product with the products of their columns.
    flat = (weight * expected * (1 - expected)) @ products
    curve = np.empty((len(chance), p, p))
    curve[:, upper[0], upper[1]] = flat
    curve[:, upper[1], upper[0]] = flat
    step = np.linalg.solve(curve + RIDGE * np.eye(p), slope[..., None])[..., 0]
    # Where the marks separate the two, the chance has no finite best: it steepens step by step.
    moved: FloatArray = chance + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    return moved
