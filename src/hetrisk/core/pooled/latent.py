"""Slopes that differ between environments which leave no trace in the features.

Probes see environments through the features. Where rows differ only in how y follows x, a
mixture of regressions of y on x is all there is to look with, and it sees ghosts: heavy tails,
noise that grows, any curve left in the mean. So its gain in likelihood over one regression is
set against the same gain on targets drawn from one homogeneous population: the flexible mean,
a scale that follows the features, and the residuals of the data in another order (for labels:
draws from the flexible probabilities). Only a gain far beyond that is believed, and then it is
a warning, not a selection: the split was made by the target, so it cannot say whom to blame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters, fit_mixture
from hetrisk.core.numerics.families import Family, Gaussian
from hetrisk.core.numerics.rows import FloatArray, Held, IntArray, Rows
from hetrisk.core.numerics.working import WorkingFit, working_fit
from hetrisk.core.pooled.terms import Term, term_values

LATENT_ROWS = 2000
NULL_DRAWS = 8
LATENT_FEATURES = 20
GAIN = 0.1  # gain in mean log likelihood beyond the null below which a mixture means nothing
SCORE = 10.0  # and how many standard deviations of the null it must be beyond it


@dataclass(frozen=True)
class LatentSlopes:
    """A mixture of two regressions against its null.

    Attributes
    ----------
    gain : mean log likelihood gained over one regression, less what the null gains.
    score : the same in standard deviations of the null; zero where the null was not needed.
    gap : (d,) absolute difference between the two slopes of each feature the mixture looked at.
    """

    gain: float
    score: float
    gap: FloatArray

    @property
    def believed(self) -> bool:
        """Whether environments differ in slopes beyond what one population would show."""
        return self.gain > GAIN and self.score > SCORE


def latent_slopes(
    rows: Rows, family: Family, terms: tuple[Term, ...], seed: int = 0
) -> LatentSlopes:
    """Fit two regressions to the rows and to targets of one homogeneous population."""
    n = min(len(rows), LATENT_ROWS)
    rows = Rows(rows.X[:n], rows.y[:n], rows.weight[:n])
    fit = working_fit(rows, family, term_values(terms, rows.X))
    columns, features = _columns(fit, rows.X.shape[1])
    real, mixture = _gain(columns, rows, family, seed)
    gap = np.zeros(rows.X.shape[1])
    gap[features] = np.abs(mixture.coef[0] - mixture.coef[1])[: len(features)]
    if real < GAIN:
        return LatentSlopes(real, 0.0, gap)
    random = np.random.default_rng(seed)
    draws = [_null_target(fit, rows, family, random) for _ in range(NULL_DRAWS)]
    null = [
        _gain(columns, Rows(rows.X, y, rows.weight), family, seed + i + 1)[0]
        for i, y in enumerate(draws)
    ]
    spread = max(float(np.std(null, ddof=1)), 1e-3)
    beyond = real - float(np.mean(null))
    return LatentSlopes(beyond, beyond / spread, gap)


def _columns(fit: WorkingFit, d: int) -> tuple[FloatArray, IntArray]:
    """Columns for the mixture: the features that matter most, the rest as one prediction.

    With as many slopes as rows, two regressions fit anything.
    """
    strength = np.abs(fit.z[1 : d + 1])
    features = np.sort(np.argsort(-strength, kind="stable")[:LATENT_FEATURES])
    rest = np.delete(np.arange(fit.design.shape[1]), np.append(0, 1 + features))
    columns = fit.design[:, 1 + features]
    if len(rest) == 0:
        return columns, features
    summary = fit.design[:, rest] @ fit.coef[rest]
    summary = (summary - summary.mean()) / max(float(summary.std()), 1e-12)
    return np.column_stack([columns, summary]), features


def _gain(
    columns: FloatArray, rows: Rows, family: Family, seed: int
) -> tuple[float, MixtureParameters]:
    """Mean log likelihood of two regressions less that of one."""
    held = Held(Rows(columns, rows.y, rows.weight))
    two = fit_mixture(held, 2, family, n_init=12, seed=seed, tol=1e-5, max_iter=60)
    one = fit_mixture(held, 1, family, n_init=1, seed=seed, tol=1e-5, max_iter=60)
    return float(two.path[-1] - one.path[-1]), two.value


def _null_target(
    fit: WorkingFit, rows: Rows, family: Family, random: np.random.Generator
) -> FloatArray:
    """Draw targets from the flexible mean with exchangeable noise, or from its probabilities."""
    eta = fit.design @ fit.coef
    if not family.closed_form:
        return (random.random(len(eta)) < family.mean(eta)).astype(np.float64)
    residual = rows.y - eta
    size = np.abs(residual)
    shape = np.column_stack([np.abs(rows.X), rows.X, eta, np.abs(eta)])
    scale = working_fit(Rows(shape, size, rows.weight), Gaussian(), np.empty((len(eta), 0)))
    spread = np.maximum(scale.design @ scale.coef, 0.2 * np.median(size) + 1e-12)
    drawn: FloatArray = eta + spread * random.permutation(residual / spread)
    return drawn
