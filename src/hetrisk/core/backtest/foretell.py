"""The error to expect in an environment not seen, by horizon, and intervals about predictions.

Errors of environments are handled on the log scale. With time, how errors grow with the horizon is
one slope, log error = a_cut + g log h, by least squares within cuts, never negative. What follows
is stated at a reference horizon and carried to others by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from hetrisk.core.backtest.losses import LEAST_PROBABILITY
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.result import Expected

BAND = 0.9  # of environments that lie in the band about an error to expect
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # of intervals that are held
PRIOR = 1.0  # squared log horizons that speak for no growth: a slope from two periods is noise
LEAST = 1e-6  # of the largest error: an environment without any is no reason for endless bands


@dataclass(frozen=True)
class EnvironmentErrors:
    """One model's errors: an entry an environment left out and cut.

    Attributes
    ----------
    environment, cut : (J,) which; horizon : (J,) periods ahead, one without time.
    error : (J,) root mean squared error or log loss.
    learned : (J,) rows the training had: errors of larger ones say more of what is to come.
    quantiles : (J, L) of absolute errors at ``LEVELS``; none for labels.
    noise : variance of a log error that the rows of an environment alone would give.
    """

    environment: FloatArray
    cut: FloatArray
    horizon: FloatArray
    error: FloatArray
    learned: FloatArray
    quantiles: FloatArray
    noise: float

    @property
    def growth(self) -> float:
        """The slope g of log error on log horizon."""
        x, y = np.log(self.horizon), _log(self.error)
        for c in np.unique(self.cut):
            x = np.where(self.cut == c, x - x[self.cut == c].mean(), x)
            y = np.where(self.cut == c, y - y[self.cut == c].mean(), y)
        return max(0.0, float((x @ y) / (x @ x + PRIOR)))

    @property
    def reference(self) -> float:
        """The horizon whose log is the mean."""
        return float(np.exp(np.log(self.horizon).mean()))

    def by_environment(self, values: FloatArray) -> FloatArray:
        """(E, ...) means over the cuts of an environment."""
        return np.array(
            [values[self.environment == e].mean(axis=0) for e in np.unique(self.environment)]
        )


def expected(errors: EnvironmentErrors, horizon: float | None = None) -> Expected:
    """Mean and band for one environment; at a horizon, or over those that were judged.

    The band is a t interval for a further environment on the log scale; that of log loss ends
    where no row can lose more.
    """
    growth, centre = errors.growth, np.log(errors.reference)
    log_error = _log(errors.error)
    level = log_error - growth * (np.log(errors.horizon) - centre)
    carried = 0.0 if horizon is None else growth * (np.log(horizon) - centre)
    mean = _mean(errors, errors.error if horizon is None else np.exp(level + carried))
    # Over all horizons the band holds what the horizon does to the error, too.
    logs = errors.by_environment(log_error if horizon is None else level)
    spread = _further(logs, errors.noise, 0.5 + BAND / 2)
    most = np.inf if errors.quantiles.size else -np.log(LEAST_PROBABILITY)  # no log loss is more
    lower, upper = mean * np.exp(-spread), min(mean * np.exp(spread), max(most, mean))
    return Expected(float(mean), float(lower), float(upper))


def _log(values: FloatArray) -> FloatArray:
    """Logs; what is next to nothing beside the largest counts as `LEAST` of it."""
    log: FloatArray = np.log(np.maximum(np.maximum(values, LEAST * values.max()), TINY))
    return log


def _mean(errors: EnvironmentErrors, values: FloatArray) -> float:
    """Mean over environments left out, those judged after larger trainings counting for more."""
    share = errors.learned**2
    return float((share @ values) / share.sum())


def _further(logs: FloatArray, noise: float, level: float) -> float:
    """How far above the mean a further environment may lie: the upper end of a t interval.

    What rows alone would give counts as one environment more, as in the choice.
    """
    E = len(logs)
    variance = (noise + float(((logs - logs.mean()) ** 2).sum())) / E
    return float(student.ppf(level, E)) * float(np.sqrt(variance * (1.0 + 1.0 / E)))


def interval_table(errors: EnvironmentErrors, horizons: FloatArray) -> FloatArray:
    """(H, 1 + L) horizons, and half widths of intervals at ``LEVELS``.

    At level l: the l quantile over environments of their own l quantiles of absolute errors,
    environments weighing the same; where they are fewer than 1 / (1 - l), the upper end of a t
    interval on the log scale.
    """
    growth, centre = errors.growth, np.log(errors.reference)
    carried = np.exp(-growth * (np.log(errors.horizon) - centre))
    own = errors.by_environment(errors.quantiles * carried[:, None])
    half = np.array([_upper(own[:, k], errors.noise, level) for k, level in enumerate(LEVELS)])
    half = np.maximum.accumulate(half)
    scale = np.exp(growth * (np.log(horizons) - centre))
    return np.column_stack([horizons, scale[:, None] * half])


def _upper(values: FloatArray, noise: float, level: float) -> float:
    if 1.0 / (1.0 - level) - 1e-9 <= len(values):
        return float(np.quantile(values, level, method="higher"))
    logs = _log(values)
    return float(np.exp(logs.mean() + _further(logs, noise, level)))


def half_width(table: FloatArray, level: float, horizon: FloatArray) -> FloatArray:
    """(n,) half widths at a level, each at the row's horizon: between those held, and beyond."""
    horizons, held = table[:, 0], table[:, 1:]
    # On the scale of normal quantiles, on which widths are nearly straight lines.
    z = norm.ppf(0.5 + np.array(LEVELS) / 2)
    wanted = float(norm.ppf(0.5 + level / 2))
    z, held = np.append(0.0, z), np.column_stack([np.zeros(len(held)), held])
    if wanted > z[-1]:
        at_level = held[:, -1] * wanted / z[-1]
    else:
        at_level = np.array([np.interp(wanted, z, line) for line in held])
    widths: FloatArray = np.interp(horizon, horizons, at_level)
    return widths
