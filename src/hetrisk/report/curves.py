"""The pictures with two axes: the reach curve, and predictions against outcomes.

As in `hetrisk.report.pictures`, positions across are percentages and positions down are pixels;
lines and bands lie in a nested picture that is stretched to the width, their strokes are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from markupsafe import Markup

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.estimators.quality import Quality
from hetrisk.report.labels import number, percent, tick
from hetrisk.report.summary import Curve
from hetrisk.report.svg import SHAPES, Scale, element, line, mark, picture, text

CURVE_HEIGHT = 300.0
QUALITY_HEIGHT = 260.0
MOST_BAND = 0.6  # of the height of the lines: a band that goes further is cut by the picture
APART = 18.0  # pixels between the names of two lines
THIS, PLAIN = "This model", "Plain model"


def reach_curve(c: Curve, position: float | None = None, same: bool = False) -> Markup:
    """Expected error against reach: two lines with their bands, and where they are asked.

    Parameters
    ----------
    c : the curve.
    position : reach at which the world was found to be, marked if given.
    same : whether this model is the plain one: then there is one line.
    """
    x = Scale(0.0, _furthest(c, position))
    y = _error_scale(c, np.append(c.reach[c.reach < x.high], x.high), same)
    lines = [("erm", c.error_erm, c.low_erm, c.high_erm)]
    if not same:
        lines.append(("hrm", c.error, c.low, c.high))
    drawn = [_stretched(c.reach, v, low, high, x, y, kind) for kind, v, low, high in lines]
    return picture(
        _axes(x, y, CURVE_HEIGHT, "Reach: how far relations move →", f"↑ Expected {c.unit}"),
        *drawn,
        *_asked(c, x, position),
        *_break_even(c, x, y, same),
        *_names(c, x, y, same),
        height=CURVE_HEIGHT,
        label=_spoken(c, same),
        class_="plane",
    )


def _furthest(c: Curve, position: float | None) -> float:
    """Twice the reach asked for, and a little past what else is marked, within the curve."""
    wanted = [2.0 * c.asked, 1.0, *(1.2 * v for v in (c.break_even, position or 0.0))]
    return min(max(v for v in wanted if math.isfinite(v)), float(c.reach[-1])) or 1.0


def _error_scale(c: Curve, seen: FloatArray, same: bool) -> Scale:
    """Room for the lines, and for their bands as far as these do not dwarf them."""

    def ends(curves: list[FloatArray]) -> tuple[float, float] | None:
        values = np.concatenate([np.interp(seen, c.reach, v) for v in curves])
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if len(values) else None

    lines = ends([c.error_erm] if same else [c.error_erm, c.error])
    bands = ends([c.low_erm, c.high_erm] if same else [c.low_erm, c.high_erm, c.low, c.high])
    if lines is None:
        return Scale(0.0, 1.0)
    low, high = lines
    if bands is not None:
        most = MOST_BAND * max(high - low, 0.1 * abs(high))
        low, high = max(min(low, bands[0]), low - most), min(max(high, bands[1]), high + most)
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return Scale(max(low - room, 0.0), high + room)


def _stretched(
    reach: FloatArray,
    value: FloatArray,
    low: FloatArray,
    high: FloatArray,
    x: Scale,
    y: Scale,
    kind: str,
) -> Markup:
    """A line and its band; both end where the scale does."""
    # Cut off where it leaves the picture, not at the next reach of the grid.
    leaves = [_crossing(reach, v, end) for v in (value, low, high) for end in (y.low, y.high)]
    grid = np.unique(np.concatenate([reach, [x.high], *leaves]))
    grid = grid[grid <= x.high]

    def corners(values: FloatArray, at: FloatArray) -> str:
        along = np.interp(at, reach, values)
        return " ".join(
            f"{100 * x(float(k)):.2f},{100 * (1 - y(float(v))):.2f}"
            for k, v in zip(at, along, strict=True)
            if math.isfinite(v)
        )

    band = f"{corners(low, grid)} {corners(high, grid[::-1])}"
    return element(
        "svg",
        element("polygon", points=band, class_=f"band {kind}"),
        element("polyline", points=corners(value, grid), class_=f"curve {kind}"),
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height=CURVE_HEIGHT,
    )


def _crossing(reach: FloatArray, values: FloatArray, level: float) -> FloatArray:
    """Reaches at which a line between its points crosses a level."""
    finite = np.isfinite(values)
    reach, above = reach[finite], values[finite] - level
    at = np.flatnonzero(np.diff(above > 0.0))
    share = above[at] / (above[at] - above[at + 1])
    crossing: FloatArray = reach[at] + share * (reach[at + 1] - reach[at])
    return crossing


def _axes(x: Scale, y: Scale, height: float, across: str, up: str) -> Markup:
    along = [
        line(x(t), 0, x(t), height, "grid") + text(x(t), height + 18, tick(t), "x")
        for t in x.ticks(6)
    ]
    upward = [
        line(0, height * (1 - y(t)), 1, height * (1 - y(t)), "grid")
        + text(0, height * (1 - y(t)) + 4, tick(t), "y")
        for t in y.ticks(5)
    ]
    titles = (text(1, height + 38, across, "axis end"), text(0, -26, up, "axis"))
    return Markup("").join([*along, *upward, *titles])


def _asked(c: Curve, x: Scale, position: float | None) -> list[Markup]:
    drawn = _upright(x(c.asked), f"asked for: {tick(c.asked)}", "asked", -8)
    if position is not None:
        drawn += _upright(x(position), f"the world now: {tick(round(position, 2))}", "now", 14)
    return drawn


def _upright(at: float, label: str, class_: str, down: float) -> list[Markup]:
    """A line from top to bottom and its name, on the side where there is room."""
    side = "after" if at < 0.5 else "before"
    return [
        line(at, 0, at, CURVE_HEIGHT, class_),
        text(at, down, label, f"told {side}"),
    ]


def _break_even(c: Curve, x: Scale, y: Scale, same: bool) -> list[Markup]:
    if same or not 0 < c.break_even <= x.high:
        return []
    at, error = x(c.break_even), float(np.interp(c.break_even, c.reach, c.error_erm))
    label = f"pays from {number(c.break_even, 2)} on"
    side = "after" if at < 0.6 else "before"
    return [
        line(at, CURVE_HEIGHT * (1 - y(error)), at, CURVE_HEIGHT, "even"),
        mark(at, CURVE_HEIGHT * (1 - y(error)), SHAPES[2], "even", label),
        text(at, CURVE_HEIGHT - 8, label, f"told {side}"),
    ]


def _names(c: Curve, x: Scale, y: Scale, same: bool) -> list[Markup]:
    """Names of the lines at their right ends, moved apart where these are close."""
    plain = CURVE_HEIGHT * (1 - y(float(np.interp(x.high, c.reach, c.error_erm)))) - 8
    if same:
        return [text(1, max(plain, 12.0), f"{PLAIN} (this one)", "line-name erm")]
    this = CURVE_HEIGHT * (1 - y(float(np.interp(x.high, c.reach, c.error)))) - 8
    if abs(this - plain) < APART:
        this += math.copysign(APART + 8, this - plain)
    return [
        text(1, max(plain, 12.0), PLAIN, "line-name erm"),
        text(1, min(max(this, 12.0), CURVE_HEIGHT - 26), THIS, "line-name hrm"),
    ]


def _spoken(c: Curve, same: bool) -> str:
    start, end = c.error_erm[0], float(np.interp(c.asked, c.reach, c.error_erm))
    sentence = (
        f"Expected {c.unit} against reach. Plain model: {number(float(start))} at reach 0, "
        f"{number(end)} at reach {tick(c.asked)}."
    )
    if same:
        return sentence
    this = float(np.interp(c.asked, c.reach, c.error))
    return f"{sentence} This model: {number(float(c.error[0]))} and {number(this)}."


def outcomes(q: Quality) -> Markup:
    """Labels: share that came true against probability. Numbers: residuals against prediction."""
    return _residuals(q) if q.outcome is None else _calibration(q)


def _calibration(q: Quality) -> Markup:
    unit = Scale(0.0, 1.0)
    H = QUALITY_HEIGHT
    axes = _axes(unit, unit, H, f"Probability given to {q.outcome} →", "↑ Share that came true")
    diagonal = line(0, H, 1, 0, "zero")
    points = _points(q.predicted, q.observed, q.low, q.high, q.count, unit, unit)
    label = "Calibration: " + _pairs(q.predicted, q.observed, percent)
    return picture(axes, diagonal, *points, height=H, label=label, class_="plane")


def _residuals(q: Quality) -> Markup:
    H = QUALITY_HEIGHT
    residual, low, high = (v - q.predicted for v in (q.observed, q.low, q.high))
    x = _room(q.predicted)
    y = _room(np.concatenate([low, high, [0.0]]))
    axes = _axes(x, y, H, "Prediction →", "↑ Outcome less prediction")
    zero = line(0, H * (1 - y(0.0)), 1, H * (1 - y(0.0)), "zero")
    points = _points(q.predicted, residual, low, high, q.count, x, y)
    label = "Mean residual by prediction: " + _pairs(q.predicted, residual, number)
    return picture(axes, zero, *points, height=H, label=label, class_="plane")


def _room(values: FloatArray) -> Scale:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Scale(0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(low - room, high + room)


def _points(
    at: FloatArray,
    value: FloatArray,
    low: FloatArray,
    high: FloatArray,
    count: FloatArray,
    x: Scale,
    y: Scale,
) -> list[Markup]:
    drawn = []
    for a, v, b, t, n in zip(at, value, low, high, count, strict=True):
        if not (math.isfinite(a) and math.isfinite(v)):
            continue
        top, bottom = (QUALITY_HEIGHT * (1 - y(float(end))) for end in (t, b))
        drawn.append(line(x(float(a)), top, x(float(a)), bottom, "interval hrm"))
        label = f"{number(float(a))}: {number(float(v))}, {int(n):,} rows"
        drawn.append(
            mark(x(float(a)), QUALITY_HEIGHT * (1 - y(float(v))), SHAPES[0], "step", label)
        )
    return drawn


def _pairs(a: FloatArray, b: FloatArray, form: Callable[[float], str]) -> str:
    return "; ".join(f"{form(float(x))}: {form(float(y))}" for x, y in zip(a, b, strict=True))
