"""Do environments differ beyond chance? A Chow test whose noise is measured, not assumed.

In environment e the coefficients have the covariance A_e^-1 V_e A_e^-1 with V_e that of the sum
of the scores z (y - z'beta_e). Folds of rows give V_e without an assumption on the noise: how far
the coefficients move without a fold is one draw (a jackknife; the scores of a far row are next to
nothing, since its own fit follows it). Three things follow from their whitened Gram matrix Lambda:

* phi = tr(Lambda) / p, how much noisier coefficients are than under constant variance;
* the test of one regression for all environments: T = sum_e n_e rho_e / sigma_e^2 against a
  multiple of chi-squared of the same mean and variance (Satterthwaite 1946), over the noise of
  Lambda itself: an F test;
* for each column, whether its coefficient is the same everywhere (Cochran's Q). The smallest of
  these, and the test of all together, make up one p-value (Bonferroni).

None of these environments was made from y, so ordinary inference holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtrc, fdtri, ncfdtr

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.environment_fits import cochran_q
from hetrisk.core.numerics.floors import EXACT, OWN_SHARE, ROUNDING, TINY, TRACE_OF_A_ROW
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.reach.regret import Environments, Fits, fit_set


@dataclass(frozen=True)
class FTest:
    """A ratio of mean squares, about one where nothing differs, and its degrees of freedom.

    ``noise`` are those of the denominator, ``variance`` the noise of y given the columns.
    """

    ratio: float
    freedom: float
    noise: float
    variance: float

    @property
    def p_value(self) -> float:
        """Chance of such a ratio where nothing differs."""
        return float(fdtrc(self.freedom, self.noise, self.ratio))

    @property
    def excess(self) -> float:
        """What differs, in units of its noise: the noncentrality that the ratio suggests."""
        return max(self.ratio - 1.0, 0.0) * self.freedom

    def power(self, level: float, excess: float) -> float:
        """Chance of a p-value below a level, were so much to differ."""
        critical = float(fdtri(self.freedom, self.noise, 1.0 - level))
        return 1.0 - float(ncfdtr(self.freedom, self.noise, excess, critical))


NOTHING: Constant[FTest] = FTest(0.0, 1.0, 1.0, 1.0)  # where there is nothing to compare


@dataclass(frozen=True)
class Heterogeneity:
    """How far the environments of one partition differ.

    Attributes
    ----------
    environments : their moments, with the noise of their coefficients.
    fits : least squares on all columns.
    p_value : of one regression for all environments.
    column_p_values : (d,) of one coefficient for all environments, each column on its own.
    test : of all coefficients together.
    regret : mean regret beyond chance, in units of the noise.
    """

    environments: Environments
    fits: Fits
    p_value: float
    column_p_values: FloatArray
    test: FTest
    regret: float


def environments_of(cells: CellMoments, n_targets: int) -> Environments:
    """Moments of the environments of one partition; those without rows are left out."""
    held = cells.held
    weight, square = cells.weight[held].sum(axis=1), cells.square[held].sum(axis=1)
    return completed(weight, square, cells.gram[held].sum(axis=1), n_targets)


def completed(
    weight: FloatArray, square: FloatArray, gram: FloatArray, n_targets: int, phi: float = 1.0
) -> Environments:
    """Environments from the sums over their rows: weight and its square (K,), z z' (K, q, q).

    Further axes before these index resamples.
    """
    total = weight.sum(axis=-1, keepdims=True)
    # In a resample an environment may lose all its folds; its moments are then not 0/0.
    held = weight > ROUNDING * total
    rows = np.divide(weight**2, square, out=np.ones_like(weight), where=held)
    pooled = gram.sum(axis=-3) / total[..., None]
    # An environment without rows has what it is completed with, and nothing else.
    # Completed with a trace of all rows: a direction in which an environment never varies would
    # make its own fit arbitrary, and its regret with it.
    added = TRACE_OF_A_ROW / rows
    own = np.divide(1.0, weight * (1.0 + added), out=np.zeros_like(weight), where=held)
    other = np.where(held, added / (1.0 + added), 1.0)[..., None, None]
    return Environments(
        gram=own[..., None, None] * gram + other * pooled[..., None, :, :],
        rows=rows,
        share=np.where(held, weight / total, 0.0),
        partition=np.zeros(weight.shape[-1], dtype=np.int64),
        pooled=pooled,
        n_targets=n_targets,
        phi=np.where(held, phi, 0.0),
    )


def heterogeneity(cells: CellMoments, n_targets: int) -> Heterogeneity:
    """Test whether the environments of a partition share one regression."""
    environments = environments_of(cells, n_targets)
    everything = np.ones(environments.n_columns, dtype=bool)
    fits = fit_set(environments, everything)
    p = 1 + environments.n_columns
    K, draws = len(environments.rows), _whitened_scores(cells, environments, fits)
    n_folds = cells.weight.shape[1]
    if K < 2 or n_folds < 2:
        return Heterogeneity(environments, fits, 1.0, np.ones(p - 1), NOTHING, 0.0)
    # Traces of Lambda and of its square from the Gram matrix of the draws: K F numbers a side,
    # where Lambda itself has p t.
    products = draws @ draws.T
    trace = max(float(np.trace(products)) / K, float(p))
    # So few draws add to the squared spectrum by themselves; equal eigenvalues give the least.
    own_share = trace**2 / (K * (n_folds - 1))
    square = max(float((products**2).sum()) / K**2 - own_share, trace**2 / (p * n_targets))
    environments = replace(environments, phi=np.full(K, trace / p))
    fits = fit_set(environments, everything)
    variance = _variance(environments, fits.own, p)
    # Each environment's regret in units of its own noise: what the Chow test sums.
    total = float((environments.rows * fits.regret / variance).sum())
    spectrum = trace**2 / square  # how many eigenvalues Lambda has, were they equal
    # Satterthwaite: p equal eigenvalues give (K - 1) p degrees of freedom, fewer large ones less.
    freedom = (K - 1) * spectrum
    noise = K * (n_folds - 1) * spectrum
    of_all = float((environments.share * variance).sum())
    test = FTest(total / ((K - 1) * trace), freedom, noise, of_all)
    columns = _column_p_values(environments, fits, draws.reshape(K, n_folds, p, -1))
    # All coefficients together see many small changes best, one by one a single large one.
    single = float(columns.min(initial=1.0)) * len(columns)
    p_value = min(2.0 * min(test.p_value, single), 1.0)
    regret = (total - (K - 1) * trace) / float(environments.rows.sum())
    return Heterogeneity(environments, fits, p_value, columns, test, regret)


def one_noise(cells: CellMoments, n_targets: int) -> FTest:
    """Test one size of the noise of y given x in all environments, any fit in each.

    With s_e^2 the variance of the noise in environment e and n_e its rows, log s_e^2 has the
    variance k_e / n_e, k_e = 2 for normal noise. Folds say what it is: their variances scatter by
    k_e over their own rows. Few folds may miss the far rows of one environment, so k_e is never
    taken to be below the mean over all.
    """
    held = cells.held
    weight, square, gram = cells.weight[held], cells.square[held], cells.gram[held]
    # A fold that holds next to no rows of an environment says nothing about it.
    holds = weight > ROUNDING * weight.sum(axis=1, keepdims=True)
    draws = holds.sum(axis=1) - 1
    environments = environments_of(cells, n_targets)
    K, p, rows = len(weight), 1 + environments.n_columns, environments.rows
    if K < 2 or (draws < 1).any() or (rows <= p).any():
        return NOTHING
    coef = fit_set(environments, np.ones(p - 1, dtype=bool)).coef[1:]
    line = np.concatenate([-coef, np.broadcast_to(np.eye(n_targets), (K, n_targets, n_targets))], 1)
    # (K, F) sums of squared residuals about the environment's own fit, over all targets.
    squares = np.maximum(np.einsum("kit,kfij,kjt->kf", line, gram, line), 0.0)
    own = np.maximum(squares.sum(axis=1) / weight.sum(axis=1), EXACT)
    if (own <= EXACT).all():  # the columns determine the target
        return NOTHING
    off = np.divide(squares, weight * own[:, None], out=np.ones_like(squares), where=holds) - 1.0
    own_rows = np.divide(weight**2, square, out=np.zeros_like(weight), where=holds)
    scatter = (own_rows * off**2).sum(axis=1) / draws
    precision = (rows - p) / np.maximum(scatter, scatter.mean())
    variance = _variance(environments, own, p)
    log = np.log(variance)
    about = log - precision @ log / precision.sum()
    # The scatter is known from so many draws, not exactly: F in place of chi-squared.
    of_all = float((environments.share * variance).sum())
    return FTest(float(precision @ about**2) / (K - 1), K - 1, float(draws.sum()), of_all)


def _variance(environments: Environments, own: FloatArray, p: int) -> FloatArray:
    """(K,) variance of the noise, for the coefficients that were fitted."""
    rows = environments.rows
    variance: FloatArray = np.maximum(own, TINY) * rows / np.maximum(rows - p, 1.0)
    return variance


def _whitened_scores(cells: CellMoments, environments: Environments, fits: Fits) -> FloatArray:
    """(K F, p t) what fits move by without each fold, as scores in units of their noise.

    Were the noise constant, the sum of their outer products over the folds of one environment
    would have the mean of an identity matrix.
    """
    held = cells.held
    gram, weight = cells.gram[held], cells.weight[held].sum(axis=1)
    p, n_folds = 1 + environments.n_columns, gram.shape[1]
    score = gram[:, :, :p, p:] - np.einsum("kfij,kjt->kfit", gram[:, :, :p, :p], fits.coef[1:])
    factor = np.linalg.cholesky(environments.stacked[0][1:])
    # In units in which A_e is the identity: (K, F, p, p) of z z', and (K, F, p, t) of scores.
    inverse = np.linalg.inv(factor)[:, None]
    share = weight[:, None, None, None]
    own = inverse @ (gram[:, :, :p, :p] / share) @ np.swapaxes(inverse, -1, -2)
    # A direction that one fold holds alone (a column of zeros with a single one) says nothing of
    # its noise: without that fold hardly more than rounding is left.
    left = (1.0 + OWN_SHARE) * np.eye(p) - own
    white = np.linalg.solve(left, inverse @ (score / share))
    size = np.sqrt(_variance(environments, fits.own, p) / environments.rows)
    # Were the folds alike, coefficients without one of them would be off by F / (F - 1) times as
    # much as its own scores say.
    size *= np.sqrt(n_folds / max(n_folds - 1.0, 1.0))
    white /= size[:, None, None, None]
    draws: FloatArray = white.reshape(len(weight) * n_folds, -1)
    return draws


def _column_p_values(environments: Environments, fits: Fits, draws: FloatArray) -> FloatArray:
    """(d,) Cochran's Q over the environments: is the coefficient of a column the same in all?

    Each coefficient has its own phi, from the whitened scores of the folds (K, F, p, t): noise
    that grows with a column is noise about that column's coefficient most of all.
    """
    A = environments.stacked[0][1:]
    p, K = A.shape[-1], len(environments.rows)
    inverse = np.linalg.inv(A)
    diagonal = np.einsum("kii->ki", inverse)
    # A^-1 g = L^-T u for the whitened score u = L^-1 g, A = L L'.
    back = inverse @ np.linalg.cholesky(A)
    moved = np.einsum("kij,kfjt->kfit", back, draws)
    # The mean over environments: K (F - 1) draws of a variance, where one environment has F - 1.
    phi = ((moved**2).sum(axis=(1, 3)) / diagonal).mean(axis=0)
    variance = _variance(environments, fits.own, p) / environments.rows
    scale = np.maximum(phi, 1.0) * diagonal / environments.n_targets
    of_coef = np.maximum(variance[:, None] * scale, TINY)[..., None]
    q = cochran_q(fits.coef[1:], of_coef).sum(axis=-1)
    # Indicators of t > 1 classes sum to one: of their coefficients t - 1 are free.
    free = max(environments.n_targets - 1, 1)
    freedom = (K - 1) * free
    # The noise is known from K (F - 1) draws, not exactly: F in place of chi-squared.
    p_values: FloatArray = fdtrc(freedom, K * (draws.shape[1] - 1), q / freedom)[1:]
    return p_values
