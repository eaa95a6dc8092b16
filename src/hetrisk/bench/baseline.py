"""A regression guard: the ratios of a run against those of an earlier one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hetrisk.bench.metric import AT_LEAST, Metric, Run

TOLERANCE = 0.3  # how much worse a ratio may be: two runs on a quiet machine differ by less


@dataclass(frozen=True)
class Change:
    """A ratio then and now.

    ``worse`` is the relative change for the worse: 0.5 is half as slow again.
    """

    name: str
    before: float
    now: float
    worse: float

    @property
    def regressed(self) -> bool:
        """Whether it is worse by more than the tolerance, or no longer measured."""
        return math.isnan(self.worse) or self.worse > TOLERANCE


def compare(now: Run, before: Run) -> list[Change]:
    """Compare every guarded ratio of ``before`` with the same one ``now``."""
    if now.quick != before.quick:
        sizes = {True: "quick", False: "full"}
        raise ValueError(
            f"the baseline must be of the same size as the run; the baseline is "
            f"{sizes[before.quick]} and the run {sizes[now.quick]}."
        )
    current = {metric.name: metric for metric in now.metrics}
    return [
        _change(metric, current.get(metric.name))
        for metric in before.metrics
        if metric.guarded and not math.isnan(metric.value)
    ]


def sentences(changes: Sequence[Change]) -> list[str]:
    """Say what got slower, one sentence each; none when nothing did."""
    told = []
    for change in changes:
        if not change.regressed:
            continue
        if math.isnan(change.now):
            told.append(f"{change.name}: was {change.before:.3g}, now not measured.")
        else:
            told.append(
                f"{change.name}: was {change.before:.3g}, now {change.now:.3g} "
                f"({change.worse:+.0%} for the worse)."
            )
    return told


def _change(before: Metric, now: Metric | None) -> Change:
    value = math.nan if now is None else now.value
    ratio = before.value / value if before.sense == AT_LEAST else value / before.value
    return Change(before.name, before.value, value, ratio - 1.0)
