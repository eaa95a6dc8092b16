"""Just enough SVG: escaped elements, scales with ticks, and marks that differ in shape.

Positions across the page are percentages and positions down it are pixels, so a picture fills
whatever width it is given while its text keeps its size. Colours come from classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup, escape

# Centred on the origin, of about the same area.
CIRCLE = "M-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0z"
SQUARE = "M-4.1-4.1h8.2v8.2h-8.2z"
TRIANGLE = "M0 5.6L5.4-4.2H-5.4z"
UPWARD = "M0-5L5 3H-5z"  # beyond the edge


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One element: children and attribute values are escaped unless already markup.

    A trailing underscore in an attribute's name is dropped (``class_``), others become hyphens;
    None leaves the attribute out.
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _compact(value))
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, inside)


def _compact(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def across(fraction: float) -> str:
    """Return a position across the picture, as a percentage."""
    return f"{_compact(100.0 * fraction)}%"


def mark(x: float, y: float, shape: str, class_: str, title: str | None = None) -> Markup:
    """Return a small shape at fraction ``x`` across and pixel ``y`` down, with a hover title."""
    body = element("path", element("title", title) if title else "", d=shape)
    return element("svg", body, x=across(x), y=float(y), class_=f"mark {class_}")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a line between fractions across and pixels down."""
    return element("line", x1=across(x1), y1=float(y1), x2=across(x2), y2=float(y2), class_=class_)


def text(x: float, y: float, content: object, class_: str) -> Markup:
    """Return text; its anchor is a matter of its class."""
    return element("text", content, x=across(x), y=float(y), class_=class_)


@dataclass(frozen=True)
class Scale:
    """From values to fractions of the picture."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        """Return the fraction, clipped to the picture."""
        span = self.high - self.low
        if not 0 < span < math.inf:
            return 0.5
        return (min(max(value, self.low), self.high) - self.low) / span

    def ticks(self, count: int = 6) -> tuple[float, ...]:
        """Round values inside the scale, at most about ``count``."""
        # No ticks between numbers too close to count in, or too far apart to subtract.
        if not 1e-290 < self.high - self.low < math.inf:
            return (self.low,)
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        digits = 1 - math.floor(math.log10(step))  # 3 * 0.1 is not 0.3 until it is rounded
        return tuple(round(i * step, digits) for i in range(first, last + 1))
