"""Regret: what a model fitted to all rows loses in one environment, from moments alone.

With z = (1, x), A_e = E_e[z z'] and b_e = E_e[z y], the pooled least squares fit on a set of
columns S and that of environment e, beta_S and beta_Se, give the regret

    rho_e(S) = (beta_S - beta_Se)' A_e (beta_S - beta_Se),

and if the mechanism moves k times as far from the average as it did in e, the loss is k^2 rho_e.
Environments differ in their noise as well: at reach 1 the future is all like one of them, and may
be like the noisiest. So the squared error to expect at reach k is

    E_k(S) = R(S) + min(k, 1) max_e (sigma_e^2(S) - sigma^2(S)) + k^2 max_e rho_e(S),

with R(S) the pooled risk, sigma_e^2 the risk of the environment's own fit and sigma^2 its mean.
Where y given S is the same everywhere, both of the last terms vanish. Beyond what was seen only the
mechanism moves on: of noise nobody knows in which direction, or how far.

Where nothing differs, rho_e still has the mean phi sigma_e^2 |S| / n_e (1 - share_e): the noise of
beta_Se less the part that the pooled fit shares. That is subtracted. phi is one for constant
noise; where noise follows the columns it is measured (`hetrisk.core.reach.heterogeneity`).

For labels the squared error of their indicators (the Brier score of a linear probability) takes
the place of that of y: one currency, one closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import fdtrc

from hetrisk.core.numerics.floors import ROUNDING, SINGULAR, TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.thresholds import THRESHOLDS


@dataclass(frozen=True)
class Environments:
    """Moments of K environments, perhaps of several partitions, and of all rows.

    Further axes before these, if any, index resamples of the rows. An environment without rows in
    one of them has no share there, the moments of all rows and a phi of zero: it shows no regret.

    Attributes
    ----------
    gram : (K, q, q) mean of z z' in each environment, z = (1, x, y); targets last.
    rows : (K,) effective rows.
    share : (K,) of the rows of the partition the environment belongs to.
    partition : (K,) number of that partition.
    pooled : (q, q) mean of z z' over all rows.
    n_targets : t.
    phi : (K,) noise of the coefficients relative to that of constant variance.
    null : where the environments were made from y, the same environments made from targets of one
        population: what they show is chance.
    spared : of what they show, that is not subtracted: chance never takes more than there is, and
        the gap between two sets of columns stays what it is.
    sorted_by_noise : whether rows were placed by their targets: what environments err by then tells
        how they were made.
    """

    gram: FloatArray
    rows: FloatArray
    share: FloatArray
    partition: IntArray
    pooled: FloatArray
    n_targets: int
    phi: FloatArray
    null: tuple[Environments, ...] = ()
    spared: float = 0.0
    sorted_by_noise: bool = False

    @property
    def n_columns(self) -> int:
        """Number of columns d of x."""
        return int(self.gram.shape[-1]) - 1 - self.n_targets

    @cached_property
    def stacked(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A (K + 1, p, p), b (K + 1, p, t), c (K + 1,): all rows first, then the environments."""
        p = 1 + self.n_columns
        every = np.concatenate([self.pooled[..., None, :, :], self.gram], axis=-3)
        A = every[..., :p, :p].copy()
        diagonal = np.einsum("...ii->...i", A)
        size = np.diagonal(self.pooled, axis1=-2, axis2=-1)[..., None, :p]
        # A column that repeats others stays solvable; one that never varies gets zero.
        diagonal += SINGULAR * np.where(size > 0, size, 1.0)
        return A, every[..., :p, p:], np.trace(every[..., p:, p:], axis1=-2, axis2=-1)

    def noise(self, own: FloatArray, size: IntArray | int) -> FloatArray:
        """(K, m) mean regret of chance alone, for m sets of ``size`` (m,) coefficients.

        ``own`` (K, m) are the risks of the environments' own fits.
        """
        chance: FloatArray = self._chance * (size * self._variance(own, size))
        return chance

    def noise_gap(self, own: FloatArray, size: IntArray | int) -> FloatArray:
        """(m,) how far the noise of the noisiest environment lies above its partition's mean.

        ``own`` and ``size`` as for `noise`.
        """
        if self.sorted_by_noise:
            return np.zeros(own.shape[:-2] + own.shape[-1:])
        gap: FloatArray = (self._above @ self._variance(own, size)).max(axis=-2, initial=0.0)
        return gap

    @cached_property
    def _chance(self) -> FloatArray:
        """(K, 1) mean regret of chance alone, in units of the noise and a coefficient."""
        # 1 - share: the pooled fit holds the environment's own rows, and moves along with its
        # noise.
        scale: FloatArray = self.phi / self.rows * (1.0 - self.share)
        return scale[..., None]

    @cached_property
    def _above(self) -> FloatArray:
        """(K, K) takes values of the environments to what they are above their partition's mean."""
        same = self.partition[:, None] == self.partition
        weight = same * self.share[..., None, :]
        mean = weight / np.maximum(weight.sum(axis=-1, keepdims=True), TINY)
        above: FloatArray = (np.eye(len(self.partition)) - mean) * (self.share > 0.0)[..., None]
        return above

    def over_all(self, beyond: FloatArray) -> FloatArray:
        """(m,) mean over all rows of regrets less chance (m, K), not below zero.

        What is above and below chance where nothing differs cancels out; clipped one by one, many
        environments would show a regret that is not there.
        """
        mean: FloatArray = (beyond * self.share[..., None, :]).sum(axis=-1)
        return np.maximum(mean, 0.0)

    def _variance(self, own: FloatArray, size: IntArray | int) -> FloatArray:
        """(K, m) of the noise: a fit has taken ``size`` degrees of freedom from its residuals."""
        rows = self.rows[..., None]
        variance: FloatArray = np.maximum(own, 0.0) * rows / np.maximum(rows - size, 1.0)
        return variance

    def without(self, out: IntArray) -> Environments:
        """The same environments of one partition without each (m,) of some: m resamples."""
        absent = out[:, None] == np.arange(len(self.rows))
        rest = np.maximum(1.0 - self.share[out], ROUNDING)[:, None]
        missing = self.share[out, None, None] * self.gram[out]
        # Moments are sums: what is left without an environment needs no pass over the rows.
        pooled = (self.pooled - missing) / rest[:, :, None]
        return replace(
            self,
            gram=np.where(absent[:, :, None, None], pooled[:, None], self.gram),
            rows=np.where(absent, 1.0, self.rows),
            share=np.where(absent, 0.0, self.share / rest),
            pooled=pooled,
            phi=np.where(absent, 0.0, self.phi),
        )

    def some(self, chosen: BoolArray | int) -> Environments:
        """Some of the resamples, or one on its own."""
        parts = ("gram", "rows", "share", "pooled", "phi")
        return replace(self, **{name: getattr(self, name)[chosen] for name in parts})


