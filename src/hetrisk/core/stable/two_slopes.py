"""One regression or two? Mixtures of regressions for many targets at once, on one design.

    p(y | z) = sum_k sum_l q_kl N(y; z'b_k + m_l, v_l),   k = 1 .. K,   l = 1, 2,   m_1 = 0.

The noise of every regression is the same mixture of two normals, so heavy tails, outliers and
skewed noise are no second regression; K = 2 holds K = 1 as the case b_1 = b_2, and the gain in mean
log likelihood from the one to the other speaks of slopes alone. Fitted by EM (expectation
conditional maximisation, Meng and Rubin 1993) for B targets side by side: the Gram matrices of all
are one product of (K B, n) weights with the (n, p (p + 1) / 2) products of the design's columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.floors import (
    LEAST_WEIGHT,
    NEARLY_SINGULAR,
    NOISE_SHARE,
    SHARED_VARIANCE,
    TINY,
)
from hetrisk.core.numerics.gram import pair_products, weighted_grams
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray, IntArray

FAR: Budget[float] = 3.0  # standard deviations beyond which a row counts no further
LEAST_SHARE: Budget[float] = 0.02  # of the rows, that either slope holds
TAIL: Budget[float] = 0.15  # of the rows, that a start gives to the second slope
SHORT: Budget[int] = 4  # iterations of a start
LONG: Budget[int] = 40  # of those carried on
START_ROWS: Budget[int] = 800  # that starts are compared on
TOLERANCE: Budget[float] = 1e-5  # gain in mean log likelihood below which EM stops


class Design:
    """Columns (n, p), the constant first, that targets are regressed on; weights add up to one."""

    def __init__(self, Z: FloatArray, weight: FloatArray) -> None:
        self.Z, self.weight = np.ascontiguousarray(Z), weight / weight.sum()
        self.products = pair_products(self.Z)

    def rows(self, at: IntArray) -> Design:
        """Return the design of some rows."""
        return Design(self.Z[at], self.weight[at])

    def fits(self, weight: FloatArray, target: FloatArray) -> FloatArray:
        """(..., p) least squares under weights (..., n) of targets times their weights."""
        gram = weighted_grams(self.Z, weight, self.products)
        diagonal = np.arange(self.Z.shape[1])
        size = np.maximum(gram[..., diagonal, diagonal], TINY)
        gram[..., diagonal, diagonal] = size + NEARLY_SINGULAR * size[..., :1]
        coef = np.linalg.solve(gram, (target @ self.Z)[..., None])[..., 0]
        return np.asarray(coef, dtype=np.float64)


@dataclass(frozen=True)
class Mixture:
    """K regressions for each of B targets.

    Attributes
    ----------
    likelihood : (B,) mean log likelihood, a constant left out.
    coef : (K, B, p).
    share : (K, 2, B) q_kl.
    mean : (B,) m_2; variance : (2, B).
    belongs : (K, B, n) share of each regression in each row.
    """

    likelihood: FloatArray
    coef: FloatArray
    share: FloatArray
    mean: FloatArray
    variance: FloatArray
    belongs: FloatArray

    def of(self, targets: IntArray) -> Mixture:
        """Return the mixtures of some targets."""
        return Mixture(
            self.likelihood[targets],
            self.coef[:, targets],
            self.share[..., targets],
            self.mean[targets],
            self.variance[:, targets],
            self.belongs[:, targets],
        )


def one_regression(design: Design, Y: FloatArray) -> Mixture:
    """Fit one regression to each target (B, n): the best of noise that starts wide or skewed."""
    B = len(Y)
    coef = design.fits(np.broadcast_to(design.weight, Y.shape), design.weight * Y)
    one = np.maximum(((Y - coef @ design.Z.T) ** 2) @ design.weight, TINY)
    sd = np.sqrt(one)
    mean = np.concatenate([0 * sd, sd, -sd])
    variance = np.concatenate([[0.4 * one, 3.0 * one], [0.7 * one, one], [0.7 * one, one]], axis=1)
    share = np.repeat(np.array([[[0.75], [0.25]]]), 3 * B, axis=2)
    start = Mixture(
        np.full(3 * B, -np.inf),
        np.tile(coef, (3, 1))[None],
        share,
        mean,
        variance,
        np.ones((1, 3 * B, 1)),
    )
    found = _climb(design, np.tile(Y, (3, 1)), start, LONG)
    return found.of(found.likelihood.reshape(3, B).argmax(axis=0) * B + np.arange(B))


def two_regressions(design: Design, Y: FloatArray, one: Mixture) -> Mixture:
    """Fit two to each target, from the tails of what one leaves.

    EM starts where residual times column is farthest out, either side, for every column, and where
    residuals are large. Starts are compared after a few iterations on some of the rows, and the
    best is carried on: with the noise of one regression, and with noise that starts narrow, since
    the wide part of the noise may have taken the rows of a rarer slope for its own.
    """
    n, B = len(design.Z), len(Y)
    some = np.arange(0, n, max(1, n // START_ROWS))
    small, few = design.rows(some), Y[:, some]
    starts = _tails(small, few - one.coef[0] @ small.Z.T)
    m = len(starts)
    best = []
    for narrow in (False, True):
        noise = one if not narrow else _narrowed(one)
        tiled, targets = noise.of(np.tile(np.arange(B), m)), np.tile(few, (m, 1))
        begun = _begun(small, targets, starts.reshape(m * B, -1), tiled)
        tried = _climb(small, targets, begun, SHORT)
        chosen = tried.of(tried.likelihood.reshape(m, B).argmax(axis=0) * B + np.arange(B))
        best.append(_climb(design, Y, chosen, LONG))
    first, second = best
    both = _joined(first, second)
    return both.of(np.where(second.likelihood > first.likelihood, B, 0) + np.arange(B))


def row_gain(design: Design, Y: FloatArray, two: Mixture) -> FloatArray:
    """(n,) log likelihood of each row that two regressions gain over one, for the first target."""
    one, first = one_regression(design, Y), two.of(np.zeros(1, dtype=np.int64))
    logs = [_log_density(m, Y - m.coef @ design.Z.T) for m in (first, one)]
    each = [np.logaddexp.reduce(log.reshape(-1, log.shape[-1]), axis=0) for log in logs]
    return np.asarray(each[0] - each[1], dtype=np.float64)


def gains(design: Design, Y: FloatArray) -> tuple[FloatArray, Mixture]:
    """(B,) gain in mean log likelihood of two regressions over one, and the two."""
    one = one_regression(design, Y)
    two = two_regressions(design, Y, one)
    return two.likelihood - one.likelihood, two


def _tails(design: Design, residual: FloatArray) -> FloatArray:
    """(m, B, n) shares of the second regression to start from."""
    sd = np.sqrt(np.maximum(residual**2 @ design.weight, TINY))
    far = np.clip(residual / sd[:, None], -FAR, FAR)
    columns = np.clip(design.Z[:, 1:], -FAR, FAR).T
    values = [sign * far * column for column in columns for sign in (1.0, -1.0)]
    return np.stack([_tail(v, TAIL) for v in values] + [_tail(np.abs(far), 2 * TAIL)])


def _tail(value: FloatArray, share: float) -> FloatArray:
    place = int((1 - share) * (value.shape[1] - 1))
    cut = np.partition(value, place, axis=1)[:, place, None]
    return np.where(value > cut, 0.9, 0.05)


def _begun(design: Design, Y: FloatArray, second: FloatArray, noise: Mixture) -> Mixture:
    """Two slopes fitted to rows as they are shared out, the noise as given."""
    held = np.stack([1.0 - second, second]) * design.weight
    coef = design.fits(held, held * Y)
    q = np.clip(held.sum(axis=2), LEAST_SHARE, 1.0 - LEAST_SHARE)
    share = q[:, None] * noise.share.sum(axis=0)
    return replace(noise, coef=coef, share=share, belongs=held)


def _climb(design: Design, Y: FloatArray, state: Mixture, iterations: int) -> Mixture:
    """EM until the likelihood of every target settles; those that have, leave the batch."""
    settled: list[tuple[IntArray, Mixture]] = []
    place = np.arange(len(Y))
    before = np.full(len(Y), -np.inf)
    one = np.maximum(state.variance.max(axis=0), TINY)
    for iteration in range(iterations):
        residual = Y - state.coef @ design.Z.T
        shares, likelihood = _expected(design, state, residual)
        state = replace(state, likelihood=likelihood, belongs=shares.sum(axis=1))
        going = (likelihood - before >= TOLERANCE) | (iteration < 2)
        if iteration == iterations - 1:
            going[:] = False
        if not going.all():
            done = np.flatnonzero(~going)
            settled.append((place[done], state.of(done)))
            keep = np.flatnonzero(going)
            if not len(keep):
                break
            state, Y, place, one = state.of(keep), Y[keep], place[keep], one[keep]
            residual, shares = residual[:, keep], shares[:, :, keep]
            likelihood = likelihood[keep]
        before = likelihood
        state = _maximised(design, Y, state, residual, shares * design.weight, one)
    order = np.argsort(np.concatenate([at for at, _ in settled]))
    joined = settled[0][1]
    for _, further in settled[1:]:
        joined = _joined(joined, further)
    return joined.of(order)


def _expected(
    design: Design, state: Mixture, residual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(K, 2, B, n) shares and (B,) mean log likelihoods."""
    log = _log_density(state, residual)
    # The row maximum is taken off: densities of distant rows underflow.
    top = log.max(axis=(0, 1))
    np.exp(log - top, out=log)
    total = log.sum(axis=(0, 1))
    return log / total, (top + np.log(total)) @ design.weight


