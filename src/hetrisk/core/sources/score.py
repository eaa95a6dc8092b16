"""Is y given x one population? A score that knows what one population would show.

The gain in mean log likelihood from one regression to two slopes (`hetrisk.core.sources.slopes`)
is never zero: two slopes fit anything a little better, and a curve or a skewed noise a lot better.
So the same gain is measured on targets drawn from one flexible population fitted to the rows
(`hetrisk.core.sources.flexible`). The score is the square root of the gain (which steadies its
spread, as of any likelihood ratio) less its mean over those targets, over their standard
deviation; with m draws it has, in one population, about a t distribution with m - 1 degrees of
freedom. No population is exactly what a flexible model draws, and with rows enough any lack of
it would show: the standard deviation is therefore never taken to be below a stated misfit.

Nothing here knows what y is: a column may be asked about the same way, given others.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.numerics.working import working_fit
from hetrisk.core.sources.design import BatchDesign
from hetrisk.core.sources.flexible import Population, drawn_units, fit_population
from hetrisk.core.sources.one_regression import Noise, OneRegression
from hetrisk.core.sources.slopes import TwoSlopes, gains
from hetrisk.core.thresholds import THRESHOLDS, Thresholds

SCORED_ROWS: Budget[int] = 4000  # of a sample, that a column is scored on
MIXED: Budget[int] = 24  # columns that may have two slopes; in wider tables those that matter most
DRAWS: Budget[int] = 20  # targets of one population: more would sharpen a score by a few percent
FIRST: Budget[int] = 7  # draws after which a score that is nothing special is left at that
SPECIAL: Budget[float] = 1.5  # score above which all draws are made
SEED: Constant[int] = 20210  # of the draws: the same table gives the same score


@dataclass(frozen=True)
class Columns:
    """The columns of a mixture of regressions: some are free, the rest summed up in predictions.

    Columns are those of the table (x, y), y last: -1 is y.

    What is regressed on them are units: residuals of the population over the size of the noise.
    So the columns are divided by that size as well, in units of its median.

    Attributes
    ----------
    support : (m,) columns of the table that are looked at.
    free : (k,) those with two slopes.
    population : of the target given the support.
    summaries : (m + q, r) weights that turn the columns of the support and the terms into r
        predictions: what the terms say, and the columns that are not free.
    centre, spread : (r,) of the predictions; unit : median size of the noise.
    """

    support: IntArray
    free: IntArray
    population: Population
    summaries: FloatArray
    centre: FloatArray
    spread: FloatArray
    unit: float

    def without(self, sets: BoolArray) -> BoolArray:
        """(s, 1 + k + r) what is left of these columns without each set (s, d) of the table's.

        What the terms say goes with any column that stands in one of them: it is one prediction.
        Curves of what all columns say together are not looked at: any column stands in those.
        """
        m = len(self.support)
        standing = {j for term in self.population.terms for j in term.columns if j < m}
        bent = sets[:, self.support[sorted(standing)]].any(axis=1, keepdims=True)
        terms = self.summaries[m:].any(axis=0, keepdims=True)
        constant = np.ones((len(sets), 1), dtype=bool)
        return np.hstack([constant, ~sets[:, self.free], ~(bent & terms)])

    def __call__(self, table: FloatArray) -> FloatArray:
        """(n, 1 + k + r) constant, free columns, predictions, over the size of the noise."""
        seen = table[:, self.support]
        parts = [np.ones((len(table), 1)), table[:, self.free]]
        if self.summaries.shape[1]:
            every = self.population.columns_at(seen)
            parts.append((every @ self.summaries - self.centre) / self.spread)
        columns: FloatArray = (
            np.column_stack(parts) * (self.unit / self.population.scale_at(seen))[:, None]
        )
        return columns


@dataclass(frozen=True)
class Regressions:
    """K regressions about which the noise is the same mixture of two normals.

    Attributes
    ----------
    coef : (K, p).
    weights : (K, 2) shares of the regressions (first) and parts of the noise (second).
    noise : (2, 2) means, then variances, of the parts of the noise.
    """

    coef: FloatArray
    weights: FloatArray
    noise: FloatArray

    def log_joint(self, Z: FloatArray, target: FloatArray) -> FloatArray:
        """(n, K) log of share times density of each regression."""
        # (n, K, 2): every row about every regression, less the mean of either part of the noise.
        off = (target[:, None] - Z @ self.coef.T)[:, :, None] - self.noise[0]
        density = off**2 / self.noise[1] + np.log(2 * np.pi * self.noise[1])
        log = np.log(self.weights) - 0.5 * density
        joint: FloatArray = np.logaddexp(log[..., 0], log[..., 1])
        return joint


class ComparedPartition(Partition):
    """Environments that describe the rows together, set against one population that does."""

    @abstractmethod
    def log_ratio(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n,) log density under the environments together less that under one population."""


