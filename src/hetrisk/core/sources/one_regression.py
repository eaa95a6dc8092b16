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

    @classmethod
    def concatenated(cls, several: Sequence[Noise]) -> Noise:
        """The noise of several lists of targets, one after the other."""
        parts = zip(*((n.mean, n.variance, n.share, n.one) for n in several), strict=True)
        return cls(*(np.concatenate(part, axis=-1) for part in parts))

    @property
    def narrowest(self) -> Single:
        """(B,) variance of the narrower part."""
        narrowest: Single = self.variance.min(axis=0)
        return narrowest

    def narrowed(self) -> Noise:
        """Both parts as narrow as the narrower: no row is in a tail of the noise."""
        both = np.stack([self.narrowest, self.narrowest])
        return Noise(np.zeros_like(self.mean), both, self.share, self.one)

    def of_size(self, one: Single) -> Noise:
        """The noise of one target, as that of others with mean squares ``one`` (B,)."""
        size = one / self.one
        return Noise(self.mean * np.sqrt(size), self.variance * size, 0 * size + self.share, one)

    def chosen(self, index: BoolArray | IntArray) -> Noise:
        """The noise of some of the targets."""
        return Noise(self.mean[index], self.variance[:, index], self.share[index], self.one[index])


@dataclass(frozen=True)
class OneRegression:
    """One regression a target: (B,) mean log likelihoods, (B, p) coefficients, the noise."""

    log_likelihood: Single
    coef: Single
    noise: Noise

    def chosen(self, index: IntArray) -> OneRegression:
        """Return some of the targets."""
        return OneRegression(self.log_likelihood[index], self.coef[index], self.noise.chosen(index))

    def replaced(self, index: IntArray, others: OneRegression) -> OneRegression:
        """Some of the targets with other regressions."""
        parts = (self.log_likelihood, self.coef, self.noise.mean, self.noise.share, self.noise.one)
        new = others.noise
        fresh = (others.log_likelihood, others.coef, new.mean, new.share, new.one)
        likelihood, coef, mean, share, one = (part.copy() for part in parts)
        for part, other in zip((likelihood, coef, mean, share, one), fresh, strict=True):
            part[index] = other
        variance = self.noise.variance.copy()
        variance[:, index] = new.variance
        return OneRegression(likelihood, coef, Noise(mean, variance, share, one))


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
    # A part that no row belongs to has no density, not a warning.
    known = np.log(np.maximum(share, np.finfo(np.float32).tiny))
    log += col(known - np.float32(0.5) * np.log(variance))
    return log


def one_regression(
    design: BatchDesign,
    Y: Single,
    mask: BoolArray,
    iterations: int = LONG,
    tol: float = TOL,
    like: Noise | None = None,
) -> OneRegression:
    """Fit one regression to each target: the best of three starts, wide or skewed either way.

    A start is carried on until it settles. Where the noise is known to be ``like`` that of one
    other target, it starts from that.
    """
    w = design.weight
    coef = design.fits(np.broadcast_to(w, Y.shape), w * Y, mask)
    residual = design.residuals(Y, coef)
    one = np.maximum((residual * residual) @ w, np.float32(ROUNDING))
    noise = _starts(one) if like is None else like.of_size(one)
    starts = len(noise.mean) // len(Y)
    every = np.repeat(np.arange(len(Y)), starts)
    run = _Running(
        design.targets(every), every, Y[every], mask[every], coef[every], residual[every], noise
    )
    settled = _settled(run, iterations, tol)
    best = np.argmax(settled.log_likelihood.reshape(-1, starts), axis=1)
    return settled.chosen(best + starts * np.arange(len(Y)))


@dataclass
class _Running:
    """Targets whose EM still runs: what the next iteration needs of them."""

    design: BatchDesign
    place: IntArray
    Y: Single
    mask: BoolArray
    coef: Single
    residual: Single
    noise: Noise

    def keep(self, going: BoolArray | IntArray) -> None:
        self.design, self.place = self.design.targets(going), self.place[going]
        self.Y, self.mask = self.Y[going], self.mask[going]
        self.coef, self.residual = self.coef[going], self.residual[going]
        self.noise = self.noise.chosen(going)

    def expected(self) -> tuple[Single, Single]:
        """(B,) mean log likelihoods, and (B, n) shares of the second part of the noise."""
        share, (v, u), mean = self.noise.share, self.noise.variance, self.noise.mean
        half = np.float32(0.5)
        # The log odds of the parts are a polynomial of the residual.
        odds = self.residual * col(half / v - half / u)
        odds += col(mean / u)
        odds *= self.residual
        odds += col(np.log(share / (1 - share)) + half * np.log(v / u) - half * mean**2 / u)
        top = np.maximum(odds, 0)
        np.negative(np.abs(odds, out=odds), out=odds)
        small = np.exp(odds, out=odds)
        # The larger part has a share of 1 / (1 + small), the other what is left.
        whole = small + 1
        second = np.where(top > 0, np.float32(1), small)
        second /= whole
        # Log likelihood: of the first part, and what the second adds to it.
        np.log(whole, out=whole)
        whole += top
        square = np.multiply(self.residual, self.residual, out=top)
        square *= col(half / v)
        whole -= square
        likelihood: Single = whole @ self.design.weight + np.log(1 - share) - half * np.log(v)
        return likelihood, second

    def maximise(self, second: Single) -> None:
        """The best slopes given the noise, then the best noise given the slopes."""
        w, noise = self.design.weight, self.noise
        # Precisions in units of the whole noise: no number far from one in single precision.
        tight, wide = noise.one / noise.variance
        weighted = second * w
        precision = second * col(wide - tight)
        precision += col(tight)
        precision *= w
        target = precision * self.Y
        target -= weighted * col(wide * noise.mean)
        self.coef = self.design.fits(precision, target, self.mask)
        self.residual = self.design.residuals(self.Y, self.coef)
        self.noise = _noise(self.residual, weighted, noise.one, w)


