"""Is a column, given others, one population? A score that knows what one would show.

The gain in mean log likelihood from one regression to two (`two_slopes`) is never zero: two slopes
fit anything a little better, and a curve or a skewed noise a lot better. So the same gain is
measured on targets drawn from one flexible population fitted to the rows (`population`). The score
is the root of the gain (which steadies its spread, as of any likelihood ratio) less its mean over
the draws, over their standard deviation; of m draws it has about a t distribution with m - 1
degrees of freedom, where there is one population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.stable.population import population
from hetrisk.core.stable.two_slopes import Design, gains, row_gain

DRAWS: Budget[int] = 20  # targets of one population
FIRST: Budget[int] = 7  # after which a p-value that is plain either way is left at that
DOUBT: Budget[tuple[float, float]] = (0.002, 0.1)  # p-values between which all are drawn
SEED: Budget[int] = 20210  # of the draws
# Added to the spread of a score: what the fitted population may lack, in roots of the gain. Means
# that no hinge draws exactly gain up to a hundredth.
MISFIT = 0.02
# Normal noise added to units of size one: edges and ties are then alike in rows and draws.
BLUR: Budget[float] = 0.3


@dataclass(frozen=True)
class Score:
    """Two slopes against one population.

    Attributes
    ----------
    value : the score; p_value : of H0, one population.
    second : (n,) share of the second slope in every row.
    gain : (n,) log likelihood that two slopes gain in every row.
    """

    value: float
    p_value: float
    second: FloatArray
    gain: FloatArray


def two_slope_score(given: FloatArray, column: FloatArray, weight: FloatArray) -> Score:
    """Test H0: ``column`` given ``given`` (n, p) is one population, against two slopes."""
    fitted = population(given, column, weight)
    unit = np.median(fitted.scale) / fitted.scale
    # Units are residuals over the size of the noise, so columns are divided by it as well.
    design = Design(np.column_stack([np.ones(len(given)), given]) * unit[:, None], weight)
    random = np.random.default_rng(SEED)
    drawn = fitted.draws(DRAWS, SEED)
    units = np.vstack([fitted.unit, drawn])
    units = units + BLUR * random.standard_normal(units.shape)
    gain, two = gains(design, units[: FIRST + 1])
    value, p_value = _standardised(gain)
    if DOUBT[0] < p_value < DOUBT[1]:
        gain = np.append(gain, gains(design, units[FIRST + 1 :])[0])
        value, p_value = _standardised(gain)
    return Score(value, p_value, two.belongs[1, 0], row_gain(design, units[:1], two))


def _standardised(gain: FloatArray) -> tuple[float, float]:
    """Root of the first gain in standard deviations of the others' above their middle; p-value."""
    root = np.sqrt(np.maximum(gain, 0.0))
    null = root[1:]
    # The spread above the median is mirrored: a draw for which EM ended early says nothing of how
    # large a gain chance can show.
    median = float(np.median(null))
    spread = np.sqrt(np.mean((null[null >= median] - median) ** 2))
    value = float((root[0] - max(median, float(null.mean()))) / np.hypot(spread, MISFIT))
    m = len(null)
    return value, float(student.sf(value / np.sqrt(1.0 + 1.0 / m), m - 1))
