"""The pictures of the page, each a function of the summary, drawn as SVG.

Most are strips: a picture one table row high, so that names and numbers stay text beside it,
can be read out, sorted and copied, and keep their size on a narrow screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.report.labels import number, percent, tick
from hetrisk.report.summary import Coefficients, Decision, Environment, Feature, Spread, Step
from hetrisk.report.svg import (
    LEFTWARD,
    RIGHTWARD,
    SHAPES,
    Scale,
    across,
    bar,
    element,
    line,
    mark,
    picture,
    text,
)

PLANE_HEIGHT = 340.0
LINE_HEIGHT = 180.0
TITLED_POINTS = 400
DECISION_SHAPE = {
    Decision.KEPT: SHAPES[0],
    Decision.DROPPED: SHAPES[2],
    Decision.UNCERTAIN: SHAPES[3],
}
N_COLOURS = 6


def slug(decision: Decision) -> str:
    """Return the class that colours a decision."""
    return decision.name.lower()


def colour(environment: int) -> str:
    """Return the class that colours an environment; after six the colours come round again."""
    return f"e{environment % N_COLOURS}"


def shape(environment: int) -> str:
    """Return the shape of an environment, so that colour is not all that tells two apart."""
    return SHAPES[(environment + environment // N_COLOURS) % len(SHAPES)]


# --- the plane of instability against cost -------------------------------------------------


def plane(features: Sequence[Feature]) -> Markup:
    """Every feature by its instability (across) and the cost of leaving it out (up)."""
    shown = [f for f in features if not (math.isnan(f.instability) or math.isnan(f.cost))]
    x = Scale(0.0, _reach([f.instability + _finite(f.instability_error) for f in shown], 1.0), 0.2)
    lowest = min([0.0, *(f.cost for f in shown)])
    y = Scale(lowest, 1.3 * _reach([f.cost for f in shown], 0.1), 0.02)  # room for names
    # Kept features first: the few that matter most are drawn on top.
    order = sorted(shown, key=lambda f: (f.decision is not Decision.KEPT, f.instability))
    return picture(
        _plane_axes(x, y),
        *(_plane_point(f, x, y) for f in order[-TITLED_POINTS:]),
        *_plane_labels(order, x, y),
        height=PLANE_HEIGHT,
        label=f"Scatter plot of {len(shown)} features: instability across, cost of leaving the "
        "feature out upwards. The same numbers are in the table of features.",
        class_="plane",
    )


def _reach(values: Sequence[float], least: float) -> float:
    """Top of a scale: a little past the largest finite value."""
    finite = [v for v in values if math.isfinite(v)]
    return 1.15 * max([least, *finite])


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _down(y: Scale, value: float) -> float:
    return PLANE_HEIGHT * (1.0 - y(value))


def _plane_axes(x: Scale, y: Scale) -> Markup:
    across_ticks = [
        line(x(t), 0, x(t), PLANE_HEIGHT, "grid") + text(x(t), PLANE_HEIGHT + 18, tick(t), "x")
        for t in x.ticks(7)
    ]
    up_ticks = [
        line(0, _down(y, t), 1, _down(y, t), "grid" if t else "zero")
        + text(0, _down(y, t) + 4, f"{tick(100 * t)} %", "y")
        for t in y.ticks(6)
    ]
    titles = (
        text(1, PLANE_HEIGHT + 38, "Instability →", "axis end"),
        text(0, -14, "↑ Cost of leaving it out", "axis"),
    )
    return Markup("").join([*across_ticks, *up_ticks, *titles])


def _plane_point(f: Feature, x: Scale, y: Scale) -> Markup:
    height = _down(y, f.cost)
    kind = slug(f.decision)
    error = _finite(f.instability_error)
    low, high = x(f.instability - error), x(f.instability + error)
    whisker = line(low, height, high, height, f"whisker {kind}") if error else Markup("")
    spread = f" ± {number(error, 2)}" if error else ""
    title = (
        f"{f.label}: {f.decision.value}\ninstability {number(f.instability)}{spread}\n"
        f"cost of leaving it out {percent(f.cost, True)}"
    )
    return whisker + mark(x(f.instability), height, DECISION_SHAPE[f.decision], kind, title)


def _plane_labels(order: Sequence[Feature], x: Scale, y: Scale) -> list[Markup]:
    """Names beside their points where there is room: drawn for a picture of 720 pixels."""
    taken: list[tuple[float, float, float, float]] = [
        (720 * x(f.instability) - 5, _down(y, f.cost) - 5, 10.0, 10.0) for f in order
    ]
    labels: list[Markup] = []
    for f in reversed(order):
        name = f.label if len(f.label) <= 22 else f.label[:21] + "…"
        left, top = 720 * x(f.instability), _down(y, f.cost)
        width = 7.0 * len(name)
        before = left + 5 + width > 720
        box = (left - 5 - width if before else left + 5, top - 21, width, 16.0)
        if len(labels) < 40 and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            kind = f"name {slug(f.decision)}{' before' if before else ''}"
            labels.append(
                element("svg", element("text", name, class_=kind), x=across(left / 720), y=top)
            )
    return labels


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


# --- coefficients in each environment -------------------------------------------------------


def effect_scale(coefficients: Sequence[Coefficients], positions: Sequence[int]) -> Scale:
    """One scale for all rows of the dot plot, symmetric about zero.

    Coefficients far outside the rest (a column that is nearly constant in a small environment)
    do not stretch it: they are drawn as arrows at the edge.
    """
    values = np.abs(np.concatenate([c.effect[:, positions].ravel() for c in coefficients]))
    values = values[np.isfinite(values)]
    if not len(values) or values.max() == 0:
        return Scale(-1.0, 1.0)
    largest, usual = float(values.max()), float(np.quantile(values, 0.9))
    reach = 1.12 * (largest if largest <= 8 * usual or usual == 0 else 8 * usual)
    return Scale(-reach, reach)


def effect_axis(scale: Scale) -> Markup:
    """The ticks above the dot plot's rows."""
    ticks = [text(scale(t), 14, tick(t), "x") for t in scale.ticks(4)]
    return picture(*ticks, height=18, label="Scale of the effects", class_="strip axis-strip")