@dataclass(frozen=True)
class SlopePartition(ComparedPartition):
    """Rows told apart by which of two regressions they follow.

    Attributes
    ----------
    columns : of the regressions.
    target : column of the table (x, y) that is regressed, -1 for y.
    two, one : the two regressions, and the one they are set against.
    """

    columns: Columns
    target: int
    two: Regressions
    one: Regressions

    @property
    def n_environments(self) -> int:
        """Two."""
        return 2

    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, 2) probabilities of either regression."""
        log = self.two.log_joint(*self._regressed(X, y))
        share: FloatArray = np.exp(log - np.logaddexp(log[:, 0], log[:, 1])[:, None])
        return share

    def log_ratio(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n,) log density under both regressions together less that under one."""
        Z, units = self._regressed(X, y)
        two = self.two.log_joint(Z, units)
        ratio: FloatArray = np.logaddexp(two[:, 0], two[:, 1]) - self.one.log_joint(Z, units)[:, 0]
        return ratio

    def _regressed(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        table = np.column_stack([X, y])
        given = table[:, self.columns.support]
        units = self.columns.population.standardised(given, table[:, self.target])
        return self.columns(table), units


@dataclass(frozen=True)
class Score:
    """Two slopes against one population.

    Attributes
    ----------
    value : the score; p_value : of one population.
    gain : in mean log likelihood; null : (m,) the same on targets of one population.
    columns, target, design : of the regressions.
    found, single : the two slopes, and the one regression, of the rows (one target).
    draws, second : (m, n) targets of one population, and their shares of the second slope.
    """

    value: float
    p_value: float
    gain: float
    null: FloatArray
    columns: Columns
    target: int
    design: BatchDesign
    found: TwoSlopes
    single: OneRegression
    draws: FloatArray
    second: FloatArray

    def partition(self) -> SlopePartition:
        """The two slopes as a partition of any rows."""
        two = Regressions(
            self.found.coef[:, 0].astype(np.float64),
            self.found.weights[:, :, 0].astype(np.float64),
            noise_parts(self.found.noise),
        )
        share = float(self.single.noise.share[0])
        one = Regressions(
            self.single.coef[:1].astype(np.float64),
            np.array([[1.0 - share, share]]),
            noise_parts(self.single.noise),
        )
        return SlopePartition(self.columns, self.target, two, one)


def noise_parts(noise: Noise) -> FloatArray:
    return np.array([[0.0, noise.mean[0]], noise.variance[:, 0]], dtype=np.float64)


def gain_pass(rows: Rows, partitions: tuple[ComparedPartition, ...]) -> FloatArray:
    """(s,) log likelihood that two slopes gain on a block, coefficients staying as they are.

    In one population two slopes lose on rows they were not fitted to: what fitting had gained
    turns into its opposite.
    """
    return np.array([rows.weight @ p.log_ratio(rows.X, rows.y) for p in partitions])


def score(
    rows: Rows,
    groups: IntArray,
    thresholds: Thresholds,
    support: IntArray | None = None,
    block: int | None = None,
    mixed: int = MIXED,
    target: int = -1,
    decided: float = 0.0,
) -> Score:
    """Ask whether a column, y if not said otherwise, given others is one population.

    ``support`` are columns of the table (x, y), all of x if None; ``target`` is one as well.

    ``block`` rows of similar mean have noise of one shape, all rows if None. At most ``mixed``
    columns have two slopes of their own, the others as one prediction. Where the first draws show
    a p-value below ``decided``, no more are made.
    """
    support = np.arange(rows.X.shape[1]) if support is None else support
    table = np.column_stack([rows.X, rows.y])
    seen = Rows(np.ascontiguousarray(table[:, support]), table[:, target], rows.weight)
    # y is the last column of the table, so that a column may be asked about as y is.
    own = np.append(groups, groups.max(initial=0) + 1)[support]
    population = fit_population(seen, own, thresholds, again=bool((support == -1).any()))
    columns = _columns(seen, population, support, mixed)
    design = BatchDesign(columns(table), rows.weight)
    random = np.random.default_rng(SEED)
    draws, units = drawn_units(seen, population, FIRST, block, random)
    gain, two, one = gains(design, _blurred(np.vstack([population.unit[None], units]), random))
    found, second = two.chosen(np.zeros(1, dtype=np.int64)), two.second[1:].astype(np.float64)
    value = standardised_gain(gain, thresholds.misfit)
    # Most tables are one population and show it in a few draws; the rest are made where it matters.
    if value > SPECIAL and p_value_of(value, FIRST) >= decided:
        more, units = drawn_units(seen, population, DRAWS - FIRST, block, random)
        further, two, _ = gains(design, _blurred(units, random))
        gain, draws = np.append(gain, further), np.vstack([draws, more])
        second = np.vstack([second, two.second])
        value = standardised_gain(gain, thresholds.misfit)
    m = len(draws)
    p_value = p_value_of(value, m)
    return Score(
        value, p_value, float(gain[0]), gain[1:], columns, target, design, found, one, draws, second
    )


def _blurred(units: FloatArray, random: np.random.Generator) -> FloatArray:
    """Units with a little normal noise: edges, ties and rounding are then the same everywhere.

    Draws come from residuals that the error of the fit has blurred a little. Where noise has an
    edge (waiting times) or takes few values (counts), two slopes would take what is sharper in the
    rows than in the draws for heterogeneity.
    """
    blurred: FloatArray = units + THRESHOLDS.blur * random.standard_normal(units.shape)
    return blurred


def p_value_of(value: float, draws: int) -> float:
    """Chance of a score at least as large: about a t distribution."""
    return float(student.sf(value / np.sqrt(1.0 + 1.0 / draws), draws - 1))


def standardised_gain(gain: FloatArray, misfit: float) -> float:
    """Root of the first gain in standard deviations of the others' above their middle.

    Deviations below the median are not looked at: a draw for which EM ended early says nothing
    about how large a gain chance can show. ``misfit`` is added to the spread: what the fitted
    population may lack.
    """
    root = np.sqrt(np.maximum(gain, 0.0))
    null = root[1:]
    # The spread above the median is mirrored: half of the draws decide, but those that count.
    median = float(np.median(null))
    spread = np.sqrt(np.mean((null[null >= median] - median) ** 2))
    return float((root[0] - max(median, float(null.mean()))) / np.hypot(spread, misfit))


def _columns(seen: Rows, population: Population, support: IntArray, mixed: int) -> Columns:
    """Free slopes for the columns that matter most; terms and other columns as predictions."""
    m, coef = len(support), population.coef[1:]
    free = np.arange(m)
    if m > mixed:
        free = np.sort(np.argsort(-_relevance(seen, population), kind="stable")[:mixed])
    rest = np.setdiff1d(np.arange(m), free)
    # Two predictions: what the terms say, and what the columns without a slope of their own say.
    summaries = np.zeros((len(coef), 2))
    summaries[m:, 0] = coef[m:]
    # Where no column has a slope of its own, the whole mean is one prediction.
    summaries[rest, 1 if mixed else 0] = coef[rest]
    predicted = population.columns_at(seen.X) @ summaries
    varies = predicted.std(axis=0) > NEARLY_SINGULAR
    return Columns(
        support,
        support[free],
        population,
        summaries[:, varies],
        predicted[:, varies].mean(axis=0),
        predicted[:, varies].std(axis=0),
        float(np.median(population.scale)),
    )


def _relevance(seen: Rows, population: Population) -> FloatArray:
    """(m,) how much a column matters: to the mean, or to the size of the noise.

    A slope that points one way here and the other there may have no mean, but it spreads.
    """
    fit = working_fit(seen, Gaussian(), np.empty((len(seen), 0)))
    # Does |residual| grow with |x|? A slope that is +1 here and -1 there shows in nothing else.
    size = np.minimum(np.abs(population.unit), THRESHOLDS.far)
    size = size - size.mean()
    far = np.minimum(np.abs(seen.X), THRESHOLDS.far)
    far = far - far.mean(axis=0)
    spread = np.abs(size @ far) / np.sqrt(np.maximum(size**2 @ far**2, TINY))
    relevance: FloatArray = np.maximum(np.abs(fit.z[1:]), spread)
    return relevance
