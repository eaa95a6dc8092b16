"""The page: one table on top, two figures, what the other answers are worth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from hetrisk import atomic
from hetrisk.reproduce.real.designs import DESIGN, DESIGNS
from hetrisk.reproduce.real.judging import (
    ADAPTED,
    BACKTEST,
    METHODS,
    MINIMAX,
    ON_DESIGNS,
    PLAIN,
    TABLE,
    Record,
)
from hetrisk.reproduce.real.lot import LABELS, NUMBERS, SITE

BAND = 0.02  # harmed and helped: by more than this share of plain's error
LEAST, MOST = 0.05, 20.0  # ratios are cut to this in means
WORST_SHOWN = 8
FLOOR = 0.01  # of errors on designs: smaller ones are none
Judged = dict[str, dict[str, Record]]  # table -> method -> record
Rows = list[tuple[object, ...]]
OURS, OTHERS = "#b3331d", "#4a6076"


def write(records: Sequence[Record], path: Path, n_all: int) -> Path:
    """Write the page, and its figures in a folder of its name."""
    judged: Judged = {}
    for record in records:
        if record["method"] != TABLE:
            judged.setdefault(record["table"], {})[record["method"]] = record
    judged = {table: methods for table, methods in judged.items() if PLAIN in methods}
    drawn = {t: methods for t, methods in judged.items() if methods[PLAIN]["way"] == DESIGN}
    judged = {t: methods for t, methods in judged.items() if t not in drawn}
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    if not judged:
        atomic.write_bytes(path, b"# What it does on real tables\n\nNo table is judged yet.\n")
        return path
    _harm_and_help(judged, folder / "harm-and-help.png")
    _foretold(judged, folder / "foretold.png")
    left_out = sum(record["method"] == TABLE for record in records)
    loader = PackageLoader("hetrisk.reproduce", "templates")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True)
    template = environment.get_template("real.md")
    text = template.render(
        n=len(judged),
        n_all=n_all,
        left_out=left_out,
        so_far="" if len(judged) + left_out >= n_all else " so far",
        numbers=sum(methods[PLAIN]["kind"] == NUMBERS for methods in judged.values()),
        timed=sum(methods[PLAIN]["way"] != SITE for methods in judged.values()),
        folder=folder.name,
        top=_top(judged),
        kind_heads=["method", *(f"{name} ({len(_of(judged, t))})" for name, t in KINDS.items())],
        kinds=_kinds(judged),
        forecast=_forecast(judged),
        intervals=_intervals(judged),
        adaptation=_adaptation(judged),
        worst=_worst(judged),
        failures=_failures(judged),
        load=_load(judged),
        design_heads=["design", *ON_DESIGNS],
        designs=_designs(drawn),
    )
    atomic.write_bytes(path, (text.strip() + "\n").encode())
    return path


def ratios(judged: Judged, what: str = "mean") -> dict[str, dict[str, float]]:
    """Error of each method over plain's, table by table."""
    found: dict[str, dict[str, float]] = {}
    for table, methods in judged.items():
        for name, record in methods.items():
            if record["status"] == "ok":
                found.setdefault(name, {})[table] = record[what] / max(methods[PLAIN][what], 1e-12)
    return found


def geometric(values: Iterable[float]) -> float:
    """Geometric mean of ratios, each cut to 1/20 to 20; NaN of none."""
    cut = np.clip(np.asarray(list(values), dtype=float), LEAST, MOST)
    return float(np.exp(np.log(cut).mean())) if len(cut) else float("nan")


KINDS: dict[str, Callable[[Record], bool]] = {
    "numbers, time": lambda r: r["kind"] == NUMBERS and r["way"] != SITE,
    "numbers, sites": lambda r: r["kind"] == NUMBERS and r["way"] == SITE,
    "labels, time": lambda r: r["kind"] == LABELS and r["way"] != SITE,
    "labels, sites": lambda r: r["kind"] == LABELS and r["way"] == SITE,
}


def _of(judged: Judged, test: Callable[[Record], bool]) -> set[str]:
    return {table for table, methods in judged.items() if test(methods[PLAIN])}


def _name(method: str) -> str:
    return f"**{method}**" if method == BACKTEST else method


def _counts(found: Iterable[float]) -> str:
    values = np.asarray(list(found))
    return f"{(values > 1 + BAND).sum()} / {(values < 1 - BAND).sum()}"


def _top(judged: Judged) -> Rows:
    mean, worst = ratios(judged), ratios(judged, "worst")
    rows: Rows = []
    for name in (m for m in METHODS if m in mean):
        found = mean[name]
        seconds = np.median([judged[table][name]["seconds"] for table in found])
        ours = [mean[BACKTEST][t] for t in found if t in mean.get(BACKTEST, {})]
        rows.append(
            (
                _name(name),
                len(found),
                f"{geometric(found.values()):.3f}",
                _counts(found.values()),
                f"{max(found.values()):.2f}",
                f"{geometric(worst[name].values()):.3f}",
                f"{geometric(ours):.3f}",
                f"{seconds:.2f}",
            )
        )
    return rows


def _kinds(judged: Judged) -> Rows:
    mean, rows = ratios(judged), []
    for method in (m for m in METHODS if m in mean):
        cells = []
        for test in KINDS.values():
            found = [v for table, v in mean[method].items() if test(judged[table][PLAIN])]
            cells.append(f"{geometric(found):.3f}, {_counts(found)}" if found else "")
        rows.append((_name(method), *cells))
    return list(rows)


