"""One population, as flexible as the rows ask for: a column as it would be if nothing differed.

    v = g(z) + s(z) u,   g linear in z and in curves that enter one by one, s likewise,

u in another order. Whatever a search finds in v has to be more than what it finds in such draws.
Curves enter only where their robust score is plain (Friedman 1991 has the same plan), so what is
linear stays linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import LEAST_SCALE, OWN_SHARE, ROUNDING, TINY
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.core.stable.two_slopes import FAR, Design, one_regression

PLAIN: Budget[float] = 5.0  # robust score at which a curve, or a size of the noise, enters
KNOTS: Budget[FloatArray] = np.linspace(0.1, 0.9, 9)  # quantiles at which the mean may bend
MOST_CURVES: Budget[int] = 12
BINS: Budget[int] = 12  # sizes of the noise along its index
BIN_ROWS: Budget[int] = 60  # that such a size is the mean of
MEDIAN_SIZE: Constant[float] = 0.6745  # of normal noise of standard deviation one


@dataclass(frozen=True)
class Population:
    """A fit of one population to a column.

    Attributes
    ----------
    columns : (n, p) what the mean is linear in, without the constant.
    sizes : from means and residuals (n,) to the size of the noise (n,).
    mean, scale, unit : (n,) g, s and u at the rows.
    weight : (n,) of the rows.
    """

    columns: FloatArray
    sizes: Callable[[FloatArray, FloatArray], FloatArray]
    mean: FloatArray
    scale: FloatArray
    unit: FloatArray
    weight: FloatArray

    def draws(self, count: int, seed: int) -> FloatArray:
        """(count, n) units of targets drawn from this population, each fitted as the rows were.

        What the error of the fit does to the units of the rows, it then does to those of the
        draws. Rows are in an order of their own (`hetrisk.core.environments.content`), so a fixed
        seed makes the answer a function of the table.
        """
        random = np.random.default_rng(seed)
        drawn = np.stack([self.unit[random.permutation(len(self.unit))] for _ in range(count)])
        targets = self.mean + self.scale * drawn
        means = _means(self.columns, targets, self.weight)
        units = [(y - m) / self.sizes(m, y - m) for y, m in zip(targets, means, strict=True)]
        return np.stack(units)


def population(Z: FloatArray, v: FloatArray, weight: FloatArray) -> Population:
    """Fit one population of v given columns Z (n, p).

    Curves are hinges, squares and cubes of these columns and of what Z together says of v.
    """
    base = np.column_stack([np.ones(len(Z)), Z])
    index = Z @ np.linalg.lstsq(base, v, rcond=None)[0][1:]
    index = index / max(float(index.std()), ROUNDING)
    bent = _chosen(base, v, weight, np.column_stack([_curves(x) for x in (*Z.T, index)]))
    columns = np.column_stack([Z, bent])
    mean = _means(columns, v[None], weight)[0]
    follows = _followed(Z, mean, v - mean, weight)

    def sizes(mean: FloatArray, residual: FloatArray) -> FloatArray:
        return _sizes(_noise_columns(Z, mean)[:, follows], residual)

    scale = sizes(mean, v - mean)
    return Population(columns, sizes, mean, scale, (v - mean) / scale, weight)


def plain_scores(
    design: FloatArray, v: FloatArray, weight: FloatArray, candidates: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Robust score of each candidate (n, q) beside a design, and what it would explain of v."""
    gram = design.T @ (weight[:, None] * design)
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    residual = v - design @ (inverse @ (design.T @ (weight * v)))
    own = candidates - design @ (inverse @ (design.T @ (weight[:, None] * candidates)))
    size, before = weight @ own**2, weight @ (candidates - candidates.mean(axis=0)) ** 2
    # What the design all but holds already has a score of noise over noise.
    distinct = size > OWN_SHARE * before
    size = np.where(distinct, size, 1.0)
    total = (weight * residual) @ own
    left = residual[:, None] - own * (total / size)
    error = np.sqrt(np.maximum(weight @ (own * left) ** 2, TINY))
    return np.where(distinct, np.abs(total) / error, 0.0), np.where(distinct, total**2 / size, 0.0)


