"""The pictures of the report for notebooks: scikit-learn style displays on matplotlib.

Each display holds the picture it draws (`hetrisk.report.figures.Picture`, the same that the page
draws as SVG), is made by ``from_estimator`` from a fitted ``BacktestRegressor`` or
``BacktestClassifier`` and can be drawn again on other axes with ``plot``. Matplotlib is imported
when something is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from hetrisk.report.figures import (
    CHOSEN,
    Picture,
    Series,
    backtest_picture,
    forecast_picture,
    reach_picture,
)
from hetrisk.report.names import CONSTANT, PLAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["BacktestDisplay", "ForecastDisplay", "ReachDisplay"]

COLOUR = {CHOSEN: "#0a66a8", PLAIN: "#8a9199", CONSTANT: "#bf5600"}
MARKER = {CHOSEN: "o", PLAIN: "s", CONSTANT: "v"}
MOST_TICKS = 12


class _Display(ABC):
    """Base of the displays: holds a picture, draws it on axes.

    Attributes
    ----------
    picture : what is drawn.
    ax_, figure_ : where it was drawn, after ``plot``.
    """

    nothing: ClassVar[str]
    ax_: Axes
    figure_: Figure | SubFigure | None

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw a fitted model.

        Parameters
        ----------
        estimator : a fitted ``BacktestRegressor`` or ``BacktestClassifier``.
        ax : matplotlib axes to draw on; new ones by default.
        """
        described = cls._described(estimator)
        if described is None:
            raise ValueError(f"estimator has {cls.nothing}: name a time or an environment.")
        return cls(described).plot(ax)

    @staticmethod
    @abstractmethod
    def _described(estimator: Any) -> Picture | None:
        """The picture of a fitted model, or None."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.get_figure()
        draw(self.picture, ax)
        return self


class BacktestDisplay(_Display):
    """Error in each environment left out, and what to expect in those to come."""

    nothing = "no backtest"

    @staticmethod
    def _described(estimator: Any) -> Picture | None:
        return backtest_picture(estimator.ranking_, estimator.backtest_, estimator.forecast_)


class ForecastDisplay(_Display):
    """The error to expect, with a 90 % band: by periods ahead where there is time."""

    nothing = "no forecast of environments not seen"

    @staticmethod
    def _described(estimator: Any) -> Picture | None:
        return forecast_picture(estimator.ranking_, estimator.forecast_)


class ReachDisplay(_Display):
    """Error against reach: how far the world goes beyond the environments seen."""

    nothing = "no reach curve"

    @staticmethod
    def _described(estimator: Any) -> Picture | None:
        return reach_picture(
            estimator.ranking_,
            estimator.reach_curve_,
            estimator.forecast_.unit,
            estimator.reach,
        )


def draw(picture: Picture, ax: Axes) -> None:
    """Draw a picture on matplotlib axes."""
    named: set[str] = set()
    for series in picture.series:
        _draw_series(series, ax, None if series.role in named else _plain(series.name))
        named.add(series.role)
    for at, label in picture.guides:
        ax.axvline(at, color="0.3", linestyle="--", linewidth=1)
        ax.annotate(
            _plain(label),
            (at, 1.0),
            (3, -3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize="small",
            va="top",
        )
    if picture.ticks:
        every = -(-len(picture.ticks) // MOST_TICKS)
        shown = picture.ticks[::-every]
        labels = [_plain(label) for _, label in shown]
        ax.set_xticks([at for at, _ in shown], labels, rotation=30, ha="right")
    _, high = picture.span("y")
    ax.set_ylim(0.0, 1.06 * high or 1.0)
    ax.set(xlabel=picture.x_label, ylabel=picture.y_label, title=picture.title)
    if len(named) > 1:
        ax.legend()


def _draw_series(s: Series, ax: Axes, label: str | None) -> None:
    colour, x, y = COLOUR[s.role], np.asarray(s.x), np.asarray(s.y)
    if s.lower and s.joined and len(x) > 1:
        ax.fill_between(x, s.lower, s.upper, color=colour, alpha=0.2, linewidth=0)
    elif s.lower:
        ax.vlines(x, s.lower, s.upper, color=colour, alpha=0.6)
    line = "-" if s.joined else ""
    marker = MARKER[s.role] if s.titles or not s.joined else ""
    ax.plot(x, y, color=colour, linestyle=line, marker=marker, markersize=5, label=label)


def _plain(text: str) -> str:
    """Text that matplotlib sets as it is: a dollar would begin a formula."""
    return text.replace("$", r"\$")
