"""Memory of fits, each in a process of its own, and the speed of Parquet beside memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hetrisk.bench.clock import seconds, shortest
from hetrisk.bench.isolation import isolated, peak_bytes, resident_bytes
from hetrisk.bench.iteration import away_from, climb, standardised
from hetrisk.bench.metric import AT_LEAST, Metric, Size
from hetrisk.bench.rows import table, true_mixture, write_parquet
from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.estimators.hrm import HRMRegressor


def fit_in_memory(n: int, d: int) -> dict[str, Any]:
    """Fit rows in memory; the most held beyond the interpreter, and the size of the rows."""
    fit(ArrayBlocks(*table(1000, d)))  # imports are not the fit's memory
    before = resident_bytes()
    X, y = table(n, d)
    taken = seconds(partial(HRMRegressor(random_state=0).fit, X, y))
    return {"peak": peak_bytes() - before, "input": X.nbytes + y.nbytes, "seconds": taken}


def iterate_in_memory(n: int, d: int) -> dict[str, Any]:
    """Run EM over rows in memory; the most held beyond them, and their size."""
    start = away_from(true_mixture(d))
    climb(ArrayBlocks(*table(1000, d)), start)
    X, y = table(n, d)
    before = resident_bytes()
    climb(standardised(ArrayBlocks(X, y)), start)
    return {"peak": max(peak_bytes() - before, 0), "input": X.nbytes + y.nbytes}


def fit_parquet(folder: str) -> dict[str, Any]:
    """Fit a folder of Parquet files; the most the whole process held."""
    from hetrisk.blocks import ParquetBlocks

    source = ParquetBlocks(folder, target="y")
    taken = seconds(partial(fit, source))
    return {"peak": peak_bytes(), "seconds": taken, "rows": source.n_rows}


def fit(source: Blocks) -> HRMRegressor:
    """Fit by default."""
    model: HRMRegressor = HRMRegressor(random_state=0).fit(source)
    return model


def in_memory(size: Size) -> list[Metric]:
    """Memory of a fit and of EM, relative to the rows."""
    n, d = size.rows, size.features
    whole, em = isolated(fit_in_memory, n=n, d=d), isolated(iterate_in_memory, n=n, d=d)
    note = f"n = {n:,}, d = {d}, {whole['input'] / 1e6:.0f} MB"
    peaks = (
        ("a fit in memory, rows included", whole, 1.5),
        ("EM beyond the rows", em, 0.5),
    )
    return [
        Metric(
            "memory", f"peak of {what} / rows", used["peak"] / used["input"], bound=most, note=note
        )
        for what, used, most in peaks
    ]


def parquet(size: Size) -> list[Metric]:
    """Memory of a fit from Parquet, and its speed beside the same fit in memory."""
    d = size.features
    with TemporaryDirectory() as folder:
        large = write_parquet(Path(folder) / "large", size.parquet_rows, d)
        record = isolated(fit_parquet, folder=str(large))
    note = f"n = {size.parquet_rows:,}, d = {d}, {record['seconds']:.0f} s"
    name = "peak of a fit from Parquet, the whole process"
    return [
        Metric("memory", name, record["peak"] / 1e9, "GB", bound=1.0, note=note),
        *throughput(size),
    ]


def throughput(size: Size) -> list[Metric]:
    """Rows a second from Parquet over rows a second in memory: a whole fit, and a pass."""
    from hetrisk.blocks import ParquetBlocks

    n, d = size.throughput_rows, size.features
    start = away_from(true_mixture(d))
    with TemporaryDirectory() as folder:
        rows = ParquetBlocks(write_parquet(Path(folder), n, d), target="y")
        held = ArrayBlocks(*table(n, d))
        fits = shortest({"parquet": partial(fit, rows), "memory": partial(fit, held)}, 1)
        passes = {
            "parquet": partial(climb, standardised(rows), start),
            "memory": partial(climb, standardised(held), start),
        }
        passed = shortest(passes, max(2, size.repeats - 2))
    return [
        Metric(
            "memory",
            f"throughput of {what}, Parquet / memory",
            seconds["memory"] / seconds["parquet"],
            bound=0.4,
            sense=AT_LEAST,
            guarded=True,
            note=f"n = {n:,}, d = {d}",
        )
        for what, seconds in (("a fit", fits), ("an EM iteration", passed))
    ]
