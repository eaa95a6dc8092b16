"""The thresholds of the "auto" choices around the paper's objective.

With penalties given (`hetrisk.core.paper.auto`) only the last three matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hetrisk.core.numerics.named_numbers import conventional, measured, threshold

LOG = "[invariant prediction](research/invariant-prediction.md), "


@dataclass(frozen=True)
class GateThresholds:
    """What the choice of gates and penalties decides by."""

    stable_spread: float = threshold(
        0.2,
        "spread of a stable coefficient over environments, relative to its size",
        measured(LOG + "a relative measure"),
    )
    unstable_spreads: tuple[float, ...] = threshold(
        (0.5, 0.7, 1.0, 2.0, 4.0),
        "spreads of an unstable one, of which the likeliest counts",
        conventional("half its size and more, in steps of about the root of two and two"),
    )
    unstable_ratio: float = threshold(
        -0.4,
        "log likelihood ratio of unstable to stable above which a feature leaves",
        measured(LOG + "a relative measure"),
    )
    weak_z: float = threshold(
        6.0,
        "errors from zero within which a feature must be shown to be unstable",
        measured(LOG + "weak features only"),
    )
    chance: float = threshold(
        0.03,
        "p-value of Cochran's Q below which coefficients differ by more than their errors",
        measured(LOG + "three changes"),
    )
    all_useful: float = threshold(
        0.99, "prior probability that no feature is useless", measured(LOG + "three changes")
    )
    useless_odds: float = threshold(
        0.05,
        "odds of being useless at which a feature leaves, once some are",
        measured(LOG + "three changes"),
    )
    last_level: float = threshold(
        0.002,
        "p-value at which the last feature of all stays",
        conventional("about three standard errors"),
    )
    shifting: float = threshold(
        1e-3,
        "p-value of Bartlett's test at which the spread of an effect shifts",
        conventional("one in a thousand"),
    )
    affordable_rise: float = threshold(
        0.2,
        "rise of the left-out risk, at most, when an unstable feature leaves",
        measured(LOG + "the joint loop"),
    )
    penalties: tuple[float, ...] = threshold(
        (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        "values of lambda tried",
        measured(LOG + "optimising the gates: the useful range ends at about 10"),
    )
    most_environments: int = threshold(
        3, "environments tried in the first round", measured(LOG + "the joint loop")
    )
    closed_to_psi: float = threshold(
        0.999,
        "expected gate that leaves nothing of its feature to cluster on",
        conventional("open, up to the rounding of the optimiser"),
    )
    label_ridge: float = threshold(
        1e-3,
        "ridge about which the log loss of labels is expanded",
        measured(LOG + "labels"),
    )


GATE_THRESHOLDS: Final = GateThresholds()
