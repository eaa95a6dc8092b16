"""Errors in environments left out, put together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hetrisk.core.result import Forecast, Horizon, Tested
from hetrisk.report.names import LOG_LOSS


def by_environment(backtest: Sequence[Tested], candidate: str, unit: str) -> dict[str, float]:
    """Return a candidate's error in each environment left out, over all cuts."""
    errors: dict[str, list[float]] = {}
    for line in backtest:
        if line.candidate == candidate and math.isfinite(line.error):
            errors.setdefault(line.environment, []).append(line.error)
    power = 1 if unit == LOG_LOSS else 2
    return {
        place: (sum(e**power for e in found) / len(found)) ** (1 / power)
        for place, found in errors.items()
    }


def tested_horizons(forecast: Forecast, backtest: Sequence[Tested]) -> tuple[Horizon, ...]:
    """Return horizons as far ahead as anything was judged: beyond, the forecast is a guess."""
    furthest = max((t.horizon for t in backtest if math.isfinite(t.horizon)), default=math.inf)
    kept = tuple(h for h in forecast.by_horizon if h.horizon <= furthest + 0.5)
    return kept or forecast.by_horizon[:1]


def in_unit(ratio: float, unit: str) -> float:
    """Return a ratio of losses as one of errors: losses of numbers are squares."""
    return ratio if unit == LOG_LOSS or not ratio > 0 else math.sqrt(ratio)
