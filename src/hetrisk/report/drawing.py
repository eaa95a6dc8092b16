"""Pictures as SVG for the page: positions across are percentages, positions down are pixels.

Lines and bands lie in a nested picture that is stretched to the width it is given; their strokes
and all text are not. Colours come from classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from hetrisk.report.figures import CHOSEN, Picture, Series
from hetrisk.report.labels import tick
from hetrisk.report.names import CONSTANT, PLAIN
from hetrisk.report.svg import (
    CIRCLE,
    SQUARE,
    TRIANGLE,
    UPWARD,
    Scale,
    element,
    line,
    mark,
    text,
)

HEIGHT = 280.0
SHAPE = {CHOSEN: CIRCLE, PLAIN: SQUARE, CONSTANT: TRIANGLE}
LETTER = 7.2  # pixels of a letter below the picture
WIDE, NARROW = 900.0, 290.0  # pixels of a picture on a desk, and on a telephone


def draw(p: Picture) -> Markup:
    """Return a picture as SVG."""
    x, y = _scales(p)
    guides = [part for at, label in p.guides for part in _upright(x(at), label)]
    return element(
        "svg",
        *_axes(p, x, y),
        *guides,
        *(part for series in p.series for part in _series(series, x, y)),
        class_="plane",
        width="100%",
        height=HEIGHT,
        role="img",
        aria_label=p.spoken or p.title,
    )


def key(p: Picture) -> Markup:
    """Return the key of a picture: a mark and a name for each of its models."""
    names = {s.role: s.name for s in reversed(p.series)}
    entries = [
        element("li", _swatch(role), " ", element("bdi", name))
        for role, name in sorted(names.items(), key=lambda entry: list(SHAPE).index(entry[0]))
    ]
    return element("ul", *entries, class_="key") if len(entries) > 1 else Markup("")


def _swatch(role: str) -> Markup:
    return element(
        "svg",
        element("path", d=SHAPE[role]),
        class_=f"mark {role}",
        width=14,
        height=14,
        viewBox="-7 -7 14 14",
        aria_hidden="true",
    )


def _scales(p: Picture) -> tuple[Scale, Scale]:
    (left, right), (low, high) = p.span("x"), p.span("y")
    room = 0.5 if p.ticks else 0.02 * (right - left)
    above = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    bottom = low if p.from_zero and low == 0 else low - above
    return Scale(left - room, right + room), Scale(bottom, high + above)


def _axes(p: Picture, x: Scale, y: Scale) -> list[Markup]:
    upward = [
        part
        for t in y.ticks(5)
        for part in (
            line(0, _down(y, t), 1, _down(y, t), "grid"),
            text(0, _down(y, t) + 4, tick(t), "y"),
        )
    ]
    extra = [line(0, _down(y, 0.0), 1, _down(y, 0.0), "zero")] if p.zero else []
    if p.diagonal:
        extra.append(line(x(0.0), _down(y, 0.0), x(1.0), _down(y, 1.0), "zero"))
    titles = [
        text(1, HEIGHT + 40, f"{p.x_label} →", "axis end"),
        text(0, -26, f"↑ {p.y_label}", "axis"),
    ]
    return [*upward, *_along(p, x), *extra, *titles]


def _along(p: Picture, x: Scale) -> list[Markup]:
    if not p.ticks:
        return [
            part
            for t in x.ticks(6)
            for part in (
                line(x(t), 0, x(t), HEIGHT, "grid"),
                text(x(t), HEIGHT + 18, tick(t), "x"),
            )
        ]
    wide, narrow = (_apart(p.ticks, x, width) for width in (WIDE, NARROW))
    labels = []
    for i, (at, label) in enumerate(p.ticks):
        if i in wide:
            last = i == len(p.ticks) - 1  # ends with the picture
            class_ = "x" if i in narrow else "x wide"
            place = (1.0, f"{class_} last") if last else (x(at), class_)
            labels.append(text(place[0], HEIGHT + 18, label, place[1]))
    return labels


def _apart(ticks: Sequence[tuple[float, str]], x: Scale, width: float) -> set[int]:
    """Labels that do not touch, from the last one backwards: what is to come is named."""
    kept, free = set(), math.inf
    for i in range(len(ticks) - 1, -1, -1):
        at, label = ticks[i]
        half = LETTER * (len(label) + 1) / 2
        middle = min(width * x(at), width - half)
        if middle + half <= free:
            kept.add(i)
            free = middle - half
    return kept


def _down(y: Scale, value: float) -> float:
    return HEIGHT * (1 - y(value))


def _upright(at: float, label: str) -> list[Markup]:
    side = "after" if at < 0.5 else "before"
    return [line(at, 0, at, HEIGHT, "asked"), text(at, -8, label, f"told {side}")]


def _series(s: Series, x: Scale, y: Scale) -> list[Markup]:
    drawn = [_stretched(s, x, y)] if s.joined and len(s.x) > 1 else []
    if s.lower and (not s.joined or len(s.x) == 1):
        drawn += [
            line(x(a), _down(y, low), x(a), _down(y, high), f"interval {s.role}")
            for a, low, high in zip(s.x, s.lower, s.upper, strict=True)
            if math.isfinite(a + low + high)
        ]
    titles = s.titles or ("",) * len(s.x)
    return drawn + [
        mark(x(a), _down(y, v), SHAPE[s.role] if v <= y.high else UPWARD, s.role, title or None)
        for a, v, title in zip(s.x, s.y, titles, strict=True)
        if math.isfinite(v) and (s.titles or not s.joined)
    ]


def _stretched(s: Series, x: Scale, y: Scale) -> Markup:
    """A line and its band, in a picture of its own that is stretched to the width."""
    at, value = np.asarray(s.x), np.asarray(s.y)
    parts = []
    if s.lower:
        band = _corners(at, np.asarray(s.lower), x, y)
        back = _corners(at[::-1], np.asarray(s.upper)[::-1], x, y)
        parts.append(element("polygon", points=f"{band} {back}", class_=f"band {s.role}"))
    parts.append(element("polyline", points=_corners(at, value, x, y), class_=f"curve {s.role}"))
    return element(
        "svg",
        *parts,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height=HEIGHT,
    )


def _corners(at: np.ndarray, value: np.ndarray, x: Scale, y: Scale) -> str:
    return " ".join(
        f"{100 * x(float(a)):.2f},{100 * (1 - y(float(v))):.2f}"
        for a, v in zip(at, value, strict=True)
        if math.isfinite(v)
    )
