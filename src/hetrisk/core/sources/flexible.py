"""One population, as flexible as the rows ask for: what y would look like if nothing differed.

    y = g(x) + s(x) u,   g the columns and a few terms, s a function of a few columns,

with u in the order that nature would have given it in one population: drawn from the residuals of
rows with a similar g, so that noise may change its shape along the mean (counts, bounded and
censored targets do). `Population.draws` are such targets; whatever a search finds in y has to be
more than what it finds in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.floors import LEAST_SCALE, OWN_SHARE, ROUNDING, TINY
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.numerics.working import WorkingFit, working_fit
from hetrisk.core.sources.design import BatchDesign
from hetrisk.core.sources.one_regression import Noise, one_regression
from hetrisk.core.sources.terms import Term, choose_terms, term_values
from hetrisk.core.thresholds import THRESHOLDS, Thresholds

MOST_SCALES: Budget[int] = 10  # columns that the size of the noise may follow
BIN_ROWS: Budget[int] = 60  # rows that a size of the noise is the mean of
MOST_BINS: Budget[int] = 12  # such means, at most
MEDIAN_SIZE: Constant[float] = 0.6745  # of normal noise of standard deviation one


@dataclass(frozen=True)
class NoiseScale:
    """Size of the noise, a function of one index that is linear in some of (x, |x|, g, |g|).

    ``chosen`` (k,) of these columns, all clipped, ``coef`` (1 + k,) of the index; ``centre`` and
    ``spread`` those of g. Between ``knots`` of the index the size is interpolated in ``sizes``.
    """

    chosen: IntArray
    coef: FloatArray
    centre: float
    spread: float
    knots: FloatArray
    sizes: FloatArray

    def __call__(self, X: FloatArray, mean: FloatArray) -> FloatArray:
        """(n,) sizes at rows X (n, d) with mean g (n,)."""
        columns = _scale_columns(X, (mean - self.centre) / self.spread)[:, self.chosen]
        index = self.coef[0] + columns @ self.coef[1:]
        return np.asarray(np.interp(index, self.knots, self.sizes), dtype=np.float64)


@dataclass(frozen=True)
class Population:
    """One population of y given x.

    Attributes
    ----------
    direction : (d,) of the linear fit. What the columns say together is one more column for the
        terms to bend: counts, saturation and most links are curves of it.
    terms : of the mean, beside the columns.
    coef : (1 + d + q,) of the constant, the columns and the terms.
    sizes : of the noise, as a function of x and g.
    mean, scale : (n,) g and s at the rows it was fitted to.
    unit : (n,) residuals over their scale.
    noise : of the residuals, the two normals by which the mean was fitted.
    again : whether it was fitted again by the size of the noise.
    """

    direction: FloatArray
    terms: tuple[Term, ...]
    coef: FloatArray
    sizes: NoiseScale
    mean: FloatArray
    scale: FloatArray
    unit: FloatArray
    noise: Noise
    again: bool

    def standardised(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n,) residuals of any rows over the size of the noise there."""
        mean = self._mean_at(X)
        unit: FloatArray = (y - mean) / self.sizes(X, mean)
        return unit

    def scale_at(self, X: FloatArray) -> FloatArray:
        """(n,) size of the noise at any rows."""
        return self.sizes(X, self._mean_at(X))

    def _mean_at(self, X: FloatArray) -> FloatArray:
        mean: FloatArray = self.coef[0] + self.columns_at(X) @ self.coef[1:]
        return mean

    def columns_at(self, X: FloatArray) -> FloatArray:
        """(n, d + q) columns and terms at any rows."""
        return np.column_stack([X, term_values(self.terms, _with_index(X, self.direction))])

    def draws(self, count: int, block: int | None, random: np.random.Generator) -> FloatArray:
        """(count, n) units in another order: targets of this population are g + s units.

        Units change places within neighbourhoods of ``block`` rows of similar mean, whose borders
        fall elsewhere every time; with all rows where it is None.
        """
        n = len(self.mean)
        # Neighbours in the mean: counts and bounded targets have noise that changes along it.
        order = np.argsort(self.mean, kind="stable")
        drawn = np.empty((count, n))
        for units in drawn:
            place = np.zeros(n, dtype=np.int64)
            if block is not None and n > block:
                # A border at the same place every time would show as an edge in every draw.
                place = (np.arange(n) + random.integers(block)) // block
            # Within its block every order is as likely as any other.
            shuffled = np.lexsort((random.random(n), place))
            units[order] = self.unit[order[shuffled]]
        return drawn