def _chosen(
    base: FloatArray, v: FloatArray, weight: FloatArray, candidates: FloatArray
) -> FloatArray:
    """(n, q) of the candidates, those that explain most first, while one is plain."""
    chosen = np.empty((len(v), 0))
    while chosen.shape[1] < MOST_CURVES:
        score, gain = plain_scores(np.hstack([base, chosen]), v, weight, candidates)
        best = int(np.argmax(np.where(score > PLAIN, gain, 0.0)))
        if score[best] <= PLAIN:
            break
        chosen = np.column_stack([chosen, candidates[:, best]])
    return chosen


def _curves(x: FloatArray) -> FloatArray:
    far = np.clip(x, -FAR, FAR)  # one far row must not make a curve
    hinges = np.abs(x[:, None] - np.unique(np.quantile(x, KNOTS)))
    return np.column_stack([far**2, far**3, hinges])


def _means(columns: FloatArray, Y: FloatArray, weight: FloatArray) -> FloatArray:
    """(B, n) regressions by the likelihood of skewed or heavy-tailed noise.

    Least squares would blur the shape of such noise by its own error, and side with rarer slopes.
    """
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    Z = np.column_stack([np.ones(len(columns)), centred / np.where(spread > ROUNDING, spread, 1.0)])
    means = one_regression(Design(Z, weight), Y).coef[0] @ Z.T
    # The first part of the noise has mean zero; the whole noise need not.
    off = (Y - means) @ weight / weight.sum()
    return np.asarray(means + off[:, None], dtype=np.float64)


def _noise_columns(Z: FloatArray, mean: FloatArray) -> FloatArray:
    centred = (mean - mean.mean()) / max(float(mean.std()), ROUNDING)
    columns: FloatArray = np.column_stack([Z, np.abs(Z), centred, np.abs(centred)])
    return np.clip(columns, -FAR, FAR)


def _followed(
    Z: FloatArray, mean: FloatArray, residual: FloatArray, weight: FloatArray
) -> IntArray:
    """Which of (z, |z|, g, |g|) the size of the noise plainly follows, one by one."""
    candidates, size = _noise_columns(Z, mean), _size(residual)
    chosen: list[int] = []
    while len(chosen) < MOST_CURVES:
        design = np.column_stack([np.ones(len(size)), candidates[:, chosen]])
        score, _ = plain_scores(design, size, weight, candidates)
        if score.max(initial=0.0) <= PLAIN:
            break
        chosen.append(int(np.argmax(score)))
    return np.array(chosen, dtype=np.int64)


def _sizes(columns: FloatArray, residual: FloatArray) -> FloatArray:
    """(n,) size of the noise along an index of the columns, by means of neighbours."""
    size = _size(residual)
    least = LEAST_SCALE * float(np.median(size)) + ROUNDING
    if not columns.shape[1]:
        return np.full(len(size), max(float(size.mean()), least))
    design = np.column_stack([np.ones(len(size)), columns])
    index = design @ np.linalg.lstsq(design, size, rcond=None)[0]
    bins = int(np.clip(len(size) // BIN_ROWS, 1, BINS))
    parts = np.array_split(np.argsort(index, kind="stable"), bins)
    knots = np.array([index[part].mean() for part in parts])
    sizes = np.array([size[part].mean() for part in parts])
    return np.asarray(np.interp(index, knots, np.maximum(sizes, least)), dtype=np.float64)


def _size(residual: FloatArray) -> FloatArray:
    size = np.abs(residual)
    # A few far rows must not set the size for all their neighbours.
    return np.minimum(size, FAR * float(np.median(size)) / MEDIAN_SIZE + ROUNDING)
