"""A run as a page of the documentation: tables, and one figure."""

from __future__ import annotations

import io
import math
from pathlib import Path

from hetrisk import atomic
from hetrisk.bench.metric import Metric, Run
from hetrisk.bench.suite import CASES

INTRODUCTION = """# Benchmarks

Written by `hetrisk bench --docs docs`; `make bench` runs the same. Ratios are taken within one
run, the two sides in turns, each the shortest of several: they travel between machines better
than seconds do. A target is a claim the project makes; where it is not met, the table says so.
"""


def value(metric: Metric) -> str:
    """Return the value of a metric with its unit."""
    if math.isnan(metric.value):
        return "not measured"
    number = f"{metric.value:.3g}" if abs(metric.value) < 1000 else f"{metric.value:,.0f}"
    return f"{number} {metric.unit}".strip()


def target(metric: Metric) -> str:
    """Return the target of a metric, empty where there is none."""
    if metric.bound is None:
        return ""
    sign = "≤" if metric.sense == "at most" else "≥"
    return f"{sign} {metric.bound:g} {metric.unit}".strip()


def write_benchmarks(run: Run, folder: Path) -> Path:
    """Write ``benchmarks.md``, and ``benchmarks.svg`` where the run has the series for it."""
    lines = [INTRODUCTION]
    if run.quick:
        lines.append("**These are quick sizes: they show the path, not the claims.**\n")
    lines.append(_machine(run))
    if draw(run, folder / "benchmarks.svg"):
        lines.append("![Cost of an EM iteration by rows and by features](benchmarks.svg)\n")
    for name, case in CASES.items():
        metrics = [metric for metric in run.metrics if metric.case == name]
        if metrics:
            lines.append(f"## {case.title}\n")
            lines.append(_table(metrics))
    path = folder / "benchmarks.md"
    atomic.write_bytes(path, "\n".join(lines).encode())
    return path


def _machine(run: Run) -> str:
    m = run.machine
    memory = f", {m['memory_gb']:g} GB" if "memory_gb" in m else ""
    libraries = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return (
        f"{m['processor'] or m['machine']}, {m['cores']} cores{memory}, {m['system']}; "
        f"{libraries}. The run took {run.seconds / 60:.1f} minutes.\n"
    )


def _table(metrics: list[Metric]) -> str:
    verdicts = {True: "yes", False: "**no**", None: ""}
    rows = ["| measured | value | target | met | of |", "| --- | ---: | ---: | --- | --- |"]
    for metric in metrics:
        cells = [metric.name, value(metric), target(metric), verdicts[metric.met], metric.note]
        rows.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def draw(run: Run, path: Path) -> bool:
    """Draw the cost per row by rows and by features; say whether there was anything to draw."""
    if not {"by_rows", "by_features"} <= set(run.series):
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows, features = run.series["by_rows"], run.series["by_features"]
    left.semilogx(rows["rows"], rows["ns_per_row"], "o-", color="#1f4e79")
    middle = sum(rows["ns_per_row"]) / len(rows["ns_per_row"])
    left.axhspan(middle / 1.25**0.5, middle * 1.25**0.5, color="#1f4e79", alpha=0.12, lw=0)
    left.set(xlabel="rows", ylabel="ns a row", title="flat in rows (band: 25 %)")
    left.set_ylim(0, 1.3 * max(rows["ns_per_row"]))
    d, cost = features["features"], features["ns_per_row"]
    right.loglog(d, cost, "o-", color="#1f4e79", label="measured")
    right.loglog(
        d, [cost[0] * (x / d[0]) ** 2 for x in d], "--", color="#999999", label="quadratic"
    )
    right.set_xticks(d, [f"{x:g}" for x in d], minor=False)
    right.set_xticks([], minor=True)
    right.set(xlabel="features", ylabel="ns a row", title="in features")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("One EM iteration, three components")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    atomic.write_bytes(path, buffer.getvalue())
    return True
