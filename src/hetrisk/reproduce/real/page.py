"""The page: one table on top, two figures, what the other answers are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from hetrisk import atomic
from hetrisk.reproduce.real.designs import DESIGN, DESIGNS
from hetrisk.reproduce.real.judging import (
    ADAPTED,
    BACKTEST,
    LEFT_OUT,
    METHODS,
    MINIMAX,
    ON_DESIGNS,
    PLAIN,
)
from hetrisk.reproduce.real.lot import NUMBERS, SITE
from hetrisk.reproduce.records import FAILED, OK, Record

BAND = 0.02  # harmed and helped: by more than this share of plain's error
LEAST, MOST = 0.05, 20.0  # ratios are cut to this in means
WORST_SHOWN = 12
FLOOR = 0.01  # of errors on designs: smaller ones are none
OURS, OTHERS = "#b3331d", "#4a6076"
COLUMNS = (
    *("table", "method", "way", "kind", "mean", "worst", "environments", "seconds", "spent"),
    *("best", "covered", "width", "foretold.mean", "foretold.lower", "foretold.upper"),
    *(f"adapted.{size}" for size in ADAPTED),
)
Rows = list[tuple[object, ...]]


def write(records: Sequence[Record], path: Path, n_all: int) -> Path:
    """Write the page, and its figures in a folder of its name."""
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    found = judged(records)
    drawn, real = found[found.way == DESIGN], found[found.way != DESIGN]
    if not len(real):
        atomic.write_bytes(path, b"# What it does on real tables\n\nNo table is judged yet.\n")
        return path
    plain, ours = (real[real.method == name] for name in (PLAIN, BACKTEST))
    _harm_and_help(real, folder / "harm-and-help.png")
    _foretold(real, folder / "foretold.png")
    counts = plain.kind_of.value_counts()
    loader = PackageLoader("hetrisk.reproduce", "templates")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True)
    text = environment.get_template("real.md").render(
        n=len(plain),
        n_all=n_all,
        left_out=len({r["table"] for r in records if r["status"] == LEFT_OUT}),
        numbers=int((plain.kind == NUMBERS).sum()),
        timed=int((plain.way != SITE).sum()),
        minutes=f"{real.spent.sum() / 60:.0f}",
        folder=folder.name,
        top=_top(real),
        kind_heads=["method", *(f"{name} ({n})" for name, n in counts.sort_index().items())],
        kinds=_kinds(real),
        forecast=_forecast(ours),
        adaptation=_adaptation(ours),
        worst=_worst(ours),
        failures=_failures(records),
        design_heads=["design", *ON_DESIGNS[:-1]],
        designs=_designs(drawn),
    )
    atomic.write_bytes(path, (text.strip() + "\n").encode())
    return path


def judged(records: Sequence[Record]) -> pd.DataFrame:
    """Records of what ran, with the ratios of mean and worst error to plain's."""
    found = pd.json_normalize([r for r in records if r["status"] == OK])
    found = found.reindex(columns=list(COLUMNS))
    plain = found[found.method == PLAIN].set_index("table")
    found = found[found.table.isin(plain.index)].copy()
    for what in ("mean", "worst"):
        found[f"{what}_ratio"] = found[what] / found.table.map(plain[what]).clip(lower=1e-12)
    found["kind_of"] = found.kind.astype(str) + np.where(found.way == SITE, ", sites", ", time")
    return found


def geometric(ratios: pd.Series) -> float:
    """Geometric mean of ratios, each cut to 1/20 to 20; NaN of none."""
    return float(np.exp(np.log(ratios.clip(LEAST, MOST)).mean()))


def _name(method: str) -> str:
    return f"**{method}**" if method == BACKTEST else method


def _counts(ratios: pd.Series) -> str:
    return f"{(ratios > 1 + BAND).sum()} / {(ratios < 1 - BAND).sum()}"


def _top(real: pd.DataFrame) -> Rows:
    ours = real[real.method == BACKTEST].set_index("table").mean_ratio
    rows: Rows = []
    for name, part in _by_method(real):
        mean, beside = part.mean_ratio, ours.reindex(part.table).dropna()
        errors = f"{geometric(mean):.3f}", _counts(mean), f"{mean.max():.2f}"
        worst, same = f"{geometric(part.worst_ratio):.3f}", f"{geometric(beside):.3f}"
        seconds = f"{part.seconds.median():.2f}"
        rows.append((_name(name), len(part), *errors, worst, same, seconds))
    return rows


