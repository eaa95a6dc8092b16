"""Errors relative to ERM: by table with an interval, and tallied over all splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.gauntlet.cases import DESIGNS, FIRST_SEED, REAL, Stage
from hetrisk.reproduce.gauntlet.methods import ERM, GAUNTLET
from hetrisk.reproduce.records import OK, Record

MARGIN = 0.02  # more than this worse than ERM is harm, more than this better is help
INTERVAL = (5.0, 95.0)  # percentiles of the resamples

Found = Mapping[str, Record]


@dataclass(frozen=True)
class Ratio:
    """A method's error relative to ERM's on one or several splits.

    Attributes
    ----------
    value : geometric mean over the splits.
    low, high : 90 % interval from drawing the test rows again.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Tally:
    """A method over all splits of the real tables.

    Attributes
    ----------
    method : its name.
    n : splits on which it and ERM could be run.
    harmed, helped : splits on which the worst error is more than 2 % above, or below, ERM's.
    worst_error : geometric mean of the worst error relative to ERM's; ``low`` to ``high`` is its
        90 % interval from drawing the tables again.
    mean_error : geometric mean of the mean error relative to ERM's.
    largest, smallest : of the worst error relative to ERM's.
    refused : split -> why the method could not be run there.
    """

    method: str
    n: int
    harmed: int
    helped: int
    worst_error: float
    low: float
    high: float
    mean_error: float
    largest: float
    smallest: float
    refused: Mapping[str, str]


def record_of(stage: Stage, method: str, found: Found, seed: int = 0) -> Record | None:
    """Return the record of a method on a stage, if it was run."""
    setting = tuple(sorted(stage.setting.items()))
    return found.get(Case(stage.task, setting, seed, method).key)


def split_ratio(stage: Stage, method: str, found: Found, which: str) -> float | None:
    """Worst or mean error of a method relative to ERM's on one split; None if not run."""
    ours, erm = (_good(record_of(stage, name, found)) for name in (method, ERM))
    if ours is None or erm is None:
        return None
    return _summary(ours, which) / _summary(erm, which)


def table_ratio(table: str, method: str, found: Found, which: str) -> Ratio | None:
    """Error relative to ERM's, over the splits of a table that were run."""
    ratios, drawn = [], []
    for stage in (s for s in REAL if s.name == table):
        ours, erm = (_good(record_of(stage, name, found)) for name in (method, ERM))
        if ours is None or erm is None:
            continue
        ratios.append(_summary(ours, which) / _summary(erm, which))
        drawn.append(np.array(ours["resampled"][which]) / np.array(erm["resampled"][which]))
    if not ratios:
        return None
    low, high = np.percentile(_geometric_mean(np.array(drawn)), INTERVAL)
    return Ratio(float(_geometric_mean(np.array(ratios))), float(low), float(high))


def tally(method: str, found: Found, stages: Sequence[Stage] = REAL) -> Tally | None:
    """Count a method's harm and help over splits; None where it was not run at all."""
    known: dict[str, list[tuple[float, float]]] = {}
    refused = {}
    for stage in stages:
        record = record_of(stage, method, found)
        if record is not None and record["status"] != OK:
            refused[f"{stage.name}, {stage.split}"] = record["reason"]
        worst, mean = (split_ratio(stage, method, found, w) for w in ("worst", "mean"))
        if worst is not None and mean is not None:
            known.setdefault(stage.name, []).append((worst, mean))
    if not known:
        return None
    ratios = np.array([pair for pairs in known.values() for pair in pairs])
    low, high = _interval_over_tables([[pair[0] for pair in pairs] for pairs in known.values()])
    worst_ratios = ratios[:, 0]
    return Tally(
        method=method,
        n=len(ratios),
        harmed=int((worst_ratios > 1 + MARGIN).sum()),
        helped=int((worst_ratios < 1 - MARGIN).sum()),
        worst_error=float(_geometric_mean(worst_ratios)),
        low=low,
        high=high,
        mean_error=float(_geometric_mean(ratios[:, 1])),
        largest=float(worst_ratios.max()),
        smallest=float(worst_ratios.min()),
        refused=refused,
    )


def tallies(found: Found, stages: Sequence[Stage] = REAL) -> list[Tally]:
    """Tally every method that was run on real tables, in the order of the methods."""
    counted = [tally(method, found, stages) for method in GAUNTLET]
    return [one for one in counted if one is not None]


def design_errors(stage: Stage, method: str, found: Found, n_seeds: int) -> list[float] | str:
    """Worst errors of a method on a design, one a seed; or why there are none."""
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    records = [r for s in seeds if (r := record_of(stage, method, found, s)) is not None]
    good = [_summary(r, "worst") for r in records if r["status"] == OK]
    if good:
        return good
    return next((r["reason"] for r in records), "")


def design_rows(found: Found, n_seeds: int) -> dict[str, dict[str, float | str]]:
    """Return, by design and method, the mean over seeds of the worst error."""
    rows: dict[str, dict[str, float | str]] = {}
    for stage in DESIGNS:
        cells: dict[str, float | str] = {}
        for method in stage.methods:
            errors = design_errors(stage, method, found, n_seeds)
            cells[method] = errors if isinstance(errors, str) else float(np.mean(errors))
        rows[stage.name] = cells
    return rows


def _good(record: Record | None) -> Record | None:
    return record if record is not None and record["status"] == OK else None


def _summary(record: Record, which: str) -> float:
    errors = list(record["errors"].values())
    return float(np.max(errors) if which == "worst" else np.mean(errors))


def _geometric_mean(ratios: FloatArray) -> FloatArray:
    mean: FloatArray = np.exp(np.log(np.maximum(ratios, 1e-12)).mean(axis=0))
    return mean


def _interval_over_tables(
    by_table: Sequence[Sequence[float]], draws: int = 1000
) -> tuple[float, float]:
    """Geometric mean over splits when the tables are drawn again, each with all its splits."""
    logs = [np.log(np.maximum(ratios, 1e-12)) for ratios in by_table]
    sums, sizes = np.array([x.sum() for x in logs]), np.array([len(x) for x in logs])
    counts = np.random.default_rng(0).multinomial(
        len(logs), np.full(len(logs), 1 / len(logs)), draws
    )
    low, high = np.percentile(np.exp(counts @ sums / (counts @ sizes)), INTERVAL)
    return float(low), float(high)
