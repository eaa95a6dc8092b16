"""The thresholds of the decision by regret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hetrisk.core.numerics.named_numbers import conventional, measured, threshold


@dataclass(frozen=True)
class ReachThresholds:
    """What the decision, and the band about its curve, go by."""

    spread: float = threshold(
        0.4,
        "spread of the log squared errors of environments before any are seen",
        measured(
            "with it the band holds the worst unseen environment in 65 of 72 splits of real tables"
        ),
    )
    spread_labels: float = threshold(
        0.2,
        "the same of Brier scores, which lie closer together: that of a coin is 0.25",
        measured(
            "with it the band holds the worst unseen environment in 20 of 21 splits of real tables"
        ),
    )
    spread_rows: int = threshold(
        6, "environments that this counts as", measured("together with the spread")
    )
    lower: float = threshold(0.9, "level of the band below", conventional("nine in ten"))
    upper: float = threshold(
        0.99,
        "level of the band above",
        measured("together with the spread: the worst of several is an extreme"),
    )
    passes: float = threshold(
        0.05,
        "p-value from which on y given some columns passes for one population in all environments",
        measured(
            "conventional; at 0.02 one split more of 138 and one of 33 are harmed, designs alike; "
            "at 0.1 less is found (docs/research/reach.md)"
        ),
    )
    anchor_gamma: float = threshold(
        5.0,
        "strength of the anchor regression shown beside",
        measured("docs/gauntlet.md: the peer that harms least"),
    )


REACH_THRESHOLDS: Final = ReachThresholds()
