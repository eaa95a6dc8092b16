"""One regression or two? Many targets at once, on one design.

*One regression* (`hetrisk.core.sources.one_regression`) is y = z'b + noise, where the noise is a
mixture of two normals: heavy tails, outliers and skewed noise are then no heterogeneity. *Two
slopes* is the same noise about two regressions,

    p(y | z) = sum_k sum_l q_kl N(y; z'b_k + m_l, v_l),   k, l in {1, 2},   m_1 = 0,

which holds one regression as the case b_1 = b_2, so that the gain in mean log likelihood from the
one to the other speaks of slopes alone. Both are fitted by EM (expectation conditional
maximisation, Meng and Rubin 1993), for a batch of B targets side by side: the Gram matrices of all
of them are one product of (B, n) weights with the (n, p (p + 1) / 2) products of the design's
columns. Sums are in single precision, which is ample for differences of 1e-4 in a mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from hetrisk.core.numerics.floors import (
    LEAST_WEIGHT,
    ROUNDING,
    SINGLE_TINY,
)
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.sources.design import BatchDesign, Single
from hetrisk.core.sources.one_regression import (
    Noise,
    OneRegression,
    col,
    fit_given_noise,
    log_normal,
    noise_of_two,
    normalised,
    one_regression,
)
from hetrisk.core.thresholds import THRESHOLDS

TAIL: Budget[float] = 0.15  # share of the rows that a start gives to the second slope
SHORT: Budget[int] = 4  # iterations of a start
LONG: Budget[int] = 40  # of those carried on
SETS_LONG: Budget[int] = 30  # iterations where many sets of columns are compared
IN_TAIL: Budget[float] = 0.9  # share of the second slope that a start gives to rows in a tail
OFF_TAIL: Budget[float] = 0.05  # and to the others
START_ROWS: Budget[int] = 800  # rows the starts are compared on
TOL: Budget[float] = 2e-5  # gain in mean log likelihood below which EM stops


@dataclass(frozen=True)
class TwoSlopes:
    """Two regressions a target.

    Attributes
    ----------
    log_likelihood : (B,) mean over the rows.
    coef : (2, B, p).
    weights : (2, 2, B) q_kl: slopes first, parts of the noise second.
    noise : the two normals.
    second : (B, n) share of the second regression in each row.
    """

    log_likelihood: Single
    coef: Single
    weights: Single
    noise: Noise
    second: Single

    def chosen(self, index: IntArray) -> TwoSlopes:
        """Return some of the targets."""
        return TwoSlopes(
            self.log_likelihood[index],
            self.coef[:, index],
            self.weights[..., index],
            self.noise.chosen(index),
            self.second[index],
        )


@dataclass
class _Running:
    """Targets whose EM still runs: what the next iteration needs of them."""

    place: IntArray
    Y: Single
    mask: BoolArray
    coef: Single
    weights: Single
    mean: Single
    variance: Single
    one: Single

    def keep(self, going: BoolArray) -> None:
        self.place, self.Y, self.mask = self.place[going], self.Y[going], self.mask[going]
        self.coef, self.weights = self.coef[:, going], self.weights[:, going]
        self.mean, self.variance = self.mean[going], self.variance[:, going]
        self.one = self.one[going]


def two_slopes(
    design: BatchDesign,
    Y: Single,
    second: Single,
    noise: Noise,
    mask: BoolArray,
    iterations: int = LONG,
    tol: float = TOL,
) -> TwoSlopes:
    """Fit two regressions to each target from shares (B, n); EM stops target by target."""
    B = len(Y)
    run = _begin(design, Y, second, noise, mask)
    done = TwoSlopes(
        np.full(B, -np.inf, dtype=np.float32),
        np.zeros_like(run.coef),
        np.zeros_like(run.weights),
        Noise(np.zeros_like(noise.mean), np.ones_like(noise.variance), noise.share, noise.one),
        np.array(second),
    )
    before = done.log_likelihood.copy()
    for iteration in range(iterations):
        residual = [design.residuals(run.Y, run.coef[k]) for k in (0, 1)]
        shares = _log_densities(run, residual)
        likelihood = normalised(shares, design.weight)
        # The first step may lower a likelihood that the start had too high: shares given to rows
        # need not be those of any slopes.
        active = (likelihood - before >= tol) | (iteration < 2)
        if iteration == iterations - 1:
            active[:] = False
        if not active.all():
            _store(done, run, ~active, likelihood, shares)
            if not active.any():
                break
            run.keep(active)
            likelihood = likelihood[active]
            shares, residual = [s[active] for s in shares], [r[active] for r in residual]
        before = likelihood
        _maximise(design, run, shares, residual)
    return TwoSlopes(
        done.log_likelihood, done.coef, done.weights.reshape(2, 2, B), done.noise, done.second
    )


def _begin(
    design: BatchDesign, Y: Single, second: Single, noise: Noise, mask: BoolArray
) -> _Running:
    """Slopes fitted to the rows as they are shared out, noise as given."""
    w = design.weight
    share = np.clip(second @ w, THRESHOLDS.least_share, 1 - THRESHOLDS.least_share)
    weights = np.stack(
        [
            (1 - share) * (1 - noise.share),
            (1 - share) * noise.share,
            share * (1 - noise.share),
            share * noise.share,
        ]
    )
    coef = np.stack([design.fits(w * r, w * r * Y, mask) for r in (1 - second, second)])
    place = np.arange(len(Y))
    return _Running(place, Y, mask, coef, weights, noise.mean, noise.variance, noise.one)


def _log_densities(run: _Running, residual: list[Single]) -> list[Single]:
    """Four (B, n): slope 1 with either part of the noise, then slope 2."""
    return [
        log_normal(
            residual[k] - col(run.mean) if part else residual[k],
            run.variance[part],
            run.weights[2 * k + part],
        )
        for k in (0, 1)
        for part in (0, 1)
    ]


def _store(
    done: TwoSlopes, run: _Running, which: BoolArray, likelihood: Single, shares: list[Single]
) -> None:
    """Keep the targets that have settled."""
    place = run.place[which]
    done.log_likelihood[place] = likelihood[which]
    done.coef[:, place] = run.coef[:, which]
    done.weights[:, place] = run.weights[:, which]
    done.noise.mean[place] = run.mean[which]
    done.noise.variance[:, place] = run.variance[:, which]
    done.second[place] = (shares[2] + shares[3])[which]


def _maximise(
    design: BatchDesign, run: _Running, shares: list[Single], residual: list[Single]
) -> None:
    """Weights, noise, then slopes: each the best given the others.

    Shares are multiplied by the weights of the rows, in place.
    """
    for share in shares:
        share *= design.weight
    weights = np.stack([s.sum(axis=1) for s in shares])
    # A component cannot shrink to a few rows.
    least = THRESHOLDS.least_share
    # Four weights, two slopes by two parts of the noise: the clip is on a slope's share, and its
    # parts keep their proportions.
    second = np.clip(weights[2] + weights[3], least, 1 - least)
    size = np.maximum(np.stack([weights[0] + weights[1], weights[2] + weights[3]]), SINGLE_TINY)
    kept = np.stack([1 - second, second]) / size
    run.weights = np.clip(weights * np.repeat(kept, 2, axis=0), LEAST_WEIGHT, 1.0).astype(
        np.float32
    )
    noise = noise_of_two(residual, shares, run.one)
    run.mean, run.variance = noise.mean, noise.variance
    run.coef = np.stack(
        [fit_given_noise(design, run.Y, run.mask, shares[2 * k : 2 * k + 2], noise) for k in (0, 1)]
    )


def gains(design: BatchDesign, Y: FloatArray) -> tuple[FloatArray, TwoSlopes, OneRegression]:
    """(B,) gain in mean log likelihood of two slopes over one regression, and both.

    EM starts from tails: the rows where residual times column is farthest out, either side, for
    every column, and the rows of large residuals. They are compared after a few iterations on some
    of the rows, and the best is carried to the end: once with the noise of one regression, and once
    with noise that starts narrow. In one regression the wider part of the noise has taken the rows
    of a rarer slope for its own, and may not let go of them.
    """
    Y32: Single = np.ascontiguousarray(Y, dtype=np.float32)
    mask = np.ones((len(Y32), design.n_columns), dtype=bool)
    one = one_regression(design, Y32, mask)
    n = len(design)
    # Starts are many and short; which of them is best shows on few rows.
    some = np.linspace(0, n - 1, min(n, START_ROWS)).astype(np.int64)
    small = design.rows(some)
    starts = _starts(small, small.residuals(Y32[:, some], one.coef))
    carried = []
    for noise in (one.noise, one.noise.narrowed()):
        best = _best_start(small, Y32[:, some], starts, noise, mask)
        gap = design.residuals(Y32, best.coef[0]) ** 2 - design.residuals(Y32, best.coef[1]) ** 2
        # The slopes were fitted to some of the rows; all rows are shared out by which slope is
        # nearer, in units of the noise.
        carried.append((expit(gap / col(best.noise.narrowest)), best.noise))
    second, noises = zip(*carried, strict=True)
    Y2, mask2 = np.concatenate([Y32, Y32]), np.concatenate([mask, mask])
    found = two_slopes(design, Y2, np.concatenate(second), Noise.concatenated(noises), mask2)
    first = np.arange(len(Y32))
    narrow = found.log_likelihood[len(Y32) :] > found.log_likelihood[: len(Y32)]
    chosen = found.chosen(np.where(narrow, first + len(Y32), first))
    return (chosen.log_likelihood - one.log_likelihood).astype(np.float64), chosen, one


def _best_start(
    design: BatchDesign, Y: Single, starts: Single, noise: Noise, mask: BoolArray
) -> TwoSlopes:
    """Of the starts (B, m, n) of each target, the best after a few iterations."""
    B, m = starts.shape[:2]
    tried = two_slopes(
        design,
        np.repeat(Y, m, axis=0),
        starts.reshape(B * m, -1),
        noise.repeated(m),
        np.repeat(mask, m, axis=0),
        SHORT,
        -np.inf,
    )
    return tried.chosen(tried.log_likelihood.reshape(B, m).argmax(axis=1) + m * np.arange(B))


def gains_from(
    design: BatchDesign, y: FloatArray, second: Single, mask: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """(B,) the same gains for one target and many sets of columns, from known shares (n,).

    Also (B,) the mean squared error of least squares on each set.
    """
    Y = np.repeat(np.asarray(y, dtype=np.float32)[None], len(mask), axis=0)
    one = one_regression(design, Y, mask, SETS_LONG)
    start = np.repeat(second[None], len(mask), axis=0)
    two = two_slopes(design, Y, start, one.noise.narrowed(), mask, SETS_LONG)
    gain: FloatArray = (two.log_likelihood - one.log_likelihood).astype(np.float64)
    return gain, one.noise.one.astype(np.float64)


def _starts(design: BatchDesign, residual: Single) -> Single:
    """(B, 2 p - 1, n) shares of the second slope to start from."""
    sd = np.sqrt(np.maximum((residual * residual) @ design.weight, np.float32(ROUNDING)))
    # Where slopes differ in a column, residual times column is large and of one sign for the rows
    # of the rarer slope.
    far = np.clip(residual / col(sd), -THRESHOLDS.far, THRESHOLDS.far)
    starts = []
    for column in np.clip(design.Z[:, 1:], -THRESHOLDS.far, THRESHOLDS.far).T:
        for sign in (1, -1):
            starts.append(_tail(sign * far * column, TAIL))
    starts.append(_tail(np.abs(far), 2 * TAIL))
    stacked: Single = np.stack(starts, axis=1)
    return stacked


def _tail(value: Single, share: float) -> Single:
    place = int((1 - share) * (value.shape[1] - 1))
    cut = np.partition(value, place, axis=1)[:, place]
    return np.where(value > col(cut), np.float32(IN_TAIL), np.float32(OFF_TAIL))
