"""Speed and memory on this machine, as ratios within one run.

    python benchmarks/bench.py [--quick] [--save FILE] [--check FILE]

Seconds differ between machines, ratios of two times of one run hardly do: an EM iteration over the
products it cannot do without, the gates of many rows over those of few, the passes of a fit over
all rows, a pass from Parquet over one from memory, the most memory a fit held over its rows.
``--check`` compares the guarded ones with an earlier run and exits with 1 where one is worse by
more than 30 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from hetrisk import BacktestRegressor, HRMRegressor
from hetrisk.blocks import ArrayBlocks, ParquetBlocks
from hetrisk.core.mixture.mixture import MixtureParameters, em
from hetrisk.core.numerics.families import Gaussian
from hetrisk.datasets import load_task, make_selection_bias

TOLERANCE = 0.3  # two runs on a quiet machine differ by less
SHARES, NOISE, CHUNK, ITERATIONS = np.array([0.6, 0.3, 0.1]), 0.5, 1 << 17, 3
LINEAR = ("constant", "plain", "ridge", "trend", "level", "recent")  # fitted from moments alone


@dataclass(frozen=True)
class Metric:
    """One number; ``guarded``: compared with an earlier run; ``most``: the goal, if any."""

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    guarded: bool = False
    note: str = ""


@dataclass(frozen=True)
class Size:
    """How large the cases are."""

    rows: int = 1_000_000
    parquet_rows: int = 5_000_000
    features: int = 20
    repeats: int = 5


QUICK = Size(rows=20_000, parquet_rows=40_000, repeats=2)


# Rows: a mixture of three regressions, drawn block by block, with a period.


def mixture(d: int) -> MixtureParameters:
    random = np.random.default_rng(0)
    coef = np.tile(random.normal(size=d) / np.sqrt(d), (3, 1))
    coef[:, : max(1, d // 4)] = random.normal(size=(3, max(1, d // 4)))
    return MixtureParameters(SHARES, coef, np.zeros(3), np.full(3, NOISE**2), Gaussian())


def chunks(n: int, d: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    coef, random = mixture(d).coef, np.random.default_rng(1)
    for start in range(0, n, CHUNK):
        X = random.standard_normal((min(CHUNK, n - start), d))
        which = np.searchsorted(np.cumsum(SHARES), random.random(len(X)))
        yield X, np.einsum("nd,nd->n", X, coef[which]) + NOISE * random.standard_normal(len(X))


def table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    blocks = list(chunks(n, d))
    return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


def periods(n: int) -> np.ndarray:
    return np.floor(np.linspace(0, 12, n, endpoint=False))


def write_parquet(folder: Path, n: int, d: int) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{j}" for j in range(d)), "when", "y"]
    when, done = periods(n), 0
    for i, (X, y) in enumerate(chunks(n, d)):
        columns = [*X.T.copy(), when[done : done + len(y)], y]
        done += len(y)
        pq.write_table(pa.table(columns, names=names), folder / f"part-{i:04d}.parquet")
    return folder


# Clocks: functions take turns, so that a slow spell falls on all of them; the shortest counts.


def seconds(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


def shortest(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    taken = [{name: seconds(f) for name, f in functions.items()} for _ in range(repeats)]
    return {name: min(times[name] for times in taken) for name in functions}


def peak_of(case: str, **arguments: float) -> dict[str, float]:
    """Run a case in a process of its own, whose peak of memory is then its own."""
    command = [sys.executable, __file__, "--alone", case, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def status(field: str) -> int:
    # Not getrusage: its peak is inherited from the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


class Counted(ParquetBlocks):
    """Rows in files that count the passes over them."""

    passes = 0

    def sum(self, function):
        self.passes += 1
        return super().sum(function)


def passes_of_a_fit(n: int, d: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        rows = Counted(write_parquet(Path(folder), n, d), target="y", aside="when")
        BacktestRegressor(candidates=list(LINEAR), time="when").fit(rows)
        return rows.passes


# The cases.


def em_iteration(size: Size) -> list[Metric]:
    """One EM iteration over the K weighted Gram products alone, in plain numpy."""
    n, d = size.rows, size.features
    X, y = table(n, d)
    z, weight = np.column_stack([X, y]), np.random.default_rng(0).dirichlet(np.ones(3), size=n)
    start = mixture(d)
    start = replace(start, coef=start.coef + 0.2, variance=4 * start.variance)
    source = ArrayBlocks(X, y)

    def climb() -> int:
        em(
            source.standardised(np.zeros(d + 1), np.ones(d + 1)),
            start,
            tol=-1.0,
            max_iter=ITERATIONS,
        )
        return ITERATIONS

    def products() -> None:
        for w in weight.T:
            _ = z.T @ (z * w[:, None])

    times = shortest({"em": climb, "gram": products}, size.repeats)
    one = times["em"] / (ITERATIONS + 1)  # and one pass for the likelihood at the end
    note = f"n = {n:,}, d = {d}, K = 3; {1e3 * one:.0f} ms an iteration"
    name = "one EM iteration / three weighted Gram products"
    return [Metric(name, one / times["gram"], most=2.0, guarded=True, note=note)]


def gates(size: Size) -> list[Metric]:
    """The paper's loop on many rows over the same on few: what it optimises is moments."""
    from hetrisk import InvariantRegressor

    def fit(n: int) -> Callable[[], object]:
        rare = n // 20
        parts = [
            make_selection_bias(m, r, random_state=i)
            for i, (m, r) in enumerate(((n - rare, 1.9), (rare, -1.1)))
        ]
        X, y = (np.concatenate(p) for p in zip(*parts, strict=True))
        labels = np.repeat([0, 1], [n - rare, rare])
        return lambda: InvariantRegressor().fit(X, y, environments=labels)

    few, many = 2_000, 200_000
    times = shortest({"few": fit(few), "many": fit(many)}, size.repeats)
    note = f"{times['few']:.2f} s at n = {few:,}, {times['many']:.2f} s at {many:,}"
    return [
        Metric(
            "gates, a hundred times the rows", times["many"] / times["few"], guarded=True, note=note
        )
    ]


