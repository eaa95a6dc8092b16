"""From the summary to the page: one HTML file that needs nothing beside itself."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import BaseLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from hetrisk import atomic
from hetrisk.report import pictures
from hetrisk.report.extraction import summarize
from hetrisk.report.features import DOUBTFUL_P
from hetrisk.report.labels import count_of, fixed, number, percent, probability, readable, shortened
from hetrisk.report.summary import Decision, Feature, Summary, by_concern
from hetrisk.report.summary import Environment as HiddenEnvironment

TITLE = "Stability report"
DECISIONS = (
    (Decision.KEPT, "the model uses them"),
    (Decision.DROPPED, "the model ignores them"),
    (Decision.UNCERTAIN, "the evidence is mixed"),
)
OBJECTIVE_NAME = {"gates": "Objective", "pooled": "Smallest p-value"}
OBJECTIVE_MEANING = {
    "gates": "The error the method minimises, plus its penalties for "
    "instability and for using features. Lower is better.",
    "pooled": "The smallest p-value among the features still in play. The search ends when no "
    "feature is suspicious enough to leave out.",
}
RISK_MEANING = {
    "RMSE": "the typical size of an error, in the units of the target",
    "error rate": "the share of rows given the wrong label",
}


@dataclass(frozen=True)
class Limit:
    """How much the page shows of a very wide table, so that it stays small and readable."""

    chips: int = 14
    rows: int = 500
    strips: int = 1500  # of coefficients, over all environments and classes
    effects: int = 30
    spreads: int = 600  # of values, over all environments
    panels: int = 150
    open_panels: int = 6
    steps: int = 200


LIMIT = Limit()


def render(model: Any, *, data: tuple[Any, Any] | None = None, title: str | None = None) -> str:
    """Return the report of a fitted model as one self-contained HTML page.

    Parameters
    ----------
    model : a fitted `HRMRegressor` or `HRMClassifier`, or a Pipeline ending in one.
    data : optional pair (X, y) in the columns ``model`` was fitted on; adds histograms.
    title : shown on top; any text. By default it names the target, where the model knows it.
    """
    return render_summary(summarize(model, data), title)


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    data: tuple[Any, Any] | None = None,
    title: str | None = None,
) -> Path:
    """Write the report to ``path`` and return it; see `render`.

    The page takes its place all at once: a failure leaves an existing file as it was.
    """
    atomic.write_bytes(path, render(model, data=data, title=title).encode())
    return Path(path)


@np.errstate(over="ignore", invalid="ignore")  # scales of numbers near the largest float
def render_summary(summary: Summary, title: str | None = None) -> str:
    """Return the page of a summary."""
    if title is None:
        title = TITLE if summary.origin is None else f"{TITLE}: {summary.origin.target}"
    style, script = asset("page.css"), asset("page.js")
    return template("page.html").render(
        s=summary,
        title=shortened(readable(title), 200),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        **_derived(summary),
    )


def _derived(s: Summary) -> dict[str, Any]:
    """What the template needs besides the summary: choices of rows, scales and sentences."""
    order = by_concern(s.columns)
    strips = LIMIT.strips // max(1, len(s.coefficients) * len(s.environments))
    rows = order[: min(LIMIT.effects, max(1, strips))]
    finite = [v for e in s.environments for v in (e.risk, e.risk_erm) if math.isfinite(v)]
    return {
        "decisions": DECISIONS,
        "table_rows": by_concern(s.features)[: LIMIT.rows],
        "doubt": DOUBTFUL_P,
        "risk": risk_format(s),
        "risk_meaning": RISK_MEANING.get(s.risk_name, ""),
        "duel_sentence": _duel_sentence(s),
        "largest_risk": max(finite, default=0.0),
        "effect_rows": rows,
        "effect_scale": pictures.effect_scale(s.coefficients, [f.position for f in rows]),
        "effect_unit": "predicted value" if s.task == "regression" else "log-odds of the class",
        "hidden_classes": s.n_classes - len(s.coefficients) if len(s.coefficients) > 1 else 0,
        "distance_unit": "standard deviations of the target"
        if s.task == "regression"
        else "log-odds",
        "spread_rows": order[: min(LIMIT.panels, max(1, LIMIT.spreads // len(s.environments)))],
        "unmeasured": sum(math.isnan(f.instability) or math.isnan(f.cost) for f in s.features),
        "changes": _changes(s),
        "objective_name": OBJECTIVE_NAME[s.provenance.method],
        "objective_meaning": OBJECTIVE_MEANING[s.provenance.method],
        "objective_drawn": s.provenance.method == "gates",  # p-values span fifty decades
    }


def risk_format(s: Summary) -> Callable[[float], str]:
    """Return how this summary's errors are written: all with the same decimals."""
    if s.risk_name == "error rate":
        return partial(percent, decimals=1)
    risks = [v for e in s.environments for v in (e.risk, e.risk_erm) if 0 < v < math.inf]
    if not risks or not 1e-4 <= min(risks) <= max(risks) < 1e7:
        return number
    return partial(fixed, decimals=max(0, 2 - math.floor(math.log10(min(risks)))))


def _change(e: HiddenEnvironment) -> float:
    return e.risk / e.risk_erm - 1 if e.risk_erm else math.nan


def _duel_sentence(s: Summary) -> str:
    if not (math.isfinite(s.worst) and s.worst_erm):
        return "The error in the worst environment was not measured."
    change = s.worst / s.worst_erm - 1
    where = "Where each model does worst, this one" if len(s.environments) > 1 else "This model"
    if abs(change) < 0.005:
        alike = "The two models err alike"
        return f"{alike}{' where each does worst' if len(s.environments) > 1 else ''}."
    if change < 0:
        return f"{where} errs {percent(-change)} less."
    more = f"{where} errs {percent(change)} more"
    if all(f.used for f in s.features):
        return f"{more}."
    return f"{more}: the price of leaving features out, paid on the rows it learned from."


def _changes(s: Summary) -> tuple[str, ...]:
    """What each step left out (−) or took back (+) since the one before."""
    before = tuple(True for _ in s.columns)
    told = []
    for step in s.steps:
        after = step.kept or before
        told.append(_told(s.columns, before, after))
        before = after
    return tuple(told)


def _told(features: tuple[Feature, ...], before: tuple[bool, ...], after: tuple[bool, ...]) -> str:
    moves = [
        f"{'+' if now else '−'} {feature.label}"
        for feature, then, now in zip(features, before, after, strict=True)
        if then != now
    ]
    return ", ".join(moves[:6]) + (f" and {len(moves) - 6} more" if len(moves) > 6 else "")


@cache
def template(name: str) -> Template:
    """Return a template from beside this module: all is escaped, an unknown name is an error."""
    jinja = Environment(
        loader=BaseLoader(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.globals.update(
        draw=pictures,
        limit=LIMIT,
        number=number,
        fixed=fixed,
        percent=percent,
        probability=probability,
        count_of=count_of,
        plain=_plain,
        upper_first=_upper_first,
        change=_change,
        log_likelihood=lambda step: step.log_likelihood,
        objective=lambda step: step.objective,
    )
    return jinja.from_string(asset(name))


def _upper_first(text: str) -> str:
    """Return the text with a capital first; ``capitalize`` would make RMSE Rmse."""
    return text[:1].upper() + text[1:]


def _plain(value: float) -> str:
    """Return a number as JavaScript reads it; empty where there is none."""
    if math.isnan(value):
        return ""
    return f"{value:.9g}" if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def asset(name: str) -> str:
    """Return the text of a file beside this module."""
    return (resources.files("hetrisk.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the source expression that allows exactly this text in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
