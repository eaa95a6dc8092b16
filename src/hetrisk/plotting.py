"""The pictures of the report for notebooks: scikit-learn style displays on matplotlib.

Each display holds the numbers it draws (`hetrisk.report.Summary`), is made by
``from_estimator`` from a fitted model (or a Pipeline ending in one) and can be drawn again on
other axes with ``plot``. Matplotlib is imported when something is drawn.

>>> from hetrisk import HRMRegressor, plotting
>>> from hetrisk.datasets import load_task
>>> task = load_task("selection_bias", seed=0)
>>> model = HRMRegressor(random_state=0).fit(task.train.X, task.train.y)
>>> display = plotting.RiskDisplay.from_estimator(model)
>>> display.ax_.get_xlabel()
'RMSE'
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hetrisk.report.extraction import summarize
from hetrisk.report.summary import Decision, Feature, Summary, by_importance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "CoefficientDisplay",
    "DistanceDisplay",
    "EnvironmentDisplay",
    "MarginDisplay",
    "ReachDisplay",
    "RiskDisplay",
    "SearchDisplay",
]

COLOURS = ("#0a66a8", "#bf5600", "#00735a", "#93468a", "#7d6100", "#4b5661")
MARKERS = ("o", "s", "D", "^", "v", "P")
DECISION_STYLE = {
    Decision.KEPT: ("#00735a", "o"),
    Decision.DROPPED: ("#b02a1c", "D"),
    Decision.UNCERTAIN: ("#7d6100", "^"),
}
ERM_COLOUR, HRM_COLOUR = "#8a9199", "#0a66a8"


class _Display(ABC):
    """Base of the displays: holds a summary, draws it on axes.

    Attributes
    ----------
    summary : the numbers drawn.
    ax_, figure_ : where they were drawn, after ``plot``.
    """

    ax_: Axes
    figure_: Figure | SubFigure | None

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw a fitted model.

        Parameters
        ----------
        estimator : a fitted HRM estimator, or a Pipeline ending in one.
        ax : matplotlib axes to draw on; new ones by default.
        options : what `plot` takes.
        """
        return cls(summarize(estimator)).plot(ax=ax, **options)

    def _on(self, ax: Axes | None) -> Axes:
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        self.ax_, self.figure_ = ax, ax.get_figure()
        return ax

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on ``ax``, or on new axes."""

    def _important_columns(self, max_features: int) -> tuple[Feature, ...]:
        _check_count(max_features)
        return by_importance(self.summary.columns)[:max_features]


class ReachDisplay(_Display):
    """Expected error against reach: this model and plain ERM, with their 90 % bands."""

    def __init__(self, summary: Summary | None = None, *, curve: Any = None) -> None:
        super().__init__(summary)  # type: ignore[arg-type]
        self.curve = curve

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the ``reach_curve_`` of a fitted model, the reach it was fitted for marked.

        Parameters
        ----------
        estimator : a fitted HRM estimator, or a Pipeline ending in one.
        ax : matplotlib axes to draw on; new ones by default.
        options : what `plot` takes.
        """
        summary = summarize(estimator)
        if summary.curve is None:
            raise ValueError(f"estimator has no reach curve: its verdict is {summary.verdict!r}.")
        options = {"asked": summary.curve.asked, **options}
        return cls(summary, curve=summary.curve).plot(ax=ax, **options)

    @classmethod
    def from_curve(cls, curve: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw a `ReachCurve`, such as `hetrisk.metrics.reach_curve` returns.

        Parameters
        ----------
        curve : the curve.
        ax : matplotlib axes to draw on; new ones by default.
        options : what `plot` takes.
        """
        return cls(curve=curve).plot(ax=ax, **options)

    def plot(
        self, ax: Axes | None = None, *, asked: float | None = None, name: str = "This model"
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes to draw on; new ones by default.
        asked : a reach to mark, or None.
        name : of the model, in the legend.
        """
        ax, c = self._on(ax), self.curve
        for colour, label, error, low, high in (
            (ERM_COLOUR, "Plain model (ERM)", c.error_erm, c.low_erm, c.high_erm),
            (HRM_COLOUR, name, c.error, c.low, c.high),
        ):
            ax.fill_between(c.reach, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(c.reach, error, color=colour, label=label)
        if asked is not None:
            ax.axvline(asked, color="0.3", linestyle="--", linewidth=1, label="Reach asked for")
        if 0 < c.break_even <= c.reach[-1]:
            error = float(np.interp(c.break_even, c.reach, c.error))
            label = f"Pays from {c.break_even:.2g} on"
            ax.plot(c.break_even, error, "D", color=DECISION_STYLE[Decision.KEPT][0], label=label)
        ax.set(xlabel="Reach", ylabel=f"Expected {c.unit}")
        ax.legend()
        return self


class MarginDisplay(_Display):
    """The number that decides about each feature: its margin, and the price beside it."""

    def plot(self, ax: Axes | None = None, *, max_features: int = 20) -> Self:
        """Draw the ``max_features`` features whose decision matters most."""
        features = [f for f in self._most_important(max_features) if math.isfinite(f.margin)]
        ax = self._on(ax)
        rows = np.arange(len(features))
        for decision, (colour, _) in DECISION_STYLE.items():
            group = [i for i, f in enumerate(features) if f.decision is decision]
            if group:
                widths = [100 * features[i].margin for i in group]
                ax.barh(rows[group], widths, 0.6, color=colour, label=decision.value)
        prices = [100 * f.price for f in features]
        ax.plot(prices, rows, "|", color="black", markersize=12, label="price if nothing shifts")
        ax.set_yticks(rows, [_plain(f.label) for f in features])
        ax.invert_yaxis()
        ax.set_xscale("symlog", linthresh=5.0)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("Margin: more error were the decision the other way (%)")
        ax.legend()
        return self

    def _most_important(self, max_features: int) -> tuple[Feature, ...]:
        _check_count(max_features)
        return by_importance(self.summary.features)[:max_features]


class CoefficientDisplay(_Display):
    """Coefficients in each environment, per standard deviation, with 95 % intervals."""

    def plot(self, ax: Axes | None = None, *, max_features: int = 20, target: Any = None) -> Self:
        """Draw the ``max_features`` most important columns.

        ``target`` chooses the class whose log-odds are drawn where there are several; the
        first by default.
        """
        ax = self._on(ax)
        chosen = self._chosen(target)
        features = self._important_columns(max_features)
        position = [f.position for f in features]
        rows = np.arange(len(features))
        K = len(self.summary.environments)
        for k, e in enumerate(self.summary.environments):
            ax.errorbar(
                chosen.effect[k, position],
                rows + 0.5 * ((k + 0.5) / K - 0.5),
                xerr=1.96 * chosen.effect_error[k, position],
                fmt=MARKERS[k % len(MARKERS)],
                color=COLOURS[k % len(COLOURS)],
                label=e.label,
            )
        ax.axvline(0, color="0.5", linewidth=0.8, zorder=0)
        ax.set_yticks(rows, [_plain(f.label) for f in features])
        ax.invert_yaxis()
        what = (
            "predicted value" if chosen.target is None else f"log-odds of {_plain(chosen.target)}"
        )
        if self.summary.task == "classification" and chosen.target is None:
            what = "log-odds"
        ax.set_xlabel(f"Change in {what} per standard deviation")
        ax.legend()
        return self

    def _chosen(self, target: Any) -> Any:
        sets = self.summary.coefficients
        if target is None:
            return sets[0]
        for candidate in sets:
            if candidate.target == str(target):
                return candidate
        known = [candidate.target for candidate in sets if candidate.target is not None]
        raise ValueError(f"target must be one of {known} or None; got {target!r}.")


class RiskDisplay(_Display):
    """Error in each environment: plain ERM against the model."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw two bars an environment."""
        ax = self._on(ax)
        environments = self.summary.environments
        rows = np.arange(len(environments))
        erm = [e.risk_erm for e in environments]
        ax.barh(rows - 0.2, erm, 0.38, color=ERM_COLOUR, label="Plain model (ERM)")
        hrm = [e.risk for e in environments]
        ax.barh(rows + 0.2, hrm, 0.38, color=HRM_COLOUR, label="This model")
        ax.set_yticks(rows, [f"{e.label} ({e.share:.0%})" for e in environments])
        ax.invert_yaxis()
        ax.set_xlabel(self.summary.risk_name)
        ax.legend()
        return self


class EnvironmentDisplay(_Display):
    """The environments by size, and by one feature."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        data: tuple[Any, Any] | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw a fitted model; with ``data`` = (X, y), a feature is drawn as histograms."""
        return cls(summarize(estimator, data)).plot(ax=ax, **options)

    def plot(self, ax: Axes | None = None, *, feature: str | int | None = None) -> Self:
        """Draw the share of each environment, or with ``feature`` how it is spread in each.

        ``feature`` is a name or a position.
        """
        ax = self._on(ax)
        if feature is None:
            self._shares(ax)
        else:
            self._feature(ax, self._find(feature))
        return self

    def _shares(self, ax: Axes) -> None:
        environments = self.summary.environments
        colours = [COLOURS[k % len(COLOURS)] for k in range(len(environments))]
        ax.barh(range(len(environments)), [100 * e.share for e in environments], color=colours)
        ax.set_yticks(range(len(environments)), [e.label for e in environments])
        ax.invert_yaxis()
        ax.set_xlabel("Share of rows (%)")

    def _feature(self, ax: Axes, f: Feature) -> None:
        spread = self.summary.spreads[f.position]
        for k, e in enumerate(self.summary.environments):
            colour = COLOURS[k % len(COLOURS)]
            if spread.shares is None:
                mean, sd = spread.mean[k], spread.sd[k]
                marker = MARKERS[k % len(MARKERS)]
                ax.errorbar(mean, k, xerr=sd, fmt=marker, color=colour, capsize=4)
            elif spread.values is not None:
                width = 0.8 / len(self.summary.environments)
                at = np.arange(len(spread.values)) + width * (k + 0.5) - 0.4
                ax.bar(at, 100 * spread.shares[k], width, color=colour, label=e.label)
            else:
                ax.stairs(100 * spread.shares[k], spread.edges, color=colour, label=e.label)
        ax.set_xlabel(_plain(f.label))
        self._label_feature_axes(ax, spread)

    def _label_feature_axes(self, ax: Axes, spread: Any) -> None:
        if spread.shares is None:
            environments = self.summary.environments
            ax.set_yticks(range(len(environments)), [e.label for e in environments])
            ax.invert_yaxis()
            return
        if spread.values is not None:
            ax.set_xticks(range(len(spread.values)), [f"{v:g}" for v in spread.values])
        ax.set_ylabel("Share of the environment's rows (%)")
        ax.legend()

    def _find(self, feature: str | int) -> Feature:
        for f in self.summary.columns:
            if feature in (f.position, f.name, f.label):
                return f
        raise ValueError(
            f"feature must be the name or position of one of {len(self.summary.columns)} "
            f"features; got {feature!r}."
        )


class DistanceDisplay(_Display):
    """Distances between the environments' linear predictions."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the matrix with its numbers."""
        ax = self._on(ax)
        distance = self.summary.distance
        ax.imshow(distance, cmap="Blues", vmin=0)
        half = 0.5 * np.nanmax(distance, initial=0.0)
        for (k, other), value in np.ndenumerate(distance):
            colour = "white" if value > half else "black"
            ax.text(other, k, f"{value:.2f}", ha="center", va="center", color=colour)
        labels = [e.label for e in self.summary.environments]
        ax.set_xticks(range(len(labels)), labels)
        ax.set_yticks(range(len(labels)), labels)
        unit = "SD of the target" if self.summary.task == "regression" else "log-odds"
        ax.set_title(f"Distance between environments ({unit})")
        return self


class SearchDisplay(_Display):
    """One number of the search at each step, the chosen step marked."""

    def plot(self, ax: Axes | None = None, *, quantity: str = "score") -> Self:
        """Draw ``quantity``: ``"score"``, what each step was judged by, or ``"log_likelihood"``."""
        if quantity not in ("score", "log_likelihood"):
            raise ValueError(f"quantity must be 'score' or 'log_likelihood'; got {quantity!r}.")
        ax = self._on(ax)
        steps = self.summary.steps
        numbers, values = [s.number for s in steps], [getattr(s, quantity) for s in steps]
        ax.plot(numbers, values, "o-", color=HRM_COLOUR)
        chosen = [i for i, s in enumerate(steps) if s.chosen]
        ax.plot(
            [numbers[i] for i in chosen],
            [values[i] for i in chosen],
            "D",
            color=DECISION_STYLE[Decision.DROPPED][0],
            label="chosen",
        )
        name = next((s.score_name for s in steps), "Score")
        ax.set(xlabel="Step", ylabel=name if quantity == "score" else "Log-likelihood")
        ax.locator_params(axis="x", integer=True)
        if chosen:
            ax.legend()
        return self


def _check_count(max_features: int) -> None:
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1; got {max_features}.")


def _plain(label: str) -> str:
    """Keep matplotlib from reading a column name as mathematics."""
    return label.replace("$", r"\$")
