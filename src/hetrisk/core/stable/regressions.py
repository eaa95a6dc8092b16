"""Least squares on a set of columns, pooled and in every environment, and what it loses there.

All of it follows from the sums G_e of z z' over the rows of environment e, z = (1, x, y). A set is
reached by leaving groups of columns out of a larger one, which costs a small solve for each group:
with A the inverse of x'x on the set and g the columns that leave,

    coef' = coef - A_.g A_gg^-1 coef_g,   rss' = rss + coef_g' A_gg^-1 coef_g,
    A' = A - A_.g A_gg^-1 A_g. .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import HALF_A_ROW, NEARLY_SINGULAR, TINY
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

# Of the environments, that the worst are taken of: an extreme of many is a matter of their number.
WORST_SHARE: Constant[float] = 0.1


def mean_and_worst(losses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the losses (..., K) over environments, and that of the worst tenth of these.

    A tenth of K environments is a fraction of one where K is below ten, and then it is the worst;
    between whole numbers the last one counts in part, so that environments split in two leave the
    answer much as it was.
    """
    K = losses.shape[-1]
    share = np.clip(max(WORST_SHARE * K, 1.0) - np.arange(K), 0.0, 1.0)
    worst = -np.sort(-losses, axis=-1) @ share / share.sum()
    return losses.mean(axis=-1), worst


def risk_at(losses: FloatArray, reach: float) -> FloatArray:
    """X_t = mean_e L_e + t (worst L_e - mean_e L_e) of losses (..., K), t the reach."""
    mean, worst = mean_and_worst(losses)
    risk: FloatArray = mean + reach * (worst - mean)
    return risk


@dataclass(frozen=True)
class Losses:
    """Mean squared errors of one or more sets in K environments; every array is (..., K).

    Attributes
    ----------
    pooled : of the fit to all rows.
    own : of the environment's own fit: the noise.
    """

    pooled: FloatArray
    own: FloatArray

    @property
    def regret(self) -> FloatArray:
        """(...) what the pooled fit loses where it loses most (`mean_and_worst`)."""
        worst: FloatArray = mean_and_worst(self.pooled - self.own)[1]
        return np.maximum(worst, 0.0)

    @property
    def cost(self) -> FloatArray:
        """(...) error of the pooled fit in the mean environment."""
        mean: FloatArray = self.pooled.mean(axis=-1)
        return mean