def effects(
    c: Coefficients, f: Feature, environments: Sequence[Environment], scale: Scale
) -> Markup:
    """One row of the dot plot: the feature's coefficient in each environment, with interval."""
    step, margin = 11.0, 9.0
    height = 2 * margin + step * (len(environments) - 1)
    grid = [line(scale(t), 0, scale(t), height, "grid" if t else "zero") for t in scale.ticks(4)]
    dots = [
        _effect(
            k, e, c.effect[k, f.position], c.effect_error[k, f.position], scale, margin + step * k
        )
        for k, e in enumerate(environments)
    ]
    spoken = "; ".join(
        f"{e.label}: {number(c.effect[k, f.position])}" for k, e in enumerate(environments)
    )
    return picture(*grid, *dots, height=height, label=f"{f.label}. {spoken}", class_="strip")


def _effect(k: int, e: Environment, value: float, error: float, scale: Scale, y: float) -> Markup:
    if not math.isfinite(value):
        return Markup("")
    half = 1.96 * _finite(error)
    title = f"{e.label}: {number(value)} ± {number(half, 2)} (95 % interval)"
    outline = shape(k)
    if not scale.low <= value <= scale.high:
        outline = RIGHTWARD if value > 0 else LEFTWARD
        title += ", beyond the scale"
    interval = line(scale(value - half), y, scale(value + half), y, f"interval {colour(k)}")
    return interval + mark(scale(value), y, outline, colour(k), title)


# --- size, risk and spread of the environments ----------------------------------------------


def share(k: int, e: Environment) -> Markup:
    """A bar as long as the environment's share of the rows."""
    title = f"{e.label}: {percent(e.share)} of the rows"
    return picture(
        bar(0, 1, 6, 10, "track", title),
        bar(0, e.share, 6, 10, f"bar {colour(k)}", title),
        height=22,
        label=title,
        class_="strip",
    )


def duel(value: float, values: Sequence[float], class_: str) -> Markup:
    """One of two bars on the first screen: a model's error where it is worst."""
    scale = Scale(0.0, max([v for v in values if math.isfinite(v)], default=0.0))
    said = number(value)
    body = bar(0, scale(_finite(value)), 4, 16, f"bar {class_}", said)
    return picture(body, height=24, label=said, class_="strip")


def risks(e: Environment, largest: float) -> Markup:
    """Two bars: plain ERM's error in the environment and the model's."""
    scale = Scale(0.0, largest)
    return picture(
        bar(0, scale(_finite(e.risk_erm)), 3, 8, "bar erm", f"Ordinary: {number(e.risk_erm)}"),
        bar(0, scale(_finite(e.risk)), 13, 8, "bar hrm", f"This model: {number(e.risk)}"),
        height=24,
        label=f"{e.label}: ordinary {number(e.risk_erm)}, this model {number(e.risk)}",
        class_="strip",
    )


def spread_scale(spread: Spread) -> Scale:
    """Scale of one feature's values, shared by its environments."""
    if spread.values is not None:
        return Scale(-0.5, len(spread.values) - 0.5)  # equal room for each of the few values
    if spread.edges is not None:
        return Scale(float(spread.edges[0]), float(spread.edges[-1]))
    ends = np.concatenate([spread.mean - 2.2 * spread.sd, spread.mean + 2.2 * spread.sd])
    ends = ends[np.isfinite(ends)]
    return Scale(float(ends.min()), float(ends.max())) if len(ends) else Scale(0.0, 1.0)


