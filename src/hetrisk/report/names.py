"""What candidates and errors are called in a sentence."""

from __future__ import annotations

import re
from functools import cache

from hetrisk.core.result import Forecast
from hetrisk.report.labels import brief, listed

CONSTANT, PLAIN = "constant", "plain"
LOG_LOSS = "log loss"
AVERAGED = re.compile(r"(0\.[0-9]) (.+)")


@cache
def _words() -> dict[str, str]:
    from hetrisk.estimators.candidates import BUILT_IN

    return {name: candidate.words for name, candidate in BUILT_IN.items()}


def called(candidate: str, unit: str = "") -> str:
    """Return a candidate as a sentence speaks of it; of the constant it depends on the unit."""
    parts = [AVERAGED.fullmatch(part) for part in candidate.split(" + ")]
    if len(parts) > 1 and all(parts):
        named = [f"{_single(p[2], unit)} ({10 * int(p[1][2:])} %)" for p in parts if p is not None]
        return f"an average of {listed(named, len(named))}"
    return _single(candidate, unit)


def _single(candidate: str, unit: str) -> str:
    if candidate == CONSTANT:
        return constant(unit)
    return _words().get(candidate, f"“{brief(candidate, 60)}”")


def constant(unit: str) -> str:
    """Predicting the same for every row: the mean, or the shares of the classes."""
    return "the class shares" if unit == LOG_LOSS else "the mean"


def untested(forecast: Forecast) -> bool:
    """Whether nothing could be backtested."""
    return forecast.n_environments == 0
