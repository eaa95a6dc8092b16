"""The figures, drawn from filled panels and records. Needs matplotlib (``hetrisk[plot]``)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hetrisk.reproduce.distances import (
    ALL,
    FIRST,
    LAST,
    TRUE,
    VARIANT,
    mean_distance,
)
from hetrisk.reproduce.panels import SPREAD, TRAIN, Filled, Row
from hetrisk.reproduce.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTITIONS = (TRUE, FIRST, LAST)
FARTHEST = 0.6  # of the colour scale: distances on few features stay well below 1
# Colours of Okabe and Ito (2008), told apart by readers with any colour vision; the baselines
# share them with dashes, the HRM variants are solid.
STYLES: dict[str, tuple[str, str, str]] = {
    "mean": ("#888888", ":", "x"),
    "erm": ("#000000", "-", "o"),
    "dro": ("#E69F00", "--", "v"),
    "eiil": ("#CC79A7", "--", "^"),
    "irm": ("#56B4E9", "--", "D"),
    "hrm-s": ("#0072B2", ":", "<"),
    "hrm-released": ("#F0E442", "-", "s"),
    "hrm-fixed": ("#0072B2", "--", ">"),
    "hrm": ("#0072B2", "-", "o"),
    "stable": ("#D55E00", "-", "P"),
    "stable-copies": ("#D55E00", ":", "*"),
    "trees": ("#009E73", ":", "p"),
    "backtest": ("#009E73", "-", "X"),
}


class PlottingUnavailable(ImportError):
    """Figures were asked for without matplotlib."""


@dataclass(frozen=True)
class Drawing:
    """A figure and the sentence under it."""

    figure: Figure
    caption: str

    def png(self) -> bytes:
        """The figure as PNG."""
        stream = io.BytesIO()
        self.figure.savefig(stream, format="png", bbox_inches="tight", dpi=130)
        return stream.getvalue()


def blank(width: float, height: float, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return an empty figure, untied from any window system, and its axes as a list."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlottingUnavailable(
            "figures need matplotlib: install it with pip install 'hetrisk[plot]'."
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False, **options)[0]


def distance_figure(panels: Sequence[Filled], records: Sequence[Record]) -> Drawing:
    """Distance matrices of the first seed, and how the averages over seeds compare."""
    mean = {features: _mean_distances(records, features) for features in (VARIANT, ALL)}
    ratio = mean[VARIANT][LAST] / mean[VARIANT][FIRST]
    figure, axes = blank(12, 3.9, len(PARTITIONS))
    for axis, name in zip(axes, PARTITIONS, strict=True):
        image = _matrix(axis, records[0]["distances"][VARIANT][name])
        under = f"mean distance {mean[VARIANT][name]:.3f}"
        if name == LAST:
            under += f"\n{ratio:.1f} times the first round"
        axis.set_title(f"{name}\n{under}", fontsize=10)
    figure.colorbar(image, ax=list(axes), shrink=0.8, label="Task2Vec distance")
    listed = {
        features: ", ".join(f"{name} {value:.3f}" for name, value in of.items())
        for features, of in mean.items()
    }
    caption = (
        f"Task2Vec distance between environments: matrices of seed {records[0]['seed']}, averages "
        f"over {len(records)} draws. On the variant features: {listed[VARIANT]}; the learned "
        f"environments are {ratio:.2f} times as far apart as those of the first round. On all "
        f"features: {listed[ALL]}."
    )
    return Drawing(figure, caption)


def _mean_distances(records: Sequence[Record], features: str) -> dict[str, float]:
    return {
        name: float(np.mean([mean_distance(r["distances"][features][name]) for r in records]))
        for name in PARTITIONS
    }


def _matrix(axis: Any, matrix: Sequence[Sequence[float]]) -> Any:
    values = np.asarray(matrix)
    image = axis.imshow(values, vmin=0, vmax=FARTHEST, cmap="cividis")
    for (i, j), value in np.ndenumerate(values):
        colour = "black" if value > FARTHEST / 2 else "white"
        axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=9)
    ticks = np.arange(len(values))
    axis.set_xticks(ticks, [f"{k + 1}" for k in ticks])
    axis.set_yticks(ticks, [f"{k + 1}" for k in ticks])
    return image


def car_figure(panels: Sequence[Filled], records: Sequence[Record]) -> Drawing:
    """Accuracy in training and in testing against the strength of the spurious correlation."""
    figure, axes = blank(10.5, 4.4, 2, sharey=True)
    strengths = [filled.panel.setting["r"] for filled in panels]
    for axis, place, title in zip(axes, (0, 1), ("training", "testing"), strict=True):
        for method in STYLES:
            rows = [row for filled in panels if (row := filled.row(method)) and row.cells]
            if len(rows) < len(panels):
                continue
            accuracy = [1 - list(row.cells.values())[place].ours for row in rows]
            _line(axis, strengths, accuracy, method, rows[0].label)
        axis.set(title=title, xlabel="strength r", xticks=strengths)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy")
    _legend(figure, axes[0])
    return Drawing(
        figure,
        "Car insurance: accuracy where sex correlates at r with the label (training) and at -r "
        "(testing). Pooled, the training rows are one distribution: the row that says "
        f"assume_label_copies rests on that assumption, and no other row does. {_draws(panels)}",
    )


def income_figure(panels: Sequence[Filled], records: Sequence[Record]) -> Drawing:
    """Error rate in each group; the groups have no order, so the methods stand side by side."""
    figure, axis, columns = _environment_axes(panels[0], "misclassification rate")
    rows = _comparable(panels[0])
    for place, row in enumerate(rows):
        x = np.arange(len(columns)) + 0.75 * ((place + 0.5) / len(rows) - 0.5)
        colour, _, marker = STYLES[row.method]
        values = [row.cells[column].ours for column in columns]
        axis.plot(x, values, linestyle="", color=colour, marker=marker, label=row.label)
    for edge in range(1, len(columns)):
        axis.axvline(edge - 0.5, color="#cccccc", linewidth=0.8)
    _legend(figure, axis)
    return Drawing(
        figure,
        "Income: misclassification rate in ten groups; the first two are trained on. "
        + _draws(panels),
    )


def _draws(panels: Sequence[Filled]) -> str:
    n = max(row.n_seeds for filled in panels for row in filled.rows)
    return "One draw." if n == 1 else f"{n} draws."


def house_figure(panels: Sequence[Filled], records: Sequence[Record]) -> Drawing:
    """RMSE in each period."""
    figure, axis, columns = _environment_axes(panels[0], "RMSE (log price, standardised)")
    for row in _comparable(panels[0]):
        values = [row.cells[column].ours for column in columns]
        _line(axis, range(len(columns)), values, row.method, row.label)
    _legend(figure, axis)
    return Drawing(
        figure, "House prices: RMSE in each period of the year built; trained on 1900-1919."
    )


def _environment_axes(filled: Filled, quantity: str) -> tuple[Figure, Any, list[str]]:
    """Return a figure with one place for training and for each environment."""
    columns = [column for column in filled.columns if column not in SPREAD]
    figure, axes = blank(11, 5)
    shown = ["training" if column == TRAIN else column for column in columns]
    turned = {"rotation": 30, "ha": "right"} if max(map(len, shown)) > 10 else {}
    axes[0].set_xticks(range(len(columns)), shown, **turned)
    axes[0].set_ylabel(quantity)
    axes[0].grid(axis="y", alpha=0.3)
    return figure, axes[0], columns


def _comparable(filled: Filled) -> list[Row]:
    """Rows to draw. The mean predictor is left to the table: it would squeeze the others."""
    rows = [filled.row(method) for method in STYLES if method != "mean"]
    return [row for row in rows if row is not None and row.cells]


def _line(axis: Any, x: Any, y: Sequence[float], method: str, label: str) -> None:
    colour, dashes, marker = STYLES[method]
    # ERM lies below the others and is wider, so that a method that equals it shows both.
    wide = 3.5 if method == "erm" else 1.6
    axis.plot(x, y, dashes, color=colour, marker=marker, label=label, linewidth=wide, markersize=5)


def _legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=9)