def fit_population(
    rows: Rows, groups: IntArray, thresholds: Thresholds, again: bool = False
) -> Population:
    """Fit one population to numbers: choose terms of the mean, columns of the scale, fit both.

    ``again`` fits the mean once more where noise grows, by the size of the noise. Without, the fit
    sides with the rows that have little noise and takes the skew of the others for noise, as where
    noise multiplies. But slopes that differ make noise grow as well, and fitted again the mean
    sides with the most common of them: a cause is not asked this way.
    """
    direction = _direction(rows)
    # One more column, what the columns say together: a link function is one curve of it, and would
    # be products of all columns without it.
    bent = replace(rows, X=_with_index(rows.X, direction))
    own = np.append(groups, groups.max(initial=0) + 1)
    terms = choose_terms(bent, Gaussian(), own, thresholds.alpha)
    columns = np.column_stack([rows.X, term_values(terms, bent.X)])
    coefs, means, noise = _efficient_fits(columns, rows.y[None], rows.weight)
    sizes = _scale(rows, means[0], rows.y - means[0], thresholds.score)
    again = again and len(sizes.chosen) > 0
    if again:
        scale = sizes(rows.X, means[0])
        coefs, means, noise = _efficient_fits(columns, rows.y[None], rows.weight, scale=scale)
        sizes = _fitted_scale(rows, means[0], rows.y - means[0], sizes.chosen)
    coef, mean = coefs[0], means[0]
    scale = sizes(rows.X, mean)
    unit = (rows.y - mean) / scale
    return Population(direction, terms, coef, sizes, mean, scale, unit, noise, again)


def _direction(rows: Rows) -> FloatArray:
    """(d,) coefficients of the linear fit, scaled so that what they say has variance one."""
    fit = working_fit(rows, Gaussian(), np.empty((len(rows), 0)))
    predicted = rows.X @ fit.coef[1:]
    direction: FloatArray = fit.coef[1:] / max(float(predicted.std()), ROUNDING)
    return direction


def _with_index(X: FloatArray, direction: FloatArray) -> FloatArray:
    return np.column_stack([X, X @ direction])


