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
from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from hetrisk import __version__, atomic
from hetrisk.core.result import BRIER, INVARIANT, RMSE, UNSEARCHED
from hetrisk.report import curves, pictures
from hetrisk.report.extraction import summarize
from hetrisk.report.labels import (
    brief,
    count_of,
    fixed,
    number,
    percent,
    precise,
    probability,
    tick,
)
from hetrisk.report.summary import Action, Decision, Feature, Step, Summary, by_importance

TITLE = "Stability report"
VERDICT_WORD = {UNSEARCHED: "not searched"}
DECISIONS = (
    (Decision.DROPPED, "the model ignores them"),
    (Decision.UNCERTAIN, "resamples disagree"),
    (Decision.KEPT, "the model uses them"),
)
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
    environments: int = 8  # drawn side by side
    panels: int = 6
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
    return template("page.html").render(
        s=summary, title=brief(title, 200), **dress(), **_derived(summary)
    )


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


def _derived(s: Summary) -> dict[str, Any]:
    """What the template needs besides the summary: choices of rows, scales and sentences."""
    order = by_importance(s.columns)
    drawn = s.environments[: LIMIT.environments]
    strips = LIMIT.strips // max(1, len(s.coefficients) * len(drawn))
    rows = order[: min(LIMIT.effects, max(1, strips))]
    table_rows = by_importance(s.features)[: LIMIT.rows]
    finite = [v for e in s.environments for v in (e.risk, e.risk_erm) if math.isfinite(v)]
    return {
        "same": s.verdict != INVARIANT,
        "verdict_word": verdict_word(s),
        "contents": _contents(s),
        "reach_words": f"reach {tick(s.recommendation.reach)}, the one asked for,",
        "decisions": DECISIONS,
        "table_rows": table_rows,
        "margin_scale": pictures.margin_scale(table_rows),
        "times": partial(times, s.n_resamples),
        "risk": risk_format(s),
        "risk_meaning": RISK_MEANING.get(s.risk_name, "the error"),
        "largest_risk": max(finite, default=0.0),
        "leave_sentence": leave_sentence(s),
        "leave_unit": leave_unit(s),
        "caution": caution(s),
        "effect_rows": rows,
        "effect_environments": drawn,
        "effect_scale": pictures.effect_scale(s.coefficients, [f.position for f in rows]),
        "effect_unit": "predicted value" if s.task == "regression" else "log-odds of the class",
        "hidden_classes": s.n_classes - len(s.coefficients) if len(s.coefficients) > 1 else 0,
        "spread_rows": order[: LIMIT.panels],
        "happened": _happened(s),
        "score_name": next((step.score_name for step in s.steps), "Score"),
        "likelihoods": any(math.isfinite(step.log_likelihood) for step in s.steps),
    }


def _contents(s: Summary) -> list[tuple[str, str]]:
    """Return the sections the page has, in order."""
    several = len(s.environments) > 1
    sections = [
        (True, "h-features", "Columns"),
        (bool(s.sources), "h-sources", "Sources looked at"),
        (several, "h-groups", "Environments"),
        (bool(s.leave_one_out), "h-leave", "Leave one out"),
        (s.quality is not None, "h-quality", "Out-of-fold errors"),
        (True, "h-effects", "Effects"),
        (several and bool(s.spreads), "h-spreads", "Spreads"),
        (True, "h-search", "Search"),
        (True, "h-data", "Data"),
        (True, "h-settings", "Settings"),
    ]
    return [(anchor, label) for there, anchor, label in sections if there]


def times(n_resamples: int, share: float) -> str:
    """``47 of 50``; a dash where nothing was resampled."""
    if math.isnan(share) or n_resamples < 1:
        return "–"
    return f"{round(share * n_resamples)} of {n_resamples}"


def leave_unit(s: Summary) -> str:
    """What the errors in environments left out are: labels are fitted from moments there."""
    return f"{BRIER} of linear probabilities" if s.task == "classification" else RMSE