def spread_axis(spread: Spread) -> Markup:
    """The ticks under one feature's rows."""
    scale = spread_scale(spread)
    if spread.values is None:
        ticks = [(t, tick(t)) for t in scale.ticks(4)]
    else:
        every = max(1, -(-len(spread.values) // 6))
        ticks = [(float(i), tick(float(v))) for i, v in enumerate(spread.values) if i % every == 0]
    marks = [text(scale(at), 14, label, "x") for at, label in ticks]
    return picture(*marks, height=18, label="Scale of the values", class_="strip axis-strip")


def spread_row(k: int, e: Environment, spread: Spread) -> Markup:
    """One environment's values: a histogram, or mean and standard deviation without the rows."""
    scale = spread_scale(spread)
    said = f"{e.label}: mean {number(spread.mean[k])}, standard deviation {number(spread.sd[k])}"
    drawn = _mean_bar if spread.shares is None else _histogram
    return picture(*drawn(k, spread, scale, said), height=44, label=said, class_="strip")


def _mean_bar(k: int, spread: Spread, scale: Scale, said: str) -> list[Markup]:
    mean, sd = float(spread.mean[k]), float(spread.sd[k])
    if not math.isfinite(mean):
        return []
    return [
        line(0, 22, 1, 22, "grid"),
        bar(scale(mean - sd), scale(mean + sd), 16, 12, f"bar soft {colour(k)}", said),
        mark(scale(mean), 22, shape(k), colour(k), said),
    ]


def _histogram(k: int, spread: Spread, scale: Scale, said: str) -> list[Markup]:
    """One outline for all bars: a page of two hundred features stays small."""
    assert spread.shares is not None
    tallest = max(float(spread.shares.max()), 1e-12)
    gap = 0.3 if spread.values is not None else 0.0
    outline = "".join(
        f"M{b + gap / 2:g} 38V{38 - 38 * p / tallest:.1f}h{1 - gap:g}V38z"
        for b, p in enumerate(spread.shares[k])
        if p > 0
    )
    bars = element(
        "svg",
        element("path", element("title", said), d=outline, class_=f"bar {colour(k)}"),
        viewBox=f"0 0 {spread.shares.shape[1]} 38",
        preserveAspectRatio="none",
        y=4,
        width="100%",
        height=38,
    )
    return [bars, line(0, 42, 1, 42, "zero")]


def heat(value: float, largest: float) -> str:
    """Return the class of a cell of the distance matrix: eight steps from none to most."""
    if not math.isfinite(value) or largest <= 0:
        return "heat-0"
    return f"heat-{round(7 * min(max(value / largest, 0.0), 1.0))}"


def largest(distance: FloatArray) -> float:
    """Return the largest finite distance, 0 if there is none."""
    finite = distance[np.isfinite(distance)]
    return float(finite.max()) if len(finite) else 0.0


# --- the search ------------------------------------------------------------------------------


def path(steps: Sequence[Step], value: Callable[[Step], float], what: str) -> Markup:
    """A line through one number of every step; the step that was chosen is marked."""
    points = [(i, value(s), s) for i, s in enumerate(steps) if math.isfinite(value(s))]
    if not points:
        return Markup("")
    values = [v for _, v, _ in points]
    room = 0.08 * (max(values) - min(values)) or max(abs(values[0]) * 0.01, 1e-9)
    y = Scale(min(values) - room, max(values) + room)
    x = Scale(-0.3, max(len(steps) - 0.7, 0.3))
    corners = " ".join(f"{100 * x(i):.2f},{100 * (1 - y(v)):.2f}" for i, v, _ in points)
    curve = element(
        "svg",
        element("polyline", points=corners, class_="curve"),
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height=LINE_HEIGHT,
    )
    marks = [_path_point(i, v, s, x, y, what) for i, v, s in points]
    label = f"{what} over {len(steps)} steps, from {number(values[0])} to {number(values[-1])}"
    return picture(
        _path_axes(steps, x, y), curve, *marks, height=LINE_HEIGHT, label=label, class_="path"
    )


def _path_axes(steps: Sequence[Step], x: Scale, y: Scale) -> Markup:
    every = max(1, -(-len(steps) // 10))
    up = [
        line(0, LINE_HEIGHT * (1 - y(t)), 1, LINE_HEIGHT * (1 - y(t)), "grid")
        + text(0, LINE_HEIGHT * (1 - y(t)) + 4, tick(t), "y")
        for t in y.ticks(4)
    ]
    along = [
        text(x(i), LINE_HEIGHT + 18, s.number, "x") for i, s in enumerate(steps) if i % every == 0
    ]
    return Markup("").join([*up, *along])


def _path_point(i: int, v: float, s: Step, x: Scale, y: Scale, what: str) -> Markup:
    kind = "chosen" if s.chosen else "step"
    title = f"Step {s.number}: {what.lower()} {number(v, 5)}{', chosen' if s.chosen else ''}"
    return mark(x(i), LINE_HEIGHT * (1 - y(v)), SHAPES[2 if s.chosen else 0], kind, title)
