"""What candidates and errors are called in a sentence."""

from __future__ import annotations

from hetrisk.core.result import Forecast
from hetrisk.report.labels import brief

CONSTANT, PLAIN = "constant", "plain"
LOG_LOSS = "log loss"
CALLED = {
    "plain": "the plain linear model",
    "ridge": "ridge regression",
    "stable": "the linear model on the stable columns",
    "directions": "the linear model with shrunken directions",
    "anchor": "anchor regression",
    "trend": "the linear model with a trend",
    "level": "the linear model at the level of the last periods",
    "recent": "the linear model on recent rows",
    "within": "the linear model with slopes from within environments",
    "levels": "the linear model with a level for each known environment",
    "trees": "boosted trees",
}


def called(candidate: str, unit: str = "") -> str:
    """Return a candidate as a sentence speaks of it; of the constant it depends on the unit."""
    if candidate == CONSTANT:
        return constant(unit)
    return CALLED.get(candidate, f"“{brief(candidate, 60)}”")


def constant(unit: str) -> str:
    """Predicting the same for every row: the mean, or the shares of the classes."""
    return "the class shares" if unit == LOG_LOSS else "the mean"


def untested(forecast: Forecast) -> bool:
    """Whether nothing could be backtested."""
    return forecast.n_environments == 0
