"""The reach curve: the error to expect as the shift grows, of a model and of plain ERM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from hetrisk.core.numerics.floors import EQUAL, TINY
from hetrisk.core.numerics.named_numbers import Constant
from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.core.reach.regret import (
    Environments,
    expected_error,
    fit_set,
    regret_of,
    risk_of,
)
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.reach.thresholds import REACH_THRESHOLDS
from hetrisk.core.result import BRIER, ReachCurve

GRID: Constant[tuple[float, ...]] = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
# Reach at most: its square is multiplied with errors, and a difference beside it is soon rounding.
FARTHEST: Constant[float] = 1e6


@dataclass(frozen=True)
class Line:
    """E_k of one model (`hetrisk.core.reach.regret`).

    ``noise_gap`` is how far the noise of the noisiest environment lies above the mean; ``regrets``
    (K,) are those of the environments, none below zero, and ``own`` (K,) their own risks. A further
    axis before these indexes resamples.
    """

    risk: FloatArray | float
    noise_gap: FloatArray | float
    regrets: FloatArray
    own: FloatArray

    def expected(self, reach: FloatArray) -> FloatArray:
        """(G,) squared error to expect."""
        worst = self.regrets.max(axis=-1, initial=0.0)
        risk, gap = (np.asarray(part)[..., None] for part in (self.risk, self.noise_gap))
        return expected_error(risk, gap, worst[..., None], reach)

    def rescaled(self, ratio: float) -> Line:
        """The same regrets, where the squared errors themselves are ``ratio`` times as large."""
        return Line(ratio * self.risk, ratio * self.noise_gap, self.regrets, ratio * self.own)

    def each(self, reach: FloatArray) -> FloatArray:
        """(K, G) squared error in each environment, its own noise included."""
        each: FloatArray = self.own[:, None] + reach**2 * self.regrets[:, None]
        return each


def model_line(environments: Environments, coef: FloatArray, columns: BoolArray) -> Line:
    """Risk and regrets of a linear model (p, t) that uses some columns."""
    own = fit_set(environments, columns)
    regrets = np.maximum(regret_of(environments, coef, own) - own.chance, 0.0)
    return Line(float(risk_of(environments, coef)[0]), own.noise_gap, regrets, own.own)


def break_even(model: Line, plain: Line) -> float:
    """Smallest reach from which on the model's expected error is no more than plain ERM's."""
    price, quieter, gain = _differences(model, plain)
    if gain < 0.0:
        return np.inf
    if price > quieter + gain:  # not yet at reach 1: from there on only regret grows
        return float(np.sqrt((price - quieter) / gain)) if gain > 0.0 else np.inf
    # It pays at reach 1; below, where h(k) = gain k^2 + quieter k - price is not negative.
    root = quieter**2 + 4.0 * gain * price
    if quieter >= 0.0:  # in this form nothing cancels, and a gain of zero is no exception
        return float(2.0 * price / (quieter + np.sqrt(root))) if price > 0.0 else 0.0
    if root < 0.0 or gain == 0.0:
        return 0.0
    # A noisier model: where it costs less at 0 it pays there as well, and may not in between.
    larger = float((np.sqrt(root) - quieter) / (2.0 * gain))
    return larger if price > 0.0 or larger <= 1.0 else 0.0


def _differences(model: Line, plain: Line) -> tuple[float, float, float]:
    """What the model costs where nothing shifts, and saves of noise and of regret; no rounding."""
    worst = [float(line.regrets.max(initial=0.0)) for line in (model, plain)]
    both = (
        float(model.risk) - float(plain.risk),
        float(plain.noise_gap) - float(model.noise_gap),
        worst[1] - worst[0],
    )
    # A regret that is rounding would pay from some reach on, however far.
    least = EQUAL * max(float(model.risk), float(plain.risk))
    price, quieter, gain = (part if abs(part) > least else 0.0 for part in both)
    return price, quieter, gain


def grid(reach: float) -> FloatArray:
    """Reaches to draw: the usual ones, twice as far as the one asked for, and that one."""
    far = [k for k in (1.5 * reach, 2.0 * reach) if k > GRID[-1]]
    return np.unique(np.array([*GRID, reach, *far]))


def band(
    reach: FloatArray, line: Line, resampled: Line | None, spread: float
) -> tuple[FloatArray, FloatArray]:
    """(G,) lower and upper limits of the squared error in the worst environment to come.

    Log errors of environments are taken to be normal with a spread of their own: as seen in the
    K environments, together with ``spread`` as if seen in `spread_rows` more (two environments say
    little about a third). Resamples add the noise of the rows. A t distribution gives the limits.
    """
    logs = np.log(np.maximum(line.each(reach), TINY))
    K = len(logs)
    centre = np.log(np.maximum(line.expected(reach), TINY))
    # Logarithms: errors are positive, and environments differ by factors.
    mean = logs.mean(axis=0) if K else centre
    square = ((logs - mean) ** 2).sum(axis=0) if K else np.zeros_like(centre)
    freedom = max(K - 1, 0) + REACH_THRESHOLDS.spread_rows
    # The spread seen and the one assumed are pooled as sums of squares; the last factor is that of
    # a prediction: the mean of K environments is uncertain as well.
    variance = (
        (square + REACH_THRESHOLDS.spread_rows * spread**2) / freedom * (1.0 + 1.0 / max(K, 1))
    )
    if resampled is not None:
        variance = variance + np.log(np.maximum(resampled.expected(reach), TINY)).var(axis=0)
    width = np.sqrt(variance)
    # The band is for the worst environment to come: it starts from the mean of those seen or from
    # the worst of them moved k times as far, whichever is farther out.
    low = np.minimum(mean, centre) - stdtrit(freedom, REACH_THRESHOLDS.lower) * width
    high = np.maximum(mean, centre) + stdtrit(freedom, REACH_THRESHOLDS.upper) * width
    return np.exp(low), np.exp(high)


def draw(
    reach: FloatArray,
    lines: tuple[Line, Line],
    resampled: tuple[Line, Line] | None,
    left_out: BoolArray,
    unit: str,
) -> ReachCurve:
    """Put the curve together; ``lines`` and ``resampled`` are this model's and ERM's."""
    labels = unit == BRIER
    spread = REACH_THRESHOLDS.spread_labels if labels else REACH_THRESHOLDS.spread
    again = (None, None) if resampled is None else resampled
    bands = [band(reach, line, a, spread) for line, a in zip(lines, again, strict=True)]

    def root(squared: FloatArray) -> FloatArray:
        # A probability is wrong by one at most.
        shown: FloatArray = np.sqrt(np.clip(squared, 0.0, 1.0 if labels else np.inf))
        return shown

    return ReachCurve(
        reach=reach,
        error=root(lines[0].expected(reach)),
        error_erm=root(lines[1].expected(reach)),
        low=root(bands[0][0]),
        high=root(bands[0][1]),
        low_erm=root(bands[1][0]),
        high_erm=root(bands[1][1]),
        left_out=tuple(tuple(int(j) for j in np.flatnonzero(~s)) for s in left_out),
        unit=unit,
        break_even=break_even(*lines),
    )


def reach_curve(
    environments: Environments,
    model: Line,
    reach: float,
    sets: BoolArray,
    costs: Costs,
    lines: tuple[Line, Line] | None,
    unit: str,
    start: tuple[float, float] | None = None,
) -> ReachCurve:
    """The reach curve of a model and of plain ERM.

    ``sets`` (n, d) and their ``costs`` are those among which the columns to leave out at other
    reaches are found; ``lines`` are those of the model and of plain ERM on resampled rows;
    ``start`` the squared errors of the two where nothing shifts, if these were measured
    (`hetrisk.core.reach.brier`).
    """
    full = np.ones(environments.n_columns, dtype=bool)
    plain = model_line(environments, fit_set(environments, full).coef[0], full)
    at = grid(reach)
    # Risk and worst regret of a set do not depend on the reach: every reach has its best set among
    # those met, without a search of its own.
    best = [int(np.argmin(costs.expected(float(k)))) for k in at]
    pair = (model, plain)
    if start is not None:
        # The model that is handed over errs less than the linear one that moments know: the curve
        # keeps its rise, and starts where that model does.
        ratio = [e / max(float(line.risk), TINY) for e, line in zip(start, pair, strict=True)]
        pair = (model.rescaled(ratio[0]), plain.rescaled(ratio[1]))
        if lines is not None:
            lines = (lines[0].rescaled(ratio[0]), lines[1].rescaled(ratio[1]))
    return draw(at, pair, lines, sets[best], unit)
