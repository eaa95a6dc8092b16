"""What a backtest costs, and whether rows on disk and on workers choose as rows in memory do.

    python benchmarks/study_backtest.py gram [--rows 1000000]
    python benchmarks/study_backtest.py fit [--rows 3000 --features 15]
    python benchmarks/study_backtest.py parquet [--rows 20000000] [--beside-memory]
    python benchmarks/study_backtest.py dask [--rows 300000]

``gram``: all linear candidates in all cuts, in Gram products of all rows. ``fit``: whole fits,
trees included. Each prints one table; memory is what the process held at most, or beyond the table.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hetrisk import BacktestRegressor
from hetrisk.blocks import ArrayBlocks, DaskBlocks, ParquetBlocks
from hetrisk.core.backtest.candidates import LINEAR
from hetrisk.core.backtest.prepare import prepare
from hetrisk.core.backtest.run import backtest
from hetrisk.estimators.running import runner

PERIODS, CHUNK = 10, 1_000_000


def chunks(n: int, d: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(X, time, y) of consecutive rows: a slope that drifts, a level that rises, one curve."""
    slopes = np.random.default_rng(0).normal(size=d)
    for start in range(0, n, CHUNK):
        rng = np.random.default_rng(1 + start)
        m = min(CHUNK, n - start)
        X, time = rng.normal(size=(m, d)), rng.integers(0, PERIODS, m).astype(float)
        y = X @ slopes + 0.3 * time * (1 + X[:, 0]) + np.abs(X[:, 1]) + rng.normal(size=m)
        yield X, time, y


def table(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All rows at once."""
    X, time, y = zip(*chunks(n, d), strict=True)
    return np.concatenate(X), np.concatenate(time), np.concatenate(y)


def seconds(function: Callable[[], object]) -> float:
    """Time of one call."""
    start = perf_counter()
    function()
    return perf_counter() - start


def held() -> float:
    """Most memory this process has held so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(lines: dict[str, object]) -> None:
    """Print one table."""
    load = os.getloadavg()[0]
    for name, value in {**lines, "load of the machine": f"{load:.1f}"}.items():
        print(f"{name:<52} {value}", flush=True)


BY_ROWS = ("splines", "stable", "levels")  # the others are solved from moments


def weighted_gram(Z: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Z'WZ in one go."""
    return (Z.T * weight) @ Z


def gram(n: int, d: int) -> None:
    """Passes and memory of all linear candidates in all cuts."""
    X, time, y = table(n, d)
    Z, weight = np.column_stack([X, time, y]), np.ones(n)
    product = min(seconds(partial(weighted_gram, Z, weight)) for _ in range(3))
    del Z
    aside = np.column_stack([time, np.full(n, np.nan)])
    rows = ArrayBlocks(X, y, aside=aside)
    candidates = [c for c in LINEAR if c.name not in BY_ROWS]

    def whole() -> list[float]:
        start = perf_counter()
        prepared = prepare(rows, 1, (), str)
        made = perf_counter()
        backtest(prepared.problem, prepared.splits, candidates, runner(None, 0))
        return [made - start, perf_counter() - made, len(prepared.splits)]

    reading, fitting, splits = whole()
    tracemalloc.start()
    whole()
    peak = tracemalloc.get_traced_memory()[1]
    show(
        {
            "rows x columns, environments": f"{n} x {d}, {PERIODS}",
            "linear candidates, trainings": f"{len(candidates)}, {splits:.0f}",
            "a weighted Gram product of all rows, s": f"{product:.3f}",
            "all candidates in all cuts, Gram products": f"{(reading + fitting) / product:.1f}",
            "  of it reading: moments, and a sample by content": f"{reading / product:.1f}",
            "most memory, share of the table's": f"{peak / (X.nbytes + y.nbytes):.2f}",
        }
    )


def fit(n: int, d: int) -> None:
    """A whole fit, trees included."""
    X, time, y = table(n, d)
    data = np.column_stack([X, time])
    before = held()
    model = BacktestRegressor(time=d, verbose=1)
    taken = seconds(lambda: model.fit(data, y))
    show(
        {
            "rows x columns": f"{n} x {d}",
            "chosen": model.best_name_,
            "whole fit, s": f"{taken:.1f}",
            "memory beyond the table, MB": f"{held() - before:.0f}",
            "the table, MB": f"{data.nbytes / 1e6:.0f}",
        }
    )


def parquet(n: int, d: int, beside_memory: bool) -> None:
    """A fit from Parquet, and the memory it takes; the same rows in memory, if asked."""
    names = [f"x{j}" for j in range(d)]
    with tempfile.TemporaryDirectory() as folder:
        for k, (X, time, y) in enumerate(chunks(n, d)):
            columns = {**dict(zip(names, X.T, strict=True)), "when": time, "y": y}
            pq.write_table(pa.table(columns), Path(folder) / f"{k:03}.parquet")
        del X, columns
        rows = ParquetBlocks(folder, target="y", features=names, aside="when")
        model = BacktestRegressor(time="when", verbose=1)
        taken = seconds(lambda: model.fit(rows))
        lines: dict[str, object] = {
            "rows x columns": f"{n} x {d}",
            "chosen": model.best_name_,
            "whole fit from Parquet, s": f"{taken:.1f}",
            "most memory of the process, MB": f"{held():.0f}",
        }
    if beside_memory:
        X, time, y = table(n, d)
        lines["chosen in memory"] = _in_memory(X, time, y, names).best_name_
    show(lines)


def _in_memory(X: np.ndarray, time: np.ndarray, y: np.ndarray, names: list[str]):
    frame = pd.DataFrame(X, columns=names).assign(when=time)
    return BacktestRegressor(time="when").fit(frame, y)


def on_dask(n: int, d: int) -> None:
    """A fit on two workers beside the same in memory."""
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    names = [f"x{j}" for j in range(d)]
    X, time, y = table(n, d)
    frame = pd.DataFrame(X, columns=names).assign(when=time, y=y)
    local = {"processes": True, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster, Client(cluster):
        parts = dd.from_pandas(frame, npartitions=8)
        rows = DaskBlocks(parts[names], parts["y"], aside=parts[["when"]])
        model = BacktestRegressor(time="when")
        taken = seconds(lambda: model.fit(rows))
        predicted = model.predict(rows)
    memory = _in_memory(X, time, y, names)
    most = np.abs(predicted - memory.predict(frame.drop(columns="y"))).max()
    show(
        {
            "rows x columns": f"{n} x {d}",
            "chosen on two workers": model.best_name_,
            "chosen in memory": memory.best_name_,
            "predictions differ by at most": f"{most:.1e}",
            "whole fit on two workers, s": f"{taken:.1f}",
        }
    )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["gram", "fit", "parquet", "dask"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int)
    parser.add_argument("--beside-memory", action="store_true")
    asked = parser.parse_args()
    rows = {"gram": 1_000_000, "fit": 3000, "parquet": 20_000_000, "dask": 300_000}
    features = {"gram": 20, "fit": 15, "parquet": 5, "dask": 10}
    n, d = asked.rows or rows[asked.what], asked.features or features[asked.what]
    if asked.what == "parquet":
        parquet(n, d, asked.beside_memory)
    else:
        {"gram": gram, "fit": fit, "dask": on_dask}[asked.what](n, d)


if __name__ == "__main__":
    main()