@dataclass(frozen=True)
class Regressions:
    """Least squares of t targets on a set of columns, in K environments and (last) all rows.

    Attributes
    ----------
    gram : (K, q, q) sums of z z', z = (1, x, y).
    inverse : (K + 1, 1 + d, 1 + d) of the sums of (1, x) on the set; zero elsewhere.
    coef : (K + 1, 1 + d, t), the intercept first; zero off the set.
    rss : (K + 1,) residual sums of squares.
    support : (d,) the set.
    """

    gram: FloatArray
    inverse: FloatArray
    coef: FloatArray
    rss: FloatArray
    support: BoolArray

    @classmethod
    def on(cls, gram: FloatArray, support: BoolArray) -> Regressions:
        """Solve the normal equations on a set."""
        K, p = len(gram), len(support) + 1
        pooled = gram.sum(axis=0)
        row = pooled / pooled[0, 0]
        # Half a row, spread over all rows: in a direction that an environment never varies in, its
        # fit is then the pooled one.
        sums = np.concatenate([gram + HALF_A_ROW * row, pooled[None]])
        slopes = np.arange(1, p)
        sums[:, slopes, slopes] += NEARLY_SINGULAR * pooled[0, 0]
        at = np.append(0, 1 + np.flatnonzero(support))
        every = np.ix_(np.arange(K + 1), at, at)
        inverse = np.zeros((K + 1, p, p))
        inverse[every] = np.linalg.inv(sums[every])
        cross, square = sums[:, :p, p:], np.einsum("kii->k", sums[:, p:, p:])
        coef = inverse @ cross
        rss = np.maximum(square - (coef * cross).sum(axis=(1, 2)), 0.0)
        return cls(gram, inverse, coef, rss, support)

    def without(self, columns: IntArray) -> Regressions:
        """The same, some columns of the set left out."""
        at = 1 + columns
        step, gain = self._leaving(at)
        support = self.support.copy()
        support[columns] = False
        inverse = self.inverse - step @ self.inverse[:, at, :]
        coef = self.coef - step @ self.coef[:, at]
        return Regressions(self.gram, inverse, coef, self.rss + gain, support)

    def _leaving(self, at: IntArray) -> tuple[FloatArray, FloatArray]:
        """A_.g A_gg^-1, (K + 1, 1 + d, g), and what the residual sums of squares rise by."""
        own = np.linalg.inv(self.inverse[:, at][:, :, at])
        left = self.coef[:, at]
        return self.inverse[:, :, at] @ own, (left * (own @ left)).sum(axis=(1, 2))

    def losses(self) -> Losses:
        """Losses in each environment, less what fitting to these very rows hides."""
        gram, (p, t) = self.gram, self.coef.shape[1:]
        leverage = (self.inverse[-1] * gram[:, :p, :p]).sum(axis=(1, 2))
        residual = np.concatenate([-self.coef[-1], np.eye(t)])
        square = np.einsum("qt,kqp,pt->k", residual, gram, residual)
        size = int(self.support.sum()) + 1
        return _shares(gram[:, 0, 0], square, leverage, self.rss[:-1], size)

    def loss_if_slopes(self, full: Regressions, reach: float) -> float:
        """Worst loss of this fit beyond noise, where the slopes of y on all columns go on moving.

        With b_e those of environment e and b their mean, y = x'(b + t (b_e - b)) + noise there, t
        the reach.
        """
        own, p = full.coef[:-1], self.coef.shape[1]
        middle = own.mean(axis=0)
        gap = middle + reach * (own - middle) - self.coef[-1]
        square = np.einsum("kpt,kpq,kqt->k", gap, self.gram[:, :p, :p], gap)
        return float(mean_and_worst(square / self.gram[:, 0, 0])[1])

    def losses_without(self, groups: list[IntArray]) -> Losses:
        """(m, K) losses of m sets, each with one more group of columns left out."""
        losses = self._losses_without_one(np.array([columns[0] for columns in groups]))
        for k in (k for k, columns in enumerate(groups) if len(columns) > 1):
            found = self.without(groups[k]).losses()
            losses.pooled[k], losses.own[k] = found.pooled, found.own
        return losses

    def _losses_without_one(self, columns: IntArray) -> Losses:
        """The same for m single columns, side by side."""
        at, p = 1 + columns, self.coef.shape[1]
        pivot = self.inverse[:, at, at]
        rss = self.rss[:-1, None] + (self.coef[:-1, at] ** 2).sum(axis=2) / pivot[:-1]
        row = self.inverse[-1][at]
        coef = self.coef[-1] - (row / pivot[-1][:, None])[..., None] * self.coef[-1, at][:, None]
        gram = self.gram[:, :p, :p]
        leverage = (self.inverse[-1] * gram).sum(axis=(1, 2))[:, None] - ((row @ gram) * row).sum(
            axis=2
        ) / pivot[-1]
        t = coef.shape[2]
        end = np.broadcast_to(np.eye(t), (len(at), t, t))
        residual = np.concatenate([-coef, end], axis=1)
        square = sum(
            (((residual[..., j] @ self.gram) * residual[..., j]).sum(axis=2) for j in range(t)),
            start=np.zeros((len(self.gram), len(at))),
        )
        rows = self.gram[:, 0, 0][:, None]
        parts = _shares(rows, square, leverage, rss, int(self.support.sum()))
        return Losses(parts.pooled.T, parts.own.T)


def _shares(
    rows: FloatArray, square: FloatArray, leverage: FloatArray, rss: FloatArray, size: int
) -> Losses:
    # Squared residuals of rows that a fit has seen fall short by one row for each coefficient, of
    # which an environment has its share (the trace of its part of the hat matrix).
    least = np.maximum(HALF_A_ROW * rows, TINY)
    pooled = np.maximum(square, 0.0) / np.maximum(rows - leverage, least)
    return Losses(pooled, rss / np.maximum(rows - size, least))


def standard_sums(moments: Moments, n_targets: int = 1) -> FloatArray:
    """(K, q, q) sums of z z' for z = (1, x, y), every column of mean zero and variance one.

    The t targets share one scale, so that the sum of their squared errors keeps its meaning.
    """
    pooled = moments.pooled()
    variance = np.diagonal(pooled.covariance).copy()
    variance[-n_targets:] = variance[-n_targets:].sum()
    spread = np.sqrt(np.maximum(variance, 0.0))
    scale = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
    mean = np.concatenate(
        [np.ones((len(moments.weight), 1)), (moments.mean - pooled.mean) * scale], axis=1
    )
    sums: FloatArray = moments.weight[:, None, None] * mean[:, :, None] * mean[:, None, :]
    sums[:, 1:, 1:] += moments.scatter * scale[:, None] * scale
    return sums