def fits(size: Size) -> list[Metric]:
    """Seconds of whole fits, and the passes that a backtest of linear candidates makes."""
    X, y, _ = load_task("selection_bias", seed=0).train
    n, d = size.rows, size.features
    big, target = table(n, d)
    rows = np.column_stack([big, periods(n)])
    linear = partial(BacktestRegressor, candidates=list(LINEAR), time=d)
    times = shortest(
        {
            "paper": lambda: HRMRegressor(random_state=0).fit(X, y),
            "backtest": lambda: linear().fit(rows, target),
        },
        max(1, size.repeats - 3),
    )
    return [
        Metric("HRMRegressor, n = 2,000, d = 10", times["paper"], "s"),
        Metric("backtest of linear candidates", times["backtest"], "s", note=f"n = {n:,}, d = {d}"),
        Metric("passes of that fit over the rows", passes_of_a_fit(20_000, d), guarded=True),
    ]


def memory(size: Size) -> list[Metric]:
    """The most a fit held over its rows, and what a fit from Parquet holds in all."""
    n, d = size.rows, size.features
    held = peak_of("fit_in_memory", n=n, d=d)
    with tempfile.TemporaryDirectory() as folder:
        write_parquet(Path(folder), size.parquet_rows, d)
        file = peak_of("fit_parquet", folder=folder)
    name = "peak of a fit in memory / its rows"
    note = f"n = {size.parquet_rows:,}, d = {d}, {file['seconds']:.0f} s"
    return [
        Metric(name, held["peak"] / held["rows"], most=3.0, note=f"n = {n:,}, d = {d}"),
        Metric(
            "peak of a fit from Parquet, the whole process",
            file["peak"] / 1e9,
            "GB",
            1.0,
            note=note,
        ),
    ]


def fit_in_memory(n: int, d: int) -> dict[str, float]:
    X, y = table(int(n), int(d))
    rows = np.column_stack([X, periods(len(y))])
    del X
    before = status("VmRSS:") - rows.nbytes - y.nbytes
    BacktestRegressor(candidates=list(LINEAR), time=int(d)).fit(rows, y)
    return {"peak": status("VmHWM:") - before, "rows": rows.nbytes + y.nbytes}


def fit_parquet(folder: str) -> dict[str, float]:
    rows = ParquetBlocks(folder, target="y", aside="when")
    taken = seconds(lambda: BacktestRegressor(candidates=list(LINEAR), time="when").fit(rows))
    return {"peak": status("VmHWM:"), "seconds": taken}


CASES = (em_iteration, gates, fits, memory)
ALONE = {"fit_in_memory": fit_in_memory, "fit_parquet": fit_parquet}


def run(size: Size) -> list[Metric]:
    found = []
    for case in CASES:
        for metric in case(size):
            goal = "" if metric.most is None else f"  (goal: at most {metric.most:g})"
            print(
                f"{metric.name:48s} {metric.value:8.3g} {metric.unit:3s}{goal}  {metric.note}",
                flush=True,
            )
            found.append(metric)
    return found


def worse(now: list[Metric], before: list[dict]) -> list[str]:
    """Sentences on the guarded ratios that are worse than they were."""
    value = {metric.name: metric.value for metric in now}
    return [
        f"{then['name']}: was {then['value']:.3g}, now {value.get(then['name'], np.nan):.3g}."
        for then in before
        if then["guarded"]
        and not value.get(then["name"], np.nan) <= (1 + TOLERANCE) * then["value"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--save", type=Path, help="write the numbers to this file")
    parser.add_argument("--check", type=Path, help="compare with the numbers in this file")
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(ALONE[given.alone[0]](**json.loads(given.alone[1]))))
        return 0
    metrics = run(QUICK if given.quick else Size())
    if given.save:
        record = {"cores": os.cpu_count(), "metrics": [asdict(metric) for metric in metrics]}
        given.save.write_text(json.dumps(record, indent=1) + "\n")
    said = worse(metrics, json.loads(given.check.read_text())["metrics"]) if given.check else []
    print("\n".join(said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
