"""Errors in environments left out, put together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hetrisk.core.result import Tested
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
