"""One regression with noise of any common shape, for many targets at once, on one design.

    y = z'b + noise,   noise a mixture of two normals: means 0 and m, variances v_1 and v_2.

With two parts the noise may be heavy-tailed, skewed or hold outliers: none of these is then taken
for a second regression (`hetrisk.core.sources.slopes`). Fitted by EM (expectation conditional
maximisation, Meng and Rubin 1993) for B targets side by side, from three starts each. Sums are in
single precision, which is ample for differences of 1e-4 in a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import NOISE_SHARE, ROUNDING, SHARED_VARIANCE, SINGLE_TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, IntArray
from hetrisk.core.sources.design import BatchDesign, Single

LONG: Budget[int] = 60  # iterations
TOL: Budget[float] = 2e-6  # gain in mean log likelihood below which they stop
# Variances of the two parts of a noise to start from, relative to one regression: a wide part, and
# parts to either side.
STARTS: Budget[tuple[tuple[float, ...], ...]] = ((0.4, 0.7, 0.7), (3.0, 1.0, 1.0))
START_SHARE: Budget[float] = 0.25  # of the second part


@dataclass(frozen=True)
class Noise:
    """Two normals for each of B targets: means 0 and ``mean``, (2, B) variances.

    ``share`` (B,) is that of the second, ``one`` (B,) the mean square about one regression.
    """

    mean: Single
    variance: Single
    share: Single
    one: Single

    def repeated(self, times: int) -> Noise:
        """Every target's noise several times in a row."""
        parts = (self.mean, self.variance, self.share, self.one)
        return Noise(*(np.repeat(part, times, axis=-1) for part in parts))

    def chosen(self, index: IntArray) -> Noise:
        """The noise of some of the targets."""
        return Noise(self.mean[index], self.variance[:, index], self.share[index], self.one[index])


@dataclass(frozen=True)
class OneRegression:
    """One regression a target: (B,) mean log likelihoods, (B, p) coefficients, the noise."""

    log_likelihood: Single
    coef: Single
    noise: Noise


def col(values: Single) -> Single:
    """(B, 1) one number a target, to go along its rows."""
    column: Single = values[:, None]
    return column


def normalised(logs: list[Single], weight: Single) -> Single:
    """Turn log densities into shares, in place; return the (B,) mean log likelihoods."""
    # Subtract the row maximum: densities of distant rows underflow.
    top = logs[0].copy()
    for log in logs[1:]:
        np.maximum(top, log, out=top)
    total = np.zeros_like(top)
    for log in logs:
        log -= top
        np.exp(log, out=log)
        total += log
    for log in logs:
        log /= total
    likelihood: Single = (top + np.log(total)) @ weight
    return likelihood


def log_normal(residual: Single, variance: Single, share: Single) -> Single:
    """Log of share times normal density at residuals (B, n), constants left out."""
    log = residual * residual
    log *= col(np.float32(-0.5) / variance)
    log += col(np.log(share) - np.float32(0.5) * np.log(variance))
    return log


def one_regression(
    design: BatchDesign, Y: Single, mask: BoolArray, iterations: int = LONG, tol: float = TOL
) -> OneRegression:
    """Fit one regression to each target: the best of three starts, wide or skewed either way."""
    w, starts = design.weight, len(STARTS[0])
    coef = design.fits(np.broadcast_to(w, Y.shape), w * Y, mask)
    residual = design.residuals(Y, coef)
    noise = _starts(np.maximum((residual * residual) @ w, np.float32(ROUNDING)))
    Y, residual, coef = (np.repeat(a, starts, axis=0) for a in (Y, residual, coef))
    mask = np.repeat(mask, starts, axis=0)
    before = np.full(len(Y), -np.inf, dtype=np.float32)
    for _ in range(iterations):
        logs = [
            log_normal(residual, noise.variance[0], np.subtract(1, noise.share, dtype=np.float32)),
            log_normal(residual - col(noise.mean), noise.variance[1], noise.share),
        ]
        likelihood = normalised(logs, w)
        # All go on until the last has settled: a step is one product for the whole batch.
        if np.all(likelihood - before < tol):
            break
        before = likelihood
        coef = fit_given_noise(design, Y, mask, logs, noise)
        residual = design.residuals(Y, coef)
        noise = _noise(residual, logs, noise.one, w)
    best = np.argmax(likelihood.reshape(-1, starts), axis=1) + starts * np.arange(len(Y) // starts)
    return OneRegression(likelihood[best], coef[best], noise.chosen(best))


def _starts(one: Single) -> Noise:
    """Three noises for each target, from its mean square ``one`` (B,) about least squares."""
    sd = np.sqrt(one)
    mean = np.stack([0.0 * sd, sd, -sd], axis=1).ravel()
    variance = np.stack([np.outer(one, part).astype(np.float32).ravel() for part in STARTS])
    share: Single = np.full(len(mean), START_SHARE, dtype=np.float32)
    return Noise(mean, variance, share, np.repeat(one, len(STARTS[0])))


def fit_given_noise(
    design: BatchDesign, Y: Single, mask: BoolArray, shares: Sequence[Single], noise: Noise
) -> Single:
    """(B, p) the best slopes given the noise: least squares, rows weighted by their precision.

    ``shares`` are two (B, n), one for each part of the noise. Rows of the second part lie ``mean``
    off the regression, which is taken off first.
    """
    # Precisions in units of the whole noise: no number far from one in single precision.
    tight, wide = (s * col(noise.one / v) for s, v in zip(shares, noise.variance, strict=True))
    both, w = tight + wide, design.weight
    return design.fits(w * both, w * (both * Y - wide * col(noise.mean)), mask)


def _noise(residual: Single, shares: Sequence[Single], one: Single, w: Single) -> Noise:
    """The best noise given the residuals (B, n) and the shares of its two parts in each row."""
    first, second = shares
    total = np.maximum(second @ w, np.float32(SINGLE_TINY))
    mean = (second * residual) @ w / total
    off = residual - col(mean)
    variance = np.stack(
        [
            (first * residual * residual) @ w / np.maximum(first @ w, np.float32(SINGLE_TINY)),
            (second * off * off) @ w / total,
        ]
    )
    # A part that shrank to a few rows would raise the likelihood without end.
    share = np.clip(total, NOISE_SHARE, 1 - NOISE_SHARE)
    return Noise(mean, np.maximum(variance, SHARED_VARIANCE * one), share, one)


def noise_of_two(
    residual: Sequence[Single], shares: Sequence[Single], one: Single, w: Single
) -> Noise:
    """The best noise that two regressions share: as `_noise`, their residuals pooled.

    ``residual`` are two (B, n); ``shares`` four, parts of the noise within regressions.
    """
    weights = np.stack([s @ w for s in shares])
    least = np.float32(SINGLE_TINY)
    total = [np.maximum(weights[part] + weights[2 + part], least) for part in (0, 1)]
    mean = (shares[1] * residual[0] + shares[3] * residual[1]) @ w / total[1]
    off = [r - col(mean) for r in residual]
    variance = np.stack(
        [
            (shares[0] * residual[0] ** 2 + shares[2] * residual[1] ** 2) @ w / total[0],
            (shares[1] * off[0] ** 2 + shares[3] * off[1] ** 2) @ w / total[1],
        ]
    )
    return Noise(mean, np.maximum(variance, SHARED_VARIANCE * one), total[1], one)