def drawn_units(
    rows: Rows, population: Population, count: int, block: int | None, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """(count, n) targets of one population, and the units of a population fitted to each.

    Mean and scale are fitted again, terms and columns staying as they are: what their error does
    to the units of the rows, it then does to those of the draws. Their noise is known.
    """
    targets = population.mean + population.scale * population.draws(count, block, random)
    columns = population.columns_at(rows.X)
    chosen = population.sizes.chosen
    scale = population.scale if population.again else None
    _, means, _ = _efficient_fits(columns, targets, rows.weight, population.noise, scale)
    units = np.empty_like(targets)
    for unit, target, mean in zip(units, targets, means, strict=True):
        sizes = _fitted_scale(rows, mean, target - mean, chosen)
        unit[:] = (target - mean) / sizes(rows.X, mean)
    return targets, units


def _efficient_fits(
    columns: FloatArray,
    Y: FloatArray,
    weight: FloatArray,
    like: Noise | None = None,
    scale: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, Noise]:
    """Regressions by the likelihood of skewed or heavy-tailed noise: coefficients, means, noise.

    Least squares would blur the shape of such noise by its own error, and targets drawn from
    blurred residuals look smoother than those of the population. ``like`` is the noise of one
    target that the others were drawn from. Where the size of the noise is known, (n,) ``scale``,
    the noise is that over its size, and the mean is where its narrower part lies.
    """
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    spread = np.where(spread > ROUNDING, spread, 1.0)
    # Single precision below: terms are of any size, and a cube beside a step would lose its digits.
    Z = np.column_stack([np.ones(len(columns)), (columns - centre) / spread])
    mask = np.ones((len(Y), Z.shape[1]), dtype=bool)
    unit = np.ones(len(Z)) if scale is None else float(np.median(scale)) / scale
    design = BatchDesign(Z * unit[:, None], weight)
    fitted = one_regression(design, np.asarray(Y * unit, dtype=np.float32), mask, like=like)
    coef = fitted.coef.astype(np.float64)
    means = coef @ Z.T
    # The first part of the noise has mean zero; the whole noise need not. Noise that grows has no
    # mean that a constant could take up.
    off = (Y - means) @ weight / weight.sum() if scale is None else np.zeros(len(Y))
    slopes = coef[:, 1:] / spread
    coef = np.column_stack([coef[:, 0] + off - slopes @ centre, slopes])
    return coef, means + off[:, None], fitted.noise


def _scale(rows: Rows, mean: FloatArray, residual: FloatArray, score: float) -> NoiseScale:
    """Size of the noise: |residual| on the columns that it follows, one by one.

    A column enters while its robust score exceeds ``score``: a scale that followed chance would
    blur the shape of the noise.
    """
    size, _ = _sizes(residual)
    centre, spread = float(mean.mean()), max(float(mean.std()), ROUNDING)
    candidates = _scale_columns(rows.X, (mean - centre) / spread)
    chosen: list[int] = []
    while len(chosen) < MOST_SCALES:
        fit = working_fit(
            Rows(candidates[:, chosen], size, rows.weight), Gaussian(), np.empty((len(size), 0))
        )
        best = _best_column(fit, candidates, score)
        if best is None:
            break
        chosen.append(best)
    return _fitted_scale(rows, mean, residual, np.array(chosen, dtype=np.int64))


def _fitted_scale(
    rows: Rows, mean: FloatArray, residual: FloatArray, chosen: IntArray
) -> NoiseScale:
    """Index by least squares; the size along it by means of neighbours, so that it may curve."""
    size, median = _sizes(residual)
    centre, spread = float(mean.mean()), max(float(mean.std()), ROUNDING)
    columns = _scale_columns(rows.X, (mean - centre) / spread)[:, chosen]
    fit = working_fit(Rows(columns, size, rows.weight), Gaussian(), np.empty((len(size), 0)))
    index = fit.design @ fit.coef
    bins = int(np.clip(len(size) // BIN_ROWS, 1, MOST_BINS)) if len(chosen) else 1
    # Means of neighbours along the index: a size that curves (largest in the middle) is no line in
    # any column.
    parts = np.array_split(np.argsort(index, kind="stable"), bins)
    knots = np.array([index[part].mean() for part in parts])
    sizes = np.array([np.average(size[part], weights=rows.weight[part]) for part in parts])
    return NoiseScale(
        chosen, fit.coef, centre, spread, knots, np.maximum(sizes, LEAST_SCALE * median + ROUNDING)
    )


def _sizes(residual: FloatArray) -> tuple[FloatArray, float]:
    size = np.abs(residual)
    median = float(np.median(size))
    # A few far rows must not set the size for all their neighbours; the median knows how far is
    # far.
    return np.minimum(size, THRESHOLDS.far * median / MEDIAN_SIZE + ROUNDING), median


def _scale_columns(X: FloatArray, mean: FloatArray) -> FloatArray:
    columns: FloatArray = np.column_stack([X, np.abs(X), mean, np.abs(mean)])
    return np.clip(columns, -THRESHOLDS.far, THRESHOLDS.far)


def _best_column(fit: WorkingFit, candidates: FloatArray, score: float) -> int | None:
    """The candidate with the largest robust score, where that exceeds ``score``."""
    own = fit.residualised(candidates)
    before = candidates - candidates.mean(axis=0)
    # |x| of a column with one sign is the column again.
    identifiable = (own**2).sum(axis=0) > OWN_SHARE * (before**2).sum(axis=0)
    total = own.T @ fit.residual
    error = np.sqrt(np.maximum((own**2).T @ fit.residual**2, TINY))
    z = np.where(identifiable, np.abs(total) / error, 0.0)
    best = int(np.argmax(z))
    return best if z[best] > score else None
