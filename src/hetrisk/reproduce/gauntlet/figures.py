"""The gauntlet in pictures: harm against help, and curves foretold against what came true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetrisk.reproduce.figures import Drawing, blank
from hetrisk.reproduce.gauntlet.forecast import Forecast
from hetrisk.reproduce.gauntlet.methods import ERM, GAUNTLET, OURS
from hetrisk.reproduce.gauntlet.ratios import Tally
from hetrisk.reproduce.methods import TOLD

MARKS = (0, 1, 2, 5, 10, 20, 40, 60, 80, 100)  # per cent, along the axes
PLACES = (  # of a name beside its dot, in points
    ((6, 3), "left"),
    ((6, -9), "left"),
    ((-6, 3), "right"),
    ((-6, -9), "right"),
    ((6, 13), "left"),
    ((6, -19), "left"),
)
OUR_COLOUR, OTHER_COLOUR, ERM_COLOUR = "#D55E00", "#0072B2", "#000000"


def harm_and_help(counted: Sequence[Tally]) -> Drawing:
    """One dot a method: share of the splits it harmed against the share it helped."""
    figure, (axis,) = blank(9, 6)
    dots: list[tuple[str, float, float]] = []
    for one in counted:
        if one.method == ERM:
            continue
        told = GAUNTLET[one.method].given == TOLD
        x, y = 100 * one.harmed / one.n, 100 * one.helped / one.n
        axis.plot(
            x,
            y,
            "o" if told else "s",
            color=OUR_COLOUR if one.method in OURS else OTHER_COLOUR,
            markerfacecolor=None if told else "white",
        )
        dots.append((one.method, x, y))
    edge = max((max(x, y) for _, x, y in dots), default=100.0)
    axis.plot([0, edge], [0, edge], color="#999999", linewidth=0.8, linestyle=":")
    # Most methods harm few splits or many: roots give the few room.
    for set_scale in (axis.set_xscale, axis.set_yscale):
        set_scale("function", functions=(_root, np.square))
    for set_ticks, set_limit in (
        (axis.set_xticks, axis.set_xlim),
        (axis.set_yticks, axis.set_ylim),
    ):
        set_ticks([mark for mark in MARKS if mark <= edge])
        set_limit(-0.05, 1.15 * edge)
    _name(axis, dots)
    axis.set_xlabel("splits harmed (worst error more than 2 % above ERM's), %")
    axis.set_ylabel("splits helped (more than 2 % below), %")
    axis.grid(alpha=0.3)
    return Drawing(
        figure,
        "Harm against help over the splits of the real tables, one dot a method. Filled circles "
        "are told the environments, hollow squares are not; ours are orange. Above the dotted line "
        "a method helps more often than it harms.",
    )


def _root(values: np.ndarray) -> np.ndarray:
    """Square roots, negative numbers mirrored."""
    return np.sign(values) * np.sqrt(np.abs(values))


def _name(axis: Any, dots: Sequence[tuple[str, float, float]]) -> None:
    """Write each name beside its dot, where no other name is."""
    taken: list[Any] = []
    for method, x, y in sorted(dots, key=lambda dot: (dot[2], dot[1])):
        for offset, side in PLACES:
            label = axis.annotate(
                method, (x, y), offset, textcoords="offset points", fontsize=8, ha=side
            )
            box = label.get_window_extent()
            if (offset, side) == PLACES[-1] or not any(box.overlaps(other) for other in taken):
                break
            label.remove()
        taken.append(box)


def foretold_and_came_true(chosen: Sequence[Forecast]) -> Drawing:
    """Curves with their bands, and beside them the errors in the unseen environments."""
    figure, axes = blank(4.4 * len(chosen), 4.2, len(chosen))
    for axis, forecast in zip(axes, chosen, strict=True):
        _curves(axis, forecast)
    axes[0].set_ylabel("error (RMSE)")
    axes[0].legend(fontsize=8)
    return Drawing(
        figure,
        "Lines and bands: the error foretold from the training environments, against reach. Dots: "
        "the error that came true in each unseen environment (placed left of reach 0, where they "
        "have no reach of their own).",
    )


def _curves(axis: Any, forecast: Forecast) -> None:
    shown = (
        ("ERM", ERM_COLOUR, forecast.erm, forecast.erm_came, -0.45),
        ("columns at reach 4", OUR_COLOUR, forecast.ours, forecast.ours_came, -0.25),
    )
    for label, colour, (low, line, high), came, place in shown:
        axis.fill_between(forecast.reach, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.plot(forecast.reach, line, color=colour, label=label)
        jitter = np.linspace(-0.06, 0.06, len(came))
        axis.plot(place + jitter, came, ".", color=colour, alpha=0.7)
    # Beyond reach 3 the curve of ERM would squeeze what is worth seeing.
    top = max(forecast.erm_came.max(), np.interp(3.0, forecast.reach, forecast.erm[2]))
    axis.set_xlim(-0.6, 4.0)
    axis.set_ylim(0, 1.15 * top)
    axis.axvline(0, color="#999999", linewidth=0.8)
    axis.set_title(f"{forecast.stage.name}\n{forecast.stage.split} trained on", fontsize=10)
    axis.set_xlabel("reach")