def _settled(run: _Running, iterations: int, tol: float) -> OneRegression:
    """Iterate until all have settled; what has settled leaves the batch."""
    B, p = run.coef.shape
    run.place = np.arange(B)
    empty = np.zeros(B, dtype=np.float32)
    done = OneRegression(
        empty.copy(),
        np.zeros((B, p), dtype=np.float32),
        Noise(empty.copy(), np.ones((2, B), dtype=np.float32), empty.copy(), run.noise.one),
    )
    before = np.full(B, -np.inf, dtype=np.float32)
    for iteration in range(iterations):
        likelihood, second = run.expected()
        active = likelihood - before >= tol
        if iteration == iterations - 1:
            active[:] = False
        if not active.all():
            _store(done, run, ~active, likelihood)
            if not active.any():
                break
            run.keep(active)
            likelihood, second = likelihood[active], second[active]
        before = likelihood
        run.maximise(second)
    return done


def _store(done: OneRegression, run: _Running, which: BoolArray, likelihood: Single) -> None:
    """Keep the targets that have settled."""
    place = run.place[which]
    done.log_likelihood[place] = likelihood[which]
    done.coef[place] = run.coef[which]
    done.noise.mean[place] = run.noise.mean[which]
    done.noise.variance[:, place] = run.noise.variance[:, which]
    done.noise.share[place] = run.noise.share[which]


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

    ``shares`` are two (B, n), one for each part of the noise, times the weights of the rows. Rows
    of the second part lie ``mean`` off the regression, which is taken off first.
    """
    # Precisions in units of the whole noise: no number far from one in single precision.
    tight, wide = (s * col(noise.one / v) for s, v in zip(shares, noise.variance, strict=True))
    tight += wide
    target = tight * Y
    wide *= col(noise.mean)
    target -= wide
    return design.fits(tight, target, mask)


def _noise(residual: Single, second: Single, one: Single, w: Single) -> Noise:
    """The best noise given the residuals (B, n) and the weight of its second part in each row."""
    total = np.maximum(second.sum(axis=1), np.float32(SINGLE_TINY))
    mean = _along(second, residual) / total
    off = residual - col(mean)
    off *= off
    wide = _along(second, off) / total
    np.multiply(residual, residual, out=off)
    first = np.subtract(w, second)
    tight = _along(first, off) / np.maximum(first.sum(axis=1), np.float32(SINGLE_TINY))
    # A part that shrank to a few rows would raise the likelihood without end.
    share = np.clip(total, NOISE_SHARE, 1 - NOISE_SHARE)
    variance = np.maximum(np.stack([tight, wide]), SHARED_VARIANCE * one)
    return Noise(mean, variance, share, one)


def _along(left: Single, right: Single) -> Single:
    """(B,) sums along the rows of products."""
    sums: Single = np.einsum("bn,bn->b", left, right)
    return sums


def noise_of_two(residual: Sequence[Single], shares: Sequence[Single], one: Single) -> Noise:
    """The best noise that two regressions share: as `_noise`, their residuals pooled.

    ``residual`` are two (B, n); ``shares`` four, parts of the noise within regressions, times the
    weights of the rows.
    """
    weights, least = [s.sum(axis=1) for s in shares], np.float32(SINGLE_TINY)
    total = [np.maximum(weights[part] + weights[2 + part], least) for part in (0, 1)]
    mean = (_along(shares[1], residual[0]) + _along(shares[3], residual[1])) / total[1]
    tight, wide = np.zeros_like(mean), np.zeros_like(mean)
    for k, each in enumerate(residual):
        square = each * each
        tight += _along(shares[2 * k], square)
        off = np.subtract(each, col(mean), out=square)
        off *= off
        wide += _along(shares[2 * k + 1], off)
    variance = np.stack([tight / total[0], wide / total[1]])
    return Noise(mean, np.maximum(variance, SHARED_VARIANCE * one), total[1], one)
