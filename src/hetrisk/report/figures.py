"""The pictures, described: SVG on the page and matplotlib in a notebook draw from these alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hetrisk.core.result import Expected, Forecast, Horizon, Ranked, ReachLine, Tested
from hetrisk.report.errors import by_environment, tested_horizons
from hetrisk.report.labels import brief, number, percent, tick, upper_first
from hetrisk.report.names import CONSTANT, PLAIN, called, constant, untested
from hetrisk.report.summary import Quality
from hetrisk.tables.errors import counted

CHOSEN = "chosen"  # as records call it beside "plain" and "constant"
LABEL = 22  # characters of an environment's name below the picture
CAP = 2.5  # times the largest error of chosen and constant: what errs more is drawn at the edge
PERIOD = re.compile(r"([0-9][0-9A-Za-z-]*?)(?:-01)?(?: to .+)?$")
Values = tuple[float, ...]


@dataclass(frozen=True)
class Series:
    """Points with one meaning.

    Attributes
    ----------
    name : in the key.
    role : "chosen", "plain" or "constant": how it is dressed.
    x, y : of the points.
    lower, upper : of a band, or ().
    joined : whether a line joins them.
    titles : one a point, or ().
    """

    name: str
    role: str
    x: Values
    y: Values
    lower: Values = ()
    upper: Values = ()
    joined: bool = True
    titles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A picture with two axes.

    Attributes
    ----------
    slug, title : its name, for files and for people.
    x_label, y_label : of the axes.
    ticks : (place, label) along x; () for those of a scale of numbers.
    series : what is drawn.
    guides : (place, label) of upright lines.
    zero, diagonal : whether the line y = 0, or y = x, is drawn.
    from_zero : whether the y axis begins at 0.
    spoken : the same in a sentence.
    """

    slug: str
    title: str
    x_label: str
    y_label: str
    ticks: tuple[tuple[float, str], ...]
    series: tuple[Series, ...]
    guides: tuple[tuple[float, str], ...] = ()
    zero: bool = False
    diagonal: bool = False
    from_zero: bool = True
    spoken: str = ""

    def span(self, axis: str) -> tuple[float, float]:
        """Return the least and the largest finite value along "x" or "y"."""
        values = [v for s in self.series for v in (s.x if axis == "x" else s.y)]
        if axis == "y":
            values += [v for s in self.series for v in _seen(s, values)]
            values += [0.0] * (self.zero or self.from_zero)
        else:
            values += [at for at, _ in self.guides]
        finite = [v for v in values if math.isfinite(v)]
        if axis == "y":
            finite = [v for v in finite if v <= self.cap]
        return (min(finite), max(finite)) if finite else (0.0, 1.0)

    @property
    def cap(self) -> float:
        """Errors above this are drawn at the edge: one that explodes would hide all others."""
        kept = [v for s in self.series if s.role != PLAIN for v in s.y if math.isfinite(v)]
        return CAP * max(kept) if self.from_zero and kept else math.inf


def _seen(series: Series, values: Sequence[float]) -> Iterable[float]:
    """Ends of bands, as far as they do not dwarf the points."""
    finite = [abs(v) for v in values if math.isfinite(v)]
    most = 2.0 * max(finite, default=math.inf) if series.joined else math.inf
    return (v for v in (*series.lower, *series.upper) if abs(v) <= most)


def models(ranking: Sequence[Ranked], unit: str) -> list[tuple[str, str, str]]:
    """Return (candidate, role, name) of the models a picture shows; each model once."""
    chosen = next(line.candidate for line in ranking if line.chosen)
    there = {line.candidate for line in ranking}
    shown = [(CONSTANT, CONSTANT, upper_first(constant(unit)))] if CONSTANT in there else []
    shown += [(PLAIN, PLAIN, "Plain")] if PLAIN in there else []
    shown = [line for line in shown if line[0] != chosen]
    mine = "Average" if " + " in chosen else upper_first(called(chosen, unit).removeprefix("the "))
    return [*shown, (chosen, CHOSEN, mine)]


# --- the backtest, and the forecast to its right ------------------------------------------


def backtest_picture(
    ranking: Sequence[Ranked], backtest: Sequence[Tested], forecast: Forecast
) -> Picture | None:
    """Error by period or site left out, and what to expect to the right; None without any."""
    if untested(forecast) or not backtest:
        return None
    timed = any(line.cut for line in backtest)
    shown = models(ranking, forecast.unit)
    errors = {name: by_environment(backtest, name, forecast.unit) for name, _, _ in shown}
    places = _ordered(errors[shown[-1][0]], timed)
    ahead = tested_horizons(forecast, backtest) or (_new(forecast),)
    start = len(places) - 1
    ticks = [(float(i), _short(place)) for i, place in enumerate(places)]
    ticks += [(float(start + k), _ahead(h)) for k, h in enumerate(ahead, start=1)]
    series = []
    for name, role, label in shown:
        tested = [errors[name].get(place, math.nan) for place in places]
        titles = tuple(f"{label}, {p}: {number(v)}" for p, v in zip(places, tested, strict=True))
        at = tuple(map(float, range(len(places))))
        series.append(Series(label, role, at, tuple(tested), joined=timed, titles=titles))
        series.append(_expected(label, role, start, ahead))
    chosen = next(line for line in ranking if line.chosen)
    return Picture(
        "backtest",
        "Error where it was not trained",
        "Period predicted from earlier ones" if timed else "Environment predicted from the others",
        forecast.unit,
        tuple(ticks),
        tuple(series),
        guides=((start + 0.5, "to expect"),),
        spoken=(
            f"{forecast.unit} of {len(shown)} models in {counted(len(places), 'environment')} "
            f"left out. {shown[-1][2]}: {number(chosen.mean)} on average; expected "
            f"{number(forecast.lower)} to {number(forecast.upper)} in one not seen."
        ),
    )


