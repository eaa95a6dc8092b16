"""The pictures of the page, each a function of the summary, drawn as SVG.

Most are strips: a picture one table row high, so that names and numbers stay text beside it,
can be read out, sorted and copied, and keep their size on a narrow screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from hetrisk.report.labels import number, percent, tick
from hetrisk.report.summary import Coefficients, Decision, Environment, Feature, Spread
from hetrisk.report.svg import (
    LEFTWARD,
    RIGHTWARD,
    SHAPES,
    Scale,
    bar,
    element,
    line,
    mark,
    picture,
    text,
)

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


# --- the number that decides -------------------------------------------------------------


def margin_scale(features: Sequence[Feature]) -> Scale:
    """One scale for all margins: straight near zero, logarithmic far from it."""
    finite = [f.margin for f in features if math.isfinite(f.margin)]
    return Scale(min([0.0, *finite]), max([0.05, *finite]), 0.05)


def margin(f: Feature, scale: Scale) -> Markup:
    """A bar as long as the feature's margin."""
    label = f"{f.label}: {f.decision.value}, margin {percent(f.margin, True)}"
    value = max(min(_finite(f.margin), scale.high), scale.low)
    ends = sorted([scale(0.0), scale(value)])
    return picture(
        line(scale(0.0), 0, scale(0.0), 16, "zero"),
        bar(ends[0], ends[1], 3, 10, f"bar {slug(f.decision)}", label),
        height=16,
        label=label,
        class_="strip",
    )


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


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
    label = f"{e.label}: mean {number(spread.mean[k])}, standard deviation {number(spread.sd[k])}"
    drawn = _mean_bar if spread.shares is None else _histogram
    return picture(*drawn(k, spread, scale, label), height=44, label=label, class_="strip")


def _mean_bar(k: int, spread: Spread, scale: Scale, label: str) -> list[Markup]:
    mean, sd = float(spread.mean[k]), float(spread.sd[k])
    if not math.isfinite(mean):
        return []
    return [
        line(0, 22, 1, 22, "grid"),
        bar(scale(mean - sd), scale(mean + sd), 16, 12, f"bar soft {colour(k)}", label),
        mark(scale(mean), 22, shape(k), colour(k), label),
    ]


def _histogram(k: int, spread: Spread, scale: Scale, label: str) -> list[Markup]:
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
        element("path", element("title", label), d=outline, class_=f"bar {colour(k)}"),
        viewBox=f"0 0 {spread.shares.shape[1]} 38",
        preserveAspectRatio="none",
        y=4,
        width="100%",
        height=38,
    )
    return [bars, line(0, 42, 1, 42, "zero")]
