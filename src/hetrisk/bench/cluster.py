"""Two dask workers against one, and a worker lost in the middle of a fit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any

import numpy as np

from hetrisk.bench.clock import shortest
from hetrisk.bench.iteration import away_from, climb
from hetrisk.bench.metric import AT_LEAST, Metric, Size
from hetrisk.bench.rows import table, true_mixture

ITERATIONS = 5
PARTITIONS = 8


@contextmanager
def workers(n: int) -> Iterator[Any]:
    """Processes of one thread each on this machine, and a client to them."""
    distributed: Any = import_module("dask.distributed")
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=1, processes=True, **options
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def speed_up(size: Size) -> list[Metric]:
    """Time of EM on one worker over its time on two, rows held by the workers."""
    times = {}
    for n in (1, 2):
        with workers(n):
            source, start = _persisted(size)
            climb(source, start, 1)
            run = partial(climb, source, start, ITERATIONS)
            times[n] = shortest({"em": run}, max(2, size.repeats - 2))["em"]
    note = f"n = {size.dask_rows:,}, d = {size.features}, {PARTITIONS} partitions, {ITERATIONS} EM"
    name = "speed of two single-thread workers / one"
    return [
        Metric(
            "cluster", name, times[1] / times[2], bound=1.6, sense=AT_LEAST, guarded=True, note=note
        )
    ]


def lost_worker(size: Size) -> list[Metric]:
    """Largest change of a coefficient when a worker is killed while EM runs."""
    from hetrisk.core.mixture.mixture import em

    with workers(2) as client:
        source, start = _persisted(replace(size, dask_rows=size.dask_rows // 4))
        run = partial(em, source, start, tol=-1.0, max_iter=2 * ITERATIONS)
        undisturbed = run().value
        pids = list(client.run(os.getpid).values())
        killer = Thread(target=_kill_soon, args=(pids[0],))
        killer.start()
        survived = run().value
        killer.join()
        replaced = set(client.run(os.getpid).values()) != set(pids)
    gap = float(np.abs(survived.coef - undisturbed.coef).max()) if replaced else float("nan")
    note = "a process killed 0.2 s into the run" if replaced else "no worker was replaced"
    return [
        Metric("cluster", "change of a coefficient when a worker dies", gap, bound=0.0, note=note)
    ]


def _kill_soon(pid: int) -> None:
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)


def _persisted(size: Size) -> tuple[Any, Any]:
    from hetrisk.blocks import DaskBlocks

    array: Any = import_module("dask.array")
    distributed: Any = import_module("dask.distributed")

    n, d = size.dask_rows // PARTITIONS, size.features
    parts = array.map_blocks(
        partial(_partition, rows=n, features=d),
        chunks=((n,) * PARTITIONS, (d + 1,)),
        dtype=float,
    ).persist()
    distributed.wait(parts)
    return DaskBlocks(parts[:, :d], parts[:, d]), away_from(true_mixture(d))


def _partition(rows: int, features: int, block_info: Any = None) -> np.ndarray:
    """One partition, drawn where it will live: no rows travel."""
    number = block_info[None]["chunk-location"][0] if block_info else 0
    X, y = table(rows, features, number)
    return np.column_stack([X, y])