def backtest_numbers(
    ranking: Sequence[Ranked], backtest: Sequence[Tested], unit: str
) -> tuple[list[str], list[tuple[str, list[float]]]]:
    """Return the numbers behind `backtest_picture`: names of models, and a line an environment."""
    shown = models(ranking, unit)[::-1]
    errors = [by_environment(backtest, name, unit) for name, _, _ in shown]
    places = _ordered(errors[0], any(line.cut for line in backtest))
    lines = [(place, [found.get(place, math.nan) for found in errors]) for place in places]
    return [label for _, _, label in shown], lines


def forecast_picture(ranking: Sequence[Ranked], forecast: Forecast) -> Picture | None:
    """What to expect in environments not seen, by periods ahead; None if none was left out."""
    if untested(forecast):
        return None
    ahead = forecast.by_horizon or (_new(forecast),)
    return Picture(
        "forecast",
        "Error to expect",
        "Environments not seen",
        forecast.unit,
        tuple((float(k), _ahead(h)) for k, h in enumerate(ahead, start=1)),
        tuple(
            _expected(label, role, 0, ahead) for _, role, label in models(ranking, forecast.unit)
        ),
        spoken=f"{forecast.unit} {number(forecast.lower)} to {number(forecast.upper)} to expect.",
    )


def _ahead(horizon: Horizon) -> str:
    """How far ahead, below the picture: that it lies ahead is said above."""
    return brief(horizon.label.removesuffix(" ahead"), LABEL)


def _new(forecast: Forecast) -> Horizon:
    """What to expect of one environment not seen, where there is no time."""
    own = Expected(forecast.mean, forecast.lower, forecast.upper)
    return Horizon(
        1.0, "a new one", own, forecast.plain, forecast.constant, forecast.n_environments
    )


def _short(place: str) -> str:
    """A period by its beginning, without a day that is the first; a site by its name."""
    begins = PERIOD.match(place)
    return brief(begins[1] if begins else place, LABEL)


def _expected(label: str, role: str, start: int, ahead: Sequence[Horizon]) -> Series:
    """What to expect of a model, to the right of the backtest: of the one chosen with a band."""
    there: list[Expected] = [getattr(h, role) for h in ahead]
    band = there if role == CHOSEN else []
    return Series(
        label,
        role,
        tuple(float(start + k) for k in range(1, len(ahead) + 1)),
        tuple(e.mean for e in there),
        tuple(e.lower for e in band),
        tuple(e.upper for e in band),
        titles=tuple(
            f"{label}, {h.label}: {number(e.mean)}" for h, e in zip(ahead, there, strict=True)
        ),
    )


def _ordered(errors: dict[str, float], timed: bool) -> list[str]:
    """Periods as they came; sites from the best to the worst."""
    return list(errors) if timed else sorted(errors, key=lambda place: errors[place])


# --- reach, calibration, residuals ---------------------------------------------------------


def reach_picture(
    ranking: Sequence[Ranked], curve: Sequence[ReachLine], unit: str, reach: float
) -> Picture | None:
    """Error against how far the world goes beyond what was seen; None without a curve."""
    if len(curve) < 2:
        return None
    at = tuple(line.reach for line in curve)
    shown = [
        Series(label, role, at, tuple(getattr(line, role) for line in curve))
        for _, role, label in models(ranking, unit)
    ]
    ends = "; ".join(f"{s.name}: {number(s.y[0])} to {number(s.y[-1])}" for s in shown)
    return Picture(
        "reach",
        "If the world goes further than it did",
        "Reach",
        unit,
        (),
        tuple(shown),
        guides=((reach, f"asked for: {tick(reach)}"),),
        spoken=f"{unit} from reach {tick(at[0])} to {tick(at[-1])}. {ends}.",
    )


def quality_picture(quality: Quality) -> Picture:
    """Labels: share that came true against probability. Numbers: residuals."""
    if quality.outcome:
        observed, low, high = quality.observed, quality.low, quality.high
        title, y = "Calibration", "Share that came true"
        x = f"Probability given to {brief(quality.outcome, LABEL)}"
    else:
        observed, low, high = (
            tuple(v - p for v, p in zip(values, quality.predicted, strict=True))
            for values in (quality.observed, quality.low, quality.high)
        )
        title, x, y = "Residuals", "Prediction", "Outcome less prediction"
    form = percent if quality.outcome else number
    titles = tuple(
        f"{form(p)}: {form(v)}, {counted(n, 'row')}"
        for p, v, n in zip(quality.predicted, observed, quality.count, strict=True)
    )
    points = Series(
        "This model", CHOSEN, quality.predicted, observed, low, high, joined=False, titles=titles
    )
    return Picture(
        title.lower(),
        title,
        x,
        y,
        (),
        (points,),
        zero=not quality.outcome,
        diagonal=bool(quality.outcome),
        from_zero=bool(quality.outcome),
        spoken=f"{title}: " + "; ".join(titles),
    )