def leave_sentence(s: Summary) -> str:
    """Return who came out ahead when environments were left out."""
    known = [e for e in s.leave_one_out if math.isfinite(e.error) and math.isfinite(e.error_erm)]
    if not known:
        return ""
    better = sum(e.error < 0.995 * e.error_erm for e in known)
    worse = sum(e.error > 1.005 * e.error_erm for e in known)
    alike = len(known) - better - worse
    who = "This model" if s.verdict == INVARIANT else "The search, repeated without each of them,"
    return f"{who} was better than the plain model in {better}, worse in {worse}" + (
        f", alike in {alike}." if alike else "."
    )


def caution(s: Summary) -> str:
    """Return a warning where the figures out of fold mislead: a rare class, or one far row."""
    q = s.quality
    if q is not None and q.one_row_decides:
        share, whose = max((q.worst_row, ""), (q.worst_row_plain, " of the plain model"))
        return (
            f"One row makes up {percent(share)} of the squared error{whose}: it lies far outside "
            "the others, and these figures are mostly its own."
        )
    if q is None or not q.imbalanced or q.rarest is None or q.commonest is None:
        return ""
    rare, common = (brief(name, 48) for name, _ in (q.rarest, q.commonest))
    return (
        f"Only {percent(q.rarest[1])} of the rows are {rare}: always saying {common} would be "
        f"wrong in {percent(1 - q.commonest[1])} of them. Balanced accuracy and AUC say more "
        "here than the error rate."
    )


def verdict_word(s: Summary) -> str:
    """The verdict in the words of a page: one that is not recommended says why."""
    if s.verdict == INVARIANT and s.recommendation.action is not Action.THIS:
        return "invariant, not shown to pay"
    return VERDICT_WORD.get(s.verdict, s.verdict)


def risk_format(s: Summary) -> Callable[[float], str]:
    """Return how this summary's errors are written: all with the same decimals."""
    if s.risk_name == "error rate":
        return partial(percent, decimals=1)
    risks = [v for e in s.environments for v in (e.risk, e.risk_erm) if 0 < v < math.inf]
    if not risks or not 1e-4 <= min(risks) <= max(risks) < 1e7:
        return number
    return partial(fixed, decimals=max(0, 2 - math.floor(math.log10(min(risks)))))


def _happened(s: Summary) -> tuple[str, ...]:
    """What each step left out (−) or took back (+) since the one before, its penalties and note."""
    before = tuple(True for _ in s.columns)
    steps = []
    for step in s.steps:
        after = step.kept or before
        parts = (_changes(s.columns, before, after), _penalties(step), step.note)
        steps.append("; ".join(part for part in parts if part))
        before = after
    return tuple(steps)


def _penalties(step: Step) -> str:
    if step.invariance_penalty is None or step.gate_penalty is None:
        return ""
    return (
        f"penalties: invariance {number(step.invariance_penalty)}, gate {number(step.gate_penalty)}"
    )


def _changes(
    features: tuple[Feature, ...], before: tuple[bool, ...], after: tuple[bool, ...]
) -> str:
    moves = [
        f"{'+' if now else '−'} {feature.label}"
        for feature, then, now in zip(features, before, after, strict=True)
        if then != now
    ]
    return ", ".join(moves[:6]) + (f" and {len(moves) - 6} more" if len(moves) > 6 else "")


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
        draw=pictures,
        curves=curves,
        limit=LIMIT,
        number=number,
        fixed=fixed,
        percent=percent,
        precise=precise,
        tick=tick,
        probability=probability,
        count_of=count_of,
        plain=_plain,
        upper_first=_upper_first,
    )
    return jinja.from_string(asset(name, package))


def _upper_first(text: str) -> str:
    """Return the text with a capital first; ``capitalize`` would make RMSE Rmse."""
    return text[:1].upper() + text[1:]


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
