"""The gauntlet's numbers as rows of text, the heading first."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from hetrisk.datasets.natural_tables import TABLES
from hetrisk.reproduce.gauntlet.cases import DESIGNS, REAL, groups
from hetrisk.reproduce.gauntlet.forecast import Forecast
from hetrisk.reproduce.gauntlet.methods import ERM, GAUNTLET, ORACLE
from hetrisk.reproduce.gauntlet.published import mean_error, published, unit_stages
from hetrisk.reproduce.gauntlet.ratios import (
    Found,
    Ratio,
    Tally,
    design_rows,
    split_ratio,
    table_ratio,
    tally,
)
from hetrisk.reproduce.records import OK

Lines = list[list[str]]
DESIGN_METHODS = (
    *("erm", "trees", "hrm", "hrm-gates", "hinted-columns", "columns-4", "columns-10"),
    *("directions-10", "anchor-5", "irm", "vrex", "group-dro", "oracle"),
)
TABLE_METHODS = ("trees", "hrm", "columns-4", "directions-4", "anchor-5", "group-dro")
GROUP_METHODS = (
    *("ridge-cv", "trees", "hrm", "columns-1", "columns-4", "columns-10", "directions-4"),
    *("anchor-5", "anchor", "group-dro"),
)
UNIT_METHODS = ("erm", "hrm", "columns-4", "columns-10", "directions-10", "irm", "oracle")
CLEAR = 1.05  # ERM's worst error over that on the stable columns, for a gap to be counted


def summary_lines(counted: Sequence[Tally], found: Found, n_seeds: int) -> Lines:
    """One line a method: real tables, then designs."""
    rows = design_rows(found, n_seeds)
    lines = [
        [
            *("method", "knows", "splits", "harmed", "helped", "worst error / ERM's (90 %)"),
            *("mean error / ERM's", "range", "gap closed on designs"),
        ]
    ]
    by_method = {one.method: one for one in counted}
    for name, method in GAUNTLET.items():
        closed = gap_closed(rows, name)
        real = _tally_cells(by_method.get(name))
        if any(real) or closed is not None:
            gap = "" if closed is None else f"{closed:.0%}"
            lines.append([f"{name}: {method.label}", method.given, *real, gap])
    return lines


def group_lines(found: Found) -> Lines:
    """Harmed, helped and geometric mean of some methods in each group of splits."""
    shown = groups()
    lines = [["method", *shown]]
    for method in GROUP_METHODS:
        counted = [tally(method, found, stages) for stages in shown.values()]
        cells = [
            "" if t is None else f"{t.harmed} / {t.helped} of {t.n}, {t.worst_error:.3f}"
            for t in counted
        ]
        if any(cells):
            lines.append([method, *cells])
    return lines


def _tally_cells(one: Tally | None) -> list[str]:
    if one is None:
        return [""] * 6
    return [
        *(str(one.n), str(one.harmed), str(one.helped)),
        f"{one.worst_error:.3f} ({one.low:.3f} to {one.high:.3f})",
        f"{one.mean_error:.3f}",
        f"{one.smallest:.2f} to {one.largest:.2f}",
    ]


def gap_closed(rows: Mapping[str, Mapping[str, float | str]], method: str) -> float | None:
    """Share of the way from ERM to the stable columns, averaged over the designs with a way to go.

    Below 0 where a method does worse than ERM; a single design counts from -1 to 1.
    """
    shares = []
    for cells in rows.values():
        known = [v for name in (ERM, ORACLE, method) if isinstance(v := cells.get(name), float)]
        if len(known) == 3 and known[0] > CLEAR * known[1]:
            erm, best, ours = known
            shares.append(float(np.clip((erm - ours) / (erm - best), -1, 1)))
    return float(np.mean(shares)) if shares else None


def design_lines(found: Found, n_seeds: int) -> Lines:
    """Worst error on every design."""
    rows = design_rows(found, n_seeds)
    lines = [["design", *DESIGN_METHODS]]
    for stage in DESIGNS:
        cells = rows[stage.name]
        lines.append([stage.name, *(_number(cells.get(name)) for name in DESIGN_METHODS)])
    return lines


def table_lines(found: Found, which: str) -> Lines:
    """Error relative to ERM on every real table, with the interval."""
    lines = [["table", *TABLE_METHODS]]
    for table in TABLES:
        ratios = [table_ratio(table, method, found, which) for method in TABLE_METHODS]
        if any(ratio is not None for ratio in ratios):
            lines.append([table, *(_interval(ratio) for ratio in ratios)])
    return lines


def source_lines(found: Found) -> Lines:
    """What each real table is and where it is from."""
    lines = [["table", "what", "target", "environment", "rows x columns", "source", "licence"]]
    for name, source in TABLES.items():
        shapes = [
            r["shape"]
            for r in found.values()
            if r["status"] == OK and r["method"] == ERM and r["setting"].get("table") == name
        ]
        shape = f"{shapes[0][0]} x {shapes[0][1]}" if shapes else ""
        target = f"log {source.target}" if source.log else source.target
        origin = f"{source.package}::{source.item}"
        lines.append(
            [name, source.title, target, source.environment, shape, origin, source.licence]
        )
    return lines


def unit_lines(found: Found, n_seeds: int) -> Lines:
    """Published errors of the unit tests and ours, averaged over the test environments."""
    theirs = ("ERM", "IRMv1", "IGA", "ANDMask", "Oracle")
    lines = [["unit test", *(f"{name}, published" for name in theirs), *UNIT_METHODS]]
    for name, stage in unit_stages().items():
        row = published()["rows"][name]
        ours = [mean_error(stage, method, found, n_seeds) for method in UNIT_METHODS]
        cells = [f"{row[m]['mean']:.2f} ± {row[m]['std']:.2f}" for m in theirs]
        lines.append([name, *cells, *(_number(value, 2) for value in ours)])
    return lines


def forecast_lines(made: Sequence[Forecast]) -> Lines:
    """What was foretold at reach 0, 1 and 2, and what came true."""
    lines = [["split", "at reach 0", "at 1 (90 % band)", "at 2", "worst that came", "came / at 1"]]
    for forecast in made:
        low, line, high = forecast.foretold(1.0)
        came = float(forecast.erm_came.max())
        lines.append(
            [
                f"{forecast.stage.name}, {forecast.stage.split}",
                f"{forecast.foretold(0.0)[1]:.3g}",
                f"{line:.3g} ({low:.3g} to {high:.3g})",
                f"{forecast.foretold(2.0)[1]:.3g}",
                f"{came:.3g}",
                f"{came / line:.2f}",
            ]
        )
    return lines


def time_lines(found: Found) -> Lines:
    """Seconds a fit of every method, median and largest."""
    lines = [["method", "fits", "median (s)", "largest (s)"]]
    for name in GAUNTLET:
        spent = [r["seconds"] for r in found.values() if r["method"] == name and r["status"] == OK]
        if spent:
            lines.append([name, str(len(spent)), f"{np.median(spent):.2f}", f"{max(spent):.1f}"])
    return lines


def refusals(found: Found) -> list[str]:
    """Why methods could not be run, each reason once, with how often it was given."""
    reasons = Counter((r["method"], r["reason"]) for r in found.values() if r["status"] != OK)
    return [f"{method}, {count} runs: {why}" for (method, why), count in sorted(reasons.items())]


def csv_text(found: Found) -> str:
    """Every split and method: worst and mean error relative to ERM's, unrounded."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["table", "split", "method", "worst_ratio", "mean_ratio"])
    for stage in REAL:
        for method in stage.methods:
            ratios = [split_ratio(stage, method, found, which) for which in ("worst", "mean")]
            if ratios[0] is not None:
                writer.writerow([stage.name, stage.split, method, *(f"{r:.6g}" for r in ratios)])
    return stream.getvalue()


def _number(value: float | str | None, digits: int = 3) -> str:
    if value is None or value == "":
        return ""
    return "no" if isinstance(value, str) else f"{value:.{digits}f}"


def _interval(ratio: Ratio | None) -> str:
    return "no" if ratio is None else f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