def _log_density(state: Mixture, residual: FloatArray) -> FloatArray:
    """(K, 2, B, n) log of share times density, a constant left out."""
    off = np.stack([residual, residual - state.mean[:, None]], axis=1)
    level = np.log(np.maximum(state.share, TINY)) - 0.5 * np.log(state.variance)
    return np.asarray(level[..., None] - 0.5 * off**2 / state.variance[..., None])


def _maximised(
    design: Design,
    Y: FloatArray,
    state: Mixture,
    residual: FloatArray,
    held: FloatArray,
    one: FloatArray,
) -> Mixture:
    """Shares, noise, then slopes: each the best given the others; ``held`` (K, 2, B, n)."""
    share = held.sum(axis=3)
    slope = share.sum(axis=1, keepdims=True)
    if len(share) > 1:
        # A slope cannot shrink to a few rows; parts of the noise keep their proportions.
        bounded = np.clip(slope, LEAST_SHARE, 1.0 - LEAST_SHARE)
        share = share * bounded / np.maximum(slope, TINY)
    part = held.sum(axis=(0, 3))
    mean = np.einsum("kbn,kbn->b", held[:, 1], residual) / np.maximum(part[1], TINY)
    off = np.stack([residual, residual - mean[:, None]], axis=1)
    square = np.einsum("klbn,klbn->lb", held, off**2)
    variance = np.maximum(square / np.maximum(part, TINY), SHARED_VARIANCE * one)
    # A part that shrank to a few rows would raise the likelihood without end.
    noise = np.clip(part[1] / part.sum(axis=0), NOISE_SHARE, 1.0 - NOISE_SHARE)
    if len(share) == 1:
        share = np.stack([1.0 - noise, noise])[None]
    precision = held * (one / variance)[..., None]
    weight = precision.sum(axis=1)
    coef = design.fits(weight, weight * Y - precision[:, 1] * mean[:, None])
    share = np.maximum(share, LEAST_WEIGHT)
    return replace(state, coef=coef, share=share, mean=mean, variance=variance)


def _narrowed(one: Mixture) -> Mixture:
    """The noise of one regression, both parts as narrow as the narrower."""
    least = one.variance.min(axis=0)
    return replace(one, mean=0 * one.mean, variance=np.stack([least, least]))


def _joined(first: Mixture, second: Mixture) -> Mixture:
    return Mixture(
        np.concatenate([first.likelihood, second.likelihood]),
        np.concatenate([first.coef, second.coef], axis=1),
        np.concatenate([first.share, second.share], axis=2),
        np.concatenate([first.mean, second.mean]),
        np.concatenate([first.variance, second.variance], axis=1),
        np.concatenate([first.belongs, second.belongs], axis=1),
    )