@dataclass(frozen=True)
class Fits:
    """Least squares on one set of columns: pooled, and in every environment.

    Further axes before these are those of the environments.

    Attributes
    ----------
    coef : (K + 1, p, t) coefficients, constant first, zero off the set; all rows first.
    risk : pooled squared error R(S); own : (K,) that of each environment's own fit.
    noise_gap : how far the noise of the noisiest environment lies above the mean.
    regret : (K,) as it is; chance : (K,) its mean were nothing to differ.
    mean : what is beyond chance, over all rows.
    """

    coef: FloatArray
    risk: FloatArray
    own: FloatArray
    noise_gap: FloatArray
    regret: FloatArray
    chance: FloatArray
    mean: FloatArray

    @property
    def excess(self) -> FloatArray:
        """(K,) regret beyond chance, not below zero."""
        beyond: FloatArray = np.maximum(self.regret - self.chance, 0.0)
        return beyond

    @property
    def worst(self) -> float:
        """The largest regret beyond chance."""
        return float(self.excess.max(initial=0.0))

    def expected(self, reach: float) -> float:
        """E_k: the squared error to expect at this reach."""
        return float(expected_error(self.risk, self.noise_gap, self.worst, reach))


def expected_error(
    risk: FloatArray | float,
    noise_gap: FloatArray | float,
    worst: FloatArray | float,
    reach: FloatArray | float,
) -> FloatArray:
    """E_k, the squared error to expect at a reach, of whatever has these three."""
    expected: FloatArray = risk + np.minimum(reach, 1.0) * noise_gap + np.square(reach) * worst
    return expected


def square_block(matrices: FloatArray, at: IntArray) -> FloatArray:
    """(..., s, s) the rows and columns ``at`` (s,) of matrices (..., p, p)."""
    # Numbers of one axis are taken many times quicker than those of two are indexed.
    leading, p = matrices.shape[:-2], matrices.shape[-1]
    place = (at[:, None] * p + at).ravel()
    block: FloatArray = matrices.reshape(*leading, p * p).take(place, axis=-1)
    return block.reshape(*leading, len(at), len(at))


