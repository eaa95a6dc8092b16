"""Two regressions, each row following the second with a chance that is logistic in other columns.

    p(y | z, g) = sum_k pi_k(g) sum_l q_l|k N(y; z'b_k + m_l, v_l),   logit pi_2(g) = c_0 + g'c,

with the two-part noise of `hetrisk.core.sources.one_regression`: a mixture of experts (Jordan and
Jacobs 1994). As c grows it becomes one regression on either side of a cut. It is fitted by EM, for
a batch of targets, each from a cut of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import RIDGE, SINGLE_TINY, TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.sources.design import BatchDesign, Single
from hetrisk.core.sources.one_regression import (
    Noise,
    col,
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

    def chosen(self, index: IntArray) -> Experts:
        """Return some of the targets."""
        return Experts(
            self.log_likelihood[index],
            self.coef[:, index],
            self.chance[index],
            self.weights[:, :, index],
            self.noise.chosen(index),
        )


@dataclass
class _Running:
    """Targets whose EM still runs: what the next step needs of them.

    ``chance`` (B, 1 + g); ``coef`` (2, B, p); ``parts`` (2, B) share of the second part of the
    noise in each regression, ``mean`` (B,) of that part and ``variance`` (2, B) of both;
    ``residual`` two (B, n); ``one`` (B,) mean square of the residuals at the start.
    """

    place: IntArray
    Y: Single
    chance: FloatArray
    coef: Single
    parts: Single
    mean: Single
    variance: Single
    residual: list[Single]
    one: Single

    def keep(self, going: BoolArray) -> None:
        self.place, self.Y, self.chance = self.place[going], self.Y[going], self.chance[going]
        self.coef, self.parts = self.coef[:, going], self.parts[:, going]
        self.mean, self.variance = self.mean[going], self.variance[:, going]
        self.residual, self.one = [r[going] for r in self.residual], self.one[going]


class _Marks:
    """Constant and marks (n, 1 + g), in single precision, and the products of any two of them."""

    def __init__(self, marks: FloatArray) -> None:
        self.given: Single = np.column_stack([np.ones(len(marks)), marks]).astype(np.float32)
        self.upper = np.triu_indices(self.given.shape[1])
        self.products: Single = self.given[:, self.upper[0]] * self.given[:, self.upper[1]]

    def chances(self, chance: FloatArray) -> tuple[Single, list[Single]]:
        """(B, n) chances of the second regression; logs of those of either."""
        logit = chance.astype(np.float32) @ self.given.T
        small = np.exp(-np.abs(logit))
        whole = small + 1
        first = -np.maximum(logit, 0) - np.log(whole)
        second = np.where(logit > 0, np.float32(1), small)
        second /= whole
        return second, [first, first + logit]

    def newton(
        self, chance: FloatArray, weight: Single, expected: Single, second: Single
    ) -> FloatArray:
        """(B, 1 + g) a Newton step of the logistic regression of following the second on the marks.

        ``expected`` chances and ``second``, the shares of the second (B, n).
        """
        p = self.given.shape[1]
        slope = (weight * (second - expected)) @ self.given
        # The curvature of B logistic regressions is one product with the products of their columns.
        flat = (weight * expected * (1 - expected)) @ self.products
        curve = np.empty((len(chance), p, p))
        curve[:, self.upper[0], self.upper[1]] = flat
        curve[:, self.upper[1], self.upper[0]] = flat
        right = slope.astype(np.float64)[..., None]
        step = np.linalg.solve(curve + RIDGE * np.eye(p), right)[..., 0]
        # Where the marks separate the two, the chance has no finite best: it steepens step by step.
        moved: FloatArray = chance + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        return moved


def fit_experts(
    marks: FloatArray,
    design: BatchDesign,
    Y: Single,
    cuts: FloatArray,
    enough: Single | None = None,
) -> Experts:
    """Fit two regressions and their chance to targets (B, n), each from its cut, two starts.

    ``marks`` (n, g) the columns that the chance follows; ``cuts`` (B, 1 + g) coefficients of what
    is positive on one side of the cut, of a spread of one. A target leaves the batch when it has
    settled. Where ``enough`` (B,) is given the chance stays as steep as a step, what is fitted is
    where to cut, and a target that describes as well as that leaves, too.
    """
    sharp = enough is not None
    rises = (STEEPEST,) if sharp else STARTS
    starts = len(rises)
    seen, chance = _Marks(marks), np.repeat(cuts, starts, axis=0)
    chance *= np.tile(rises, len(cuts))[:, None]
    run = _start(seen, design, np.repeat(Y, starts, axis=0), chance)
    done = _nothing(run)
    before = done.log_likelihood.copy()
    for iteration in range(ITERATIONS):
        expected, shares = _log_shares(run, seen)
        likelihood = normalised(shares, design.weight)
        # A sharp chance may step past its best place: the best so far is kept.
        _store(done, run, likelihood > done.log_likelihood[run.place], likelihood)
        active = np.abs(likelihood - before) >= TOL
        if enough is not None:
            active &= likelihood < enough[run.place]
        if not active.any() or iteration == ITERATIONS - 1:
            break
        if not active.all():
            run.keep(active)
            likelihood, expected = likelihood[active], expected[active]
            shares = [share[active] for share in shares]
        before = likelihood
        chance = seen.newton(run.chance, design.weight, expected, shares[2] + shares[3])
        # All coefficients change alike: a step stays where it is while it steepens no more.
        steep = np.linalg.norm(chance[:, 1:], axis=1, keepdims=True) / STEEPEST
        run.chance = chance / np.maximum(steep, TINY if sharp else 1.0)
        _maximise(run, design, shares)
    best = np.argmax(done.log_likelihood.reshape(-1, starts), axis=1)
    return done.chosen(best + starts * np.arange(len(Y)))


def _start(seen: _Marks, design: BatchDesign, Y: Single, chance: FloatArray) -> _Running:
    """Every row with the chance that it has at the start."""
    second, _ = seen.chances(chance)
    w, mask = design.weight, np.ones((len(Y), design.n_columns), dtype=bool)
    coef = np.stack([design.fits(w * r, w * r * Y, mask) for r in (1 - second, second)])
    residual = [design.residuals(Y, each) for each in coef]
    one = ((1 - second) * residual[0] ** 2 + second * residual[1] ** 2) @ w
    variance = np.stack([part * one for part in NOISE_START])
    parts = np.full((2, len(Y)), 0.25, dtype=np.float32)
    place = np.arange(len(Y))
    return _Running(place, Y, chance, coef, parts, np.zeros_like(one), variance, residual, one)


def _log_shares(run: _Running, seen: _Marks) -> tuple[Single, list[Single]]:
    """(B, n) chances of the second regression, and four logs of chance times density.

    Regressions first, parts of the noise second.
    """
    expected, chance = seen.chances(run.chance)
    logs = []
    for k in (0, 1):
        first = log_normal(run.residual[k], run.variance[0], 1 - run.parts[k])
        second = log_normal(run.residual[k] - col(run.mean), run.variance[1], run.parts[k])
        first += chance[k]
        second += chance[k]
        logs += [first, second]
    return expected, logs


def _maximise(run: _Running, design: BatchDesign, shares: list[Single]) -> None:
    """Noise, then slopes, each the best given the others.

    Shares are multiplied by the weights of the rows, in place.
    """
    for share in shares:
        share *= design.weight
    size = np.maximum(np.stack([s.sum(axis=1) for s in shares]), SINGLE_TINY)
    parts = np.stack([size[1] / (size[0] + size[1]), size[3] / (size[2] + size[3])])
    run.parts = np.clip(parts, SINGLE_TINY, 1 - SINGLE_TINY).astype(np.float32)
    noise = noise_of_two(run.residual, shares, run.one)
    run.mean, run.variance = noise.mean, noise.variance
    mask = np.ones((len(run.Y), design.n_columns), dtype=bool)
    coef = [fit_given_noise(design, run.Y, mask, shares[2 * k : 2 * k + 2], noise) for k in (0, 1)]
    run.coef, run.residual = np.stack(coef), [design.residuals(run.Y, each) for each in coef]


def _nothing(run: _Running) -> Experts:
    """Room for what settles."""
    low: Single = np.full(len(run.Y), -np.inf, dtype=np.float32)
    noise = Noise(run.mean.copy(), run.variance.copy(), run.parts[1].copy(), run.one.copy())
    weights = np.stack([1 - run.parts, run.parts], axis=1)
    return Experts(low, run.coef.copy(), run.chance.copy(), weights, noise)


def _store(done: Experts, run: _Running, which: BoolArray, likelihood: Single) -> None:
    """Keep some of the targets as they are now."""
    place, parts = run.place[which], run.parts[:, which]
    done.log_likelihood[place] = likelihood[which]
    done.coef[:, place], done.chance[place] = run.coef[:, which], run.chance[which]
    done.weights[:, :, place] = np.stack([1 - parts, parts], axis=1)
    done.noise.mean[place], done.noise.share[place] = run.mean[which], parts[1]
    done.noise.variance[:, place] = run.variance[:, which]