def _ours(judged: Judged) -> list[tuple[str, list[Record]]]:
    """Records of the backtest, with time and with sites alone."""
    found = [methods.get(BACKTEST, {"status": ""}) for methods in judged.values()]
    kept = [record for record in found if record["status"] == "ok"]
    parts = ("time", lambda r: r["way"] != SITE), ("sites", lambda r: r["way"] == SITE)
    return [(name, [r for r in kept if test(r)]) for name, test in parts if any(map(test, kept))]


def _forecast(judged: Judged) -> Rows:
    rows: Rows = []
    for name, records in _ours(judged):
        true = np.asarray([r["mean"] for r in records])
        foretold, lower, upper = (
            np.asarray([r["foretold"][k] for r in records]) for k in ("mean", "lower", "upper")
        )
        low, middle, high = np.quantile(true / np.maximum(foretold, 1e-12), [0.1, 0.5, 0.9])
        inside = np.mean((lower <= true) & (true <= upper))
        band = f"{low:.2f} to {high:.2f}"
        rows.append((f"{len(records)} with {name}", f"{middle:.2f}", band, f"{inside:.0%}"))
    return rows


def _intervals(judged: Judged) -> Rows:
    rows: Rows = []
    for name, records in _ours(judged):
        covered = np.asarray([r["covered"] for r in records if "covered" in r])
        if len(covered):
            width = np.median([r["width"] for r in records if "covered" in r])
            few = int((covered < 0.8).sum())
            rows.append(
                (f"{len(covered)} with {name}", f"{covered.mean():.0%}", few, f"{width:.2f}")
            )
    return rows


def _adaptation(judged: Judged) -> Rows:
    records = [r for _, found in _ours(judged) for r in found]
    rows: Rows = []
    for size in ADAPTED:
        asked = [r["adapted"].get(str(size)) for r in records]
        found = np.asarray([ratio for ratio in asked if ratio is not None], dtype=float)
        if len(found):
            mean, most = f"{geometric(found):.3f}", f"{found.max():.2f}"
            rows.append((size, len(found), mean, _counts(found), most))
    return rows


def _worst(judged: Judged) -> Rows:
    found = sorted(ratios(judged).get(BACKTEST, {}).items(), key=lambda item: -item[1])
    rows: Rows = []
    for table, ratio in found[:WORST_SHOWN]:
        r = judged[table][BACKTEST]
        errors = f"{r['foretold']['mean']:.3g}", f"{r['mean']:.3g}"
        name = table.replace("|", ", by ")
        rows.append((name, f"{ratio:.2f}", r["best"], *errors, r["environments"]))
    return rows


def _load(judged: Judged) -> str:
    """How busy the machine was: seconds by the clock mean less then."""
    seen = [methods[PLAIN].get("load") for methods in judged.values()]
    known = np.asarray([load for load in seen if load is not None], dtype=float)
    return f"{np.median(known):.0f} on {os.cpu_count()} cores" if len(known) else "not known"


def _designs(drawn: Judged) -> Rows:
    """Worst error over the minimax predictor's, geometric mean over draws."""
    rows: Rows = []
    for name in DESIGNS:
        draws = [methods for table, methods in drawn.items() if f"/{name}:" in table]
        cells = []
        for method in ON_DESIGNS:
            found = [
                max(m[method]["worst"], FLOOR) / max(m[MINIMAX]["worst"], FLOOR)
                for m in draws
                if all(m.get(k, {}).get("status") == "ok" for k in (method, MINIMAX))
            ]
            cells.append(f"{geometric(found):.2f}" if found else "")
        if draws:
            rows.append((name, *cells))
    return rows


def _failures(judged: Judged) -> Rows:
    reasons: dict[tuple[str, str], int] = {}
    for methods in judged.values():
        for name, record in methods.items():
            if record["status"] == "failed":
                key = name, record["reason"].partition(":")[0]
                reasons[key] = reasons.get(key, 0) + 1
    return [(*key, n) for key, n in sorted(reasons.items(), key=lambda item: -item[1])]


def _harm_and_help(judged: Judged, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, found in ratios(judged).items():
        values = np.asarray(list(found.values()))
        x, y = 100 * np.mean(values > 1 + BAND), 100 * np.mean(values < 1 - BAND)
        axes.plot(x, y, "o", color=OURS if name == BACKTEST else OTHERS, ms=5)
        axes.annotate(name, (x, y), xytext=(5, 3), textcoords="offset points", fontsize=8)
    axes.set(xlabel="tables harmed, %", ylabel="tables helped, %")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _foretold(judged: Judged, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4.2), layout="constrained")
    axes = figure.subplots()
    for (name, records), colour in zip(_ours(judged), (OURS, OTHERS), strict=False):
        # Tables come in units of their own: errors are drawn over the constant's.
        unit = [float(judged[r["table"]].get("constant", r)["mean"]) for r in records]
        x = [r["foretold"]["mean"] / max(u, 1e-12) for r, u in zip(records, unit, strict=True)]
        y = [r["mean"] / max(u, 1e-12) for r, u in zip(records, unit, strict=True)]
        axes.plot(x, y, "o", ms=4, color=colour, label=name)
    ends = (0.05, 5)
    axes.plot(ends, ends, color="#999999", lw=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="foretold, over the constant's error", ylabel="came true")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
