"""The page: one HTML file that needs no network and holds no row of the data."""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from hetrisk import __version__, atomic
from hetrisk.core.result import Ranked
from hetrisk.report import drawing
from hetrisk.report.decision import Action
from hetrisk.report.errors import in_unit
from hetrisk.report.figures import (
    backtest_numbers,
    backtest_picture,
    quality_picture,
    reach_picture,
)
from hetrisk.report.labels import (
    brief,
    fixed,
    number,
    percent,
    probability,
    tick,
    upper_first,
)
from hetrisk.report.names import LOG_LOSS, untested
from hetrisk.report.summary import Summary
from hetrisk.tables.errors import counted

LIMIT = SimpleNamespace(rows=100, notes=40, columns=30, differences=12)
BADGE = {
    Action.USE: "this",
    Action.PLAIN: "plain",
    Action.CONSTANT: "unknown",
    Action.NO_MODEL: "unknown",
    Action.UNTESTED: "unknown",
}


def write_report(summary: Summary, path: Path) -> None:
    """Write the page of a summary to ``path``, all at once or not at all."""
    atomic.write_bytes(path, render(summary).encode("utf-8", errors="replace"))


@np.errstate(over="ignore", invalid="ignore")  # scales of numbers near the largest float
def render(summary: Summary) -> str:
    """Return the page of a summary as one self-contained HTML file."""
    origin = summary.origin
    title = f"{origin.target} from {origin.source}" if origin.source else origin.target
    page = template("page.html")
    return page.render(s=summary, title=brief(title, 200), **dress(), **_derived(summary))


def _derived(s: Summary) -> dict[str, Any]:
    """What the template needs besides the summary: pictures, choices of rows."""
    pictures = {
        "backtest": backtest_picture(s.ranking, s.backtest, s.forecast),
        "reach": reach_picture(s.ranking, s.reach_curve, s.forecast.unit, s.reach),
        "quality": None if s.quality is None else quality_picture(s.quality),
    }
    return {
        "badge": BADGE[s.decision.action],
        "pictures": pictures,
        "numbers": backtest_numbers(s.ranking, s.backtest, s.forecast.unit),
        "untested": untested(s.forecast),
        "ranking": [_errors(line, s.forecast.unit) for line in s.ranking],
        "evidence": any(math.isfinite(line.p_slope) for line in s.columns),
        "reasons": any(line.reason for line in s.columns),
        "loss": "log loss" if s.forecast.unit == LOG_LOSS else "squared error",
    }


def _errors(line: Ranked, unit: str) -> Ranked:
    """A line whose ratios are those of errors, not of losses."""
    low, high = (in_unit(v, unit) for v in (line.ratio_low, line.ratio_high))
    return replace(line, ratio=in_unit(line.ratio, unit), ratio_low=low, ratio_high=high)


# --- the machinery of every page ------------------------------------------------------------


def dress() -> dict[str, Any]:
    """Return style, script, their hashes and the version, as every page of ours wears them."""
    style, script = asset("page.css"), asset("page.js")
    return {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
        "version": __version__,
    }


@cache
def template(name: str, package: str = "hetrisk.report") -> Template:
    """Return a template from a package: all is escaped, an unknown name is an error."""
    jinja = Environment(
        loader=DictLoader({"head.html": asset("head.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.globals.update(
        draw=drawing.draw,
        key=drawing.key,
        limit=LIMIT,
        brief=brief,
        number=number,
        fixed=fixed,
        percent=percent,
        probability=probability,
        tick=tick,
        counted=counted,
        plain=_plain,
        upper_first=upper_first,
    )
    return jinja.from_string(asset(name, package))


def _plain(value: float) -> str:
    """Return a number as JavaScript reads it; empty where there is none."""
    if math.isnan(value):
        return ""
    return f"{value:.9g}" if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def asset(name: str, package: str = "hetrisk.report") -> str:
    """Return the text of a file in a package."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the source expression that allows exactly this text in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