def fit_set(environments: Environments, columns: BoolArray) -> Fits:
    """Fit y on a constant and some columns, pooled and in every environment."""
    A, b, c = environments.stacked
    chosen = np.flatnonzero(np.append(True, columns))
    sub, right = square_block(A, chosen), b[..., chosen, :]
    solved = np.linalg.solve(sub, right)
    risk = c - (solved * right).sum(axis=(-2, -1))
    apart = solved[..., :1, :, :] - solved[..., 1:, :, :]
    regret = (apart * (sub[..., 1:, :, :] @ apart)).sum(axis=(-2, -1))
    coef = np.zeros_like(b)
    coef[..., chosen, :] = solved
    own = risk[..., 1:, None]
    chance = environments.noise(own, len(chosen))[..., 0]
    chance = chance + shown_by_chance(environments, columns)
    risk, gap = np.maximum(risk, 0.0), environments.noise_gap(own, len(chosen))[..., 0]
    mean = environments.over_all((regret - chance)[..., None, :])[..., 0]
    return Fits(coef, risk[..., 0], risk[..., 1:], gap, regret, chance, mean)


def says_nothing(environments: Environments, columns: BoolArray) -> bool:
    """Whether some columns predict y no better than its mean does, up to chance (an F test).

    Such a model shows no regret, whatever moves: it is safe, and of no use.
    """
    size = int(columns.sum())
    some, none = (float(fit_set(environments, c).risk) for c in (columns, np.zeros_like(columns)))
    rows = environments.rows[environments.partition == 0].sum() - 1.0 - size
    if size == 0 or rows <= 0.0:
        return True
    ratio = max(none - some, 0.0) / size / max(some / rows, TINY)
    return float(fdtrc(size, rows, ratio)) >= THRESHOLDS.alpha


def shown_by_chance(environments: Environments, columns: BoolArray) -> float:
    """Regret that one population shows where rows were placed by their targets; else none.

    What it shows on average over draws, on a set of columns, is chance; but for what is spared.
    """
    if not environments.null:
        return 0.0
    shown = np.mean([fit_set(e, columns).worst for e in environments.null])
    return float(shown) - environments.spared


def sparing(environments: Environments, sets: list[BoolArray]) -> Environments:
    """Spare what chance would take beyond what there is, for whichever set lacks most."""
    fits = [fit_set(environments, columns) for columns in sets]
    lacking = max(float((fit.chance - fit.regret).min()) for fit in fits)
    return replace(environments, spared=environments.spared + max(lacking, 0.0))


def regret_of(environments: Environments, coef: FloatArray, own: Fits) -> FloatArray:
    """(K,) regret of any linear model (p, t) against each environment's own fit."""
    gap = coef[..., None, :, :] - own.coef[..., 1:, :, :]
    A = environments.stacked[0][..., 1:, :, :]
    regret: FloatArray = (gap * (A @ gap)).sum(axis=(-2, -1))
    return regret


def gradient_shift(environments: Environments, coef: FloatArray) -> FloatArray:
    """(K,) how far each environment's gradient of a linear model (p, t) is from the pooled one.

    In the metric of A_e^-1, less the mean of its noise. For the pooled least squares fit this is
    its regret; a model that is equally far from the best fit of every environment shows none.
    """
    A, b, _ = environments.stacked
    gradient = A @ coef[..., None, :, :] - b
    # Against the pooled gradient, not against zero: a model may be far from every environment's
    # best fit, as long as it is equally far from all.
    gap = gradient[..., 1:, :, :] - gradient[..., :1, :, :]
    shift = (gap * np.linalg.solve(A[..., 1:, :, :], gap)).sum(axis=(-2, -1))
    risk = risk_of(environments, coef)[..., 1:, None]
    beyond: FloatArray = shift - environments.noise(risk, coef.shape[-2])[..., 0]
    return beyond


def risk_of(environments: Environments, coef: FloatArray) -> FloatArray:
    """(K + 1,) squared error of any linear model (p, t): over all rows, then by environment."""
    A, b, c = environments.stacked
    coef = coef[..., None, :, :]
    risk: FloatArray = np.maximum(c + (coef * (A @ coef - 2.0 * b)).sum(axis=(-2, -1)), 0.0)
    return risk


def risk_in(environments: Environments, which: IntArray, coef: FloatArray) -> FloatArray:
    """(m,) squared error of linear models (m, p, t), each in one environment."""
    A, b, c = (part[1 + which] for part in environments.stacked)
    risk: FloatArray = np.maximum(c + (coef * (A @ coef - 2.0 * b)).sum(axis=(1, 2)), 0.0)
    return risk


def combined(parts: list[Environments]) -> Environments:
    """Environments of several partitions of the same rows, side by side."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        gram=np.concatenate([part.gram for part in parts], axis=-3),
        rows=np.concatenate([part.rows for part in parts], axis=-1),
        share=np.concatenate([part.share for part in parts], axis=-1),
        partition=np.repeat(np.arange(len(parts)), [e.rows.shape[-1] for e in parts]),
        phi=np.concatenate([part.phi for part in parts], axis=-1),
    )