def _by_method(real: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    parts = dict(iter(real.groupby("method")))
    return [(name, parts[name]) for name in METHODS if name in parts]


def _kinds(real: pd.DataFrame) -> Rows:
    cells = real.groupby(["method", "kind_of"]).mean_ratio.agg(
        lambda ratios: f"{geometric(ratios):.3f}, {_counts(ratios)}"
    )
    shown = cells.unstack(fill_value="").reindex([name for name, _ in _by_method(real)])
    return [(_name(str(name)), *row) for name, *row in shown.itertuples()]


def _by_way(ours: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    parts = ("time", ours[ours.way != SITE]), ("sites", ours[ours.way == SITE])
    return [(name, part) for name, part in parts if len(part)]


def _forecast(ours: pd.DataFrame) -> Rows:
    rows: Rows = []
    for name, part in _by_way(ours):
        ratio = part["mean"] / part["foretold.mean"].clip(lower=1e-12)
        low, middle, high = ratio.quantile([0.1, 0.5, 0.9])
        inside = part["mean"].between(part["foretold.lower"], part["foretold.upper"]).mean()
        said = f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{inside:.0%}"
        few, width = int((part.covered < 0.8).sum()), f"{part.width.median():.2f}"
        rows.append((f"{len(part)} with {name}", *said, f"{part.covered.mean():.0%}", few, width))
    return rows


def _adaptation(ours: pd.DataFrame) -> Rows:
    rows: Rows = []
    for size in ADAPTED:
        ratios = ours[f"adapted.{size}"].dropna()
        mean, most = f"{geometric(ratios):.3f}", f"{ratios.max():.2f}"
        rows.append((size, len(ratios), mean, _counts(ratios), most))
    return rows


def _worst(ours: pd.DataFrame) -> Rows:
    """Tables harmed, and why, as far as the forecast tells."""
    harmed = ours[ours.mean_ratio > 1 + BAND].sort_values("mean_ratio", ascending=False)
    rows: Rows = []
    for r in harmed[:WORST_SHOWN].to_dict("records"):
        why = "within the band foretold, wide as it was: chance among few environments"
        if r["best"] == PLAIN:
            why = "plain itself, told the time and the site apart"
        elif r["mean"] > r["foretold.upper"]:
            why = "what came was unlike all that had been left out"
        elif r["mean"] < r["foretold.lower"]:
            why = "what came was easier, for plain still more"
        errors = f"{r['foretold.mean']:.3g}", f"{r['mean']:.3g}"
        name, ratio = r["table"].replace("|", ", by "), f"{r['mean_ratio']:.2f}"
        rows.append((name, ratio, r["best"], *errors, why, int(r["environments"])))
    return rows


def _designs(drawn: pd.DataFrame) -> Rows:
    """Worst error over the minimax predictor's, geometric mean over draws."""
    worst = drawn.pivot(index="table", columns="method", values="worst").clip(lower=FLOOR)
    rows: Rows = []
    for name in DESIGNS:
        draws = worst[worst.index.str.contains(f"/{name}:", regex=False)]
        if len(draws):
            ratios = draws.div(draws[MINIMAX], axis=0).reindex(columns=list(ON_DESIGNS[:-1]))
            cells = [geometric(ratios[method].dropna()) for method in ratios]
            rows.append((name, *("" if np.isnan(v) else f"{v:.2f}" for v in cells)))
    return rows


def _failures(records: Sequence[Record]) -> Rows:
    failed = (r for r in records if r["status"] == FAILED)
    counts = Counter((r["method"], r["reason"].partition(":")[0]) for r in failed)
    return [(*why, n) for why, n in counts.most_common()]


def _harm_and_help(real: pd.DataFrame, path: Path) -> None:
    figure, axes = _figure()
    ratios = [(name, part.mean_ratio) for name, part in _by_method(real)]
    shares = [(100 * (r < 1 - BAND).mean(), 100 * (r > 1 + BAND).mean(), n) for n, r in ratios]
    labels: list[tuple[float, float]] = []
    for y, x, name in sorted(shares):
        axes.plot(x, y, "o", color=OURS if name == BACKTEST else OTHERS, ms=5)
        at = y
        while any(abs(x - seen) < 30 and at - below < 3 for seen, below in labels):
            at += 0.5  # names of neighbours stand one above the other
        labels.append((x, at))
        axes.annotate(
            *(name, (x, y), (x + 1.5, at)),
            fontsize=8,
            va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": OTHERS, "relpos": (0, 0.5)},
        )
    axes.set(xlabel="tables harmed, %", ylabel="tables helped, %")
    axes.set(xlim=(-3, 110), ylim=(-3, 3 + max(at for _, at in labels)))
    figure.savefig(path, dpi=150)


def _foretold(real: pd.DataFrame, path: Path) -> None:
    figure, axes = _figure()
    # Tables come in units of their own: errors are drawn over the constant's.
    unit = real[real.method == "constant"].set_index("table")["mean"]
    ours = real[(real.method == BACKTEST) & real.table.isin(unit.index)]
    for (name, part), colour in zip(_by_way(ours), (OURS, OTHERS), strict=False):
        scale = part.table.map(unit).clip(lower=1e-12)
        x, y = part["foretold.mean"] / scale, part["mean"] / scale
        axes.plot(x, y, "o", ms=4, color=colour, label=name)
    ends = (0.05, 5)
    axes.plot(ends, ends, color="#999999", lw=0.8, zorder=0, label="as foretold")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="foretold, over the constant's error", ylabel="came true")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
