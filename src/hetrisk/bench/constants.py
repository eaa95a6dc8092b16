"""What moves and how fast: the constants that tell how far the design goes."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hetrisk.bench.clock import shortest
from hetrisk.bench.cluster import workers
from hetrisk.bench.iteration import CountedPasses, SeenThrough, away_from, climb
from hetrisk.bench.metric import Metric, Size
from hetrisk.bench.rows import table, true_mixture, write_parquet
from hetrisk.blocks import ArrayBlocks
from hetrisk.blocks.stream import single_blas_thread
from hetrisk.core.mixture.mixture import em
from hetrisk.estimators.hrm import HRMRegressor

TASKS = 400


class _Recorded(CountedPasses):
    """Keeps the size of the function of a pass and of what it brings back."""

    sent = received = 0

    def sum(self, function: Any) -> Any:
        """Sum over the source, weighing both ways."""
        result = super().sum(function)
        self.sent, self.received = len(pickle.dumps(function)), len(pickle.dumps(result))
        return result


class _OneThread(SeenThrough):
    """Rows in memory, summed on the caller's thread: the work of one single-thread worker."""

    def sum(self, function: Any) -> Any:
        with single_blas_thread():
            return self.source.stride_sum(function, range(0, self.n_rows, self.source.block_rows))


class _CountedArray(ArrayBlocks):
    """Rows in memory that count the passes over them."""

    passes = 0

    def sum(self, function: Any) -> Any:
        """Sum over the blocks: one pass."""
        self.passes += 1
        return super().sum(function)


def fit_passes(n: int, d: int) -> int:
    """Passes over all rows that a default fit makes."""
    source = _CountedArray(*table(n, d))
    HRMRegressor(random_state=0).fit(source)
    return source.passes


def measured_constants(size: Size) -> tuple[list[Metric], dict[str, float]]:
    """Bytes sent and received a pass, time a row and a task, and bytes read a second."""
    n, d = min(size.rows, 400_000), size.features
    source, start = ArrayBlocks(*table(n, d)), away_from(true_mixture(d))
    recorded = _Recorded(source)
    em(recorded, start, tol=-1.0, max_iter=1)
    passes = climb(_OneThread(source), start)
    one = shortest({"em": partial(climb, _OneThread(source), start)}, size.repeats)["em"]
    found = {
        "features": float(d),
        "sent_bytes": float(recorded.sent),
        "received_bytes": float(recorded.received),
        "row_ns": 1e9 * one / passes / n,
        "task_ms": 1e3 * _task_seconds(),
        "read_bytes_per_second": _read_rate(n, d),
        "fit_passes": float(fit_passes(n, d)),
    }
    units = {
        "sent_bytes": "B",
        "received_bytes": "B",
        "row_ns": "ns",
        "task_ms": "ms",
        "fit_passes": "",
    }
    words = {
        "sent_bytes": "function sent to a worker, a pass",
        "received_bytes": "sums sent back, a partition and pass",
        "row_ns": "one EM iteration on one thread, a row",
        "task_ms": "dask scheduler, a task",
        "fit_passes": "passes over all rows of a default fit",
    }
    note = f"d = {d}, K = 3"
    metrics = [
        Metric("constants", words[k], found[k], units[k], note=note, guarded=k == "fit_passes")
        for k in words
    ]
    rate = found["read_bytes_per_second"] / 1e6
    metrics.append(Metric("constants", "Parquet decoded on one thread", rate, "MB/s", note=note))
    return metrics, found


def _task_seconds() -> float:
    """Time a task costs the scheduler, from many that do nothing."""
    with workers(1) as client:
        numbers = list(range(TASKS))
        client.gather(client.map(_nothing, numbers, pure=False))
        run = partial(_round_trip, client, numbers)
        return shortest({"tasks": run}, 2)["tasks"] / TASKS


def _round_trip(client: Any, numbers: list[int]) -> None:
    client.gather(client.map(_nothing, numbers, pure=False))


def _nothing(number: int) -> int:
    return number


def _read_rate(n: int, d: int) -> float:
    """Bytes of rows decoded a second on the one thread that reads, files in the page cache."""
    from hetrisk.blocks.files import batches, open_parts, parquet_paths

    with TemporaryDirectory() as folder:
        write_parquet(Path(folder), n, d)
        parts = open_parts(parquet_paths(folder))

        def read() -> None:
            for part in parts:
                for _ in batches(part, part.schema.names, 1 << 15):
                    pass

        taken = shortest({"read": read}, 3)["read"]
    return float(8 * n * (d + 1) / taken)
