"""How far it goes, on paper: what an EM iteration moves at a billion rows and beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hetrisk import atomic
from hetrisk.bench.metric import Run

WORKERS = 100
WORKER_MEMORY = 16e9
PARTITION_ROWS = 2_000_000
NETWORK = 1.25e9  # bytes a second of a 10 Gbit/s link, an assumption
FAN_IN = 8


@dataclass(frozen=True)
class Estimate:
    """What one EM iteration costs on the cluster.

    Attributes
    ----------
    data, held : bytes of all rows, and whether the workers' memory holds them.
    read : bytes each worker reads from storage.
    compute_seconds, read_seconds : each worker's time for its share.
    tasks, schedule_seconds : tasks of the pass, and the scheduler's time for them.
    sent, received : bytes over the network: the function, and the sums of the tree.
    network_seconds : their time over the client's link.
    """

    rows: float
    data: float
    held: bool
    read: float
    compute_seconds: float
    read_seconds: float
    tasks: float
    schedule_seconds: float
    sent: float
    received: float
    network_seconds: float

    @property
    def seconds(self) -> float:
        """Time of an iteration: a worker reads, then computes; the scheduler runs beside it."""
        return max(self.read_seconds + self.compute_seconds, self.schedule_seconds)

    @property
    def slowest(self) -> str:
        """What an iteration waits for."""
        times = {
            "computing": self.compute_seconds,
            "reading": self.read_seconds,
            "the scheduler": self.schedule_seconds,
            "the network": self.network_seconds,
        }
        return max(times, key=lambda name: times[name])


def estimate(rows: float, constants: Mapping[str, float]) -> Estimate:
    """Work out one EM iteration over ``rows`` on the cluster, from measured constants."""
    data = 8 * (constants["features"] + 1) * rows
    held = data <= 0.5 * WORKERS * WORKER_MEMORY
    share = rows / WORKERS
    read = 0.0 if held else data / WORKERS
    partitions = rows / PARTITION_ROWS
    # The tree adds 1/8 + 1/64 + ... of the partitions as tasks, each with up to 8 sums moved.
    tasks = partitions * (1 + 1 / (FAN_IN - 1))
    sent = constants["sent_bytes"] * WORKERS
    received = constants["received_bytes"] * tasks
    return Estimate(
        rows=rows,
        data=data,
        held=held,
        read=read,
        compute_seconds=1e-9 * constants["row_ns"] * share,
        read_seconds=read / constants["read_bytes_per_second"],
        tasks=tasks,
        schedule_seconds=1e-3 * constants["task_ms"] * tasks,
        sent=sent,
        received=received,
        network_seconds=(sent + received / WORKERS) / NETWORK,
    )


def write_scale(run: Run, folder: Path) -> Path:
    """Write ``scale.md`` from the constants of a run."""
    constants = run.series["measured_constants"]
    path = folder / "scale.md"
    atomic.write_bytes(path, scale_page(constants).encode())
    return path


def scale_page(c: Mapping[str, float]) -> str:
    """Return the page for these constants."""
    small, large = estimate(1e9, c), estimate(1e11, c)
    rows = [
        ("rows in all", *(_bytes(e.data) for e in (small, large))),
        ("held in the workers' memory", *("yes" if e.held else "no" for e in (small, large))),
        ("read from storage, a worker", *(_bytes(e.read) for e in (small, large))),
        ("time to read, a worker", *(_time(e.read_seconds) for e in (small, large))),
        ("time to compute, a worker", *(_time(e.compute_seconds) for e in (small, large))),
        ("function sent, all workers", *(_bytes(e.sent) for e in (small, large))),
        ("sums moved in the tree", *(_bytes(e.received) for e in (small, large))),
        ("tasks", *(f"{e.tasks:,.0f}" for e in (small, large))),
        ("time of the scheduler", *(_time(e.schedule_seconds) for e in (small, large))),
        ("waits for", *(e.slowest for e in (small, large))),
        ("time of an iteration", *(_time(e.seconds) for e in (small, large))),
        (
            f"time of a default fit, {c['fit_passes']:.0f} passes",
            *(_time(c["fit_passes"] * e.seconds) for e in (small, large)),
        ),
    ]
    table = "\n".join(f"| {a} | {b} | {d} |" for a, b, d in rows)
    limit = _scheduler_limit(c)
    return TEXT.format(
        d=int(c["features"]),
        workers=WORKERS,
        memory=_bytes(WORKER_MEMORY),
        partition=f"{PARTITION_ROWS:,}",
        row_ns=f"{c['row_ns']:.0f}",
        rate=f"{c['read_bytes_per_second'] / 1e6:.0f}",
        task=f"{c['task_ms']:.2f}",
        sent=_bytes(c["sent_bytes"]),
        received=_bytes(c["received_bytes"]),
        table=table,
        share=_bytes(large.data / WORKERS),
        limit=f"{float(f'{limit:.2g}'):,.0f}",
        fan_in=FAN_IN,
        stall=_time(large.read_seconds),
        compute=_time(large.compute_seconds),
        passes=f"{c['fit_passes']:.0f}",
        naive=_bytes(3 * 8 * 1e11),
        ratio=f"{small.data / (small.sent + small.received):,.0f}",
    )


def _scheduler_limit(c: Mapping[str, float]) -> float:
    """Number of workers whose computing takes as long as the scheduler's work for it."""
    scheduling = 1e-3 * c["task_ms"] * (1 + 1 / (FAN_IN - 1))
    return 1e-9 * c["row_ns"] * PARTITION_ROWS / scheduling


def _bytes(value: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} B"


def _time(value: float) -> str:
    if value >= 120:
        return f"{value / 60:.1f} min"
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


TEXT = """# A billion rows and beyond, on paper

Written by `hetrisk bench --docs docs` from constants measured on one machine; the rest is
arithmetic, in `hetrisk.bench.scale`. One EM iteration over n rows with d = {d} features and
K = 3 components, on {workers} single-thread workers with {memory} of memory each, partitions of
{partition} rows, and sums added in a tree of fan-in {fan_in}.

Measured: {row_ns} ns a row and iteration on one thread; Parquet decoded at {rate} MB/s on one
thread; {task} ms of the scheduler a task; {sent} of function sent to each worker a pass; {received}
of sums sent back a partition. Assumed: a link of 10 Gbit/s, and storage that keeps up with the
decoding.

| one EM iteration | n = 10^9 | n = 10^11 |
| --- | ---: | ---: |
{table}

## What moves

Rows do not. A worker keeps its partitions (or reads them again) and sends back the sums of each:
K sets of moments of d + 1 columns, whatever the number of rows in the partition. At 10^9 rows
the bytes of the rows are {ratio} times the bytes that cross the network. Responsibilities, n x K
numbers ({naive} at 10^11 rows), are never held or moved: each pass makes those of a block and
forgets them. A search draws its starts on a sample of a fixed number of rows, so what grows with
n is the number of passes over all rows ({passes} for a default fit of the rows measured) times the
cost of one, nothing else.

## What would break first

1. *Memory, and with it reading.* At 10^11 rows the {share} of a worker do not fit in its memory, so
   every pass reads them again: {stall} an iteration beside {compute} of computing. More workers
   help both in proportion; so would columns kept in single precision (half the bytes).
2. *The scheduler.* It handles one task at a time. With partitions of {partition} rows it keeps up
   with about {limit} workers before it takes longer than they do; beyond that, larger
   partitions. Partitions must fit a worker a few times over, which bounds them near a tenth of
   its memory.
3. *Knowing the number of rows.* Parquet says so in its footers. A dask collection whose lengths
   are unknown costs one pass to count, made once.
4. *Rounding does not.* Moments are centred in each block and merged, block by block within a
   partition and then in a tree of fixed shape: the error grows with the blocks of a partition and
   the depth of the tree, not with n, and a run gives the same digits whichever worker was
   quicker, or died.
5. *A worker lost* costs its partitions of the current pass, computed again elsewhere; rows it
   held from `persist()` are read again. Rows that were *scattered* to workers have no recipe and
   are lost with them: read from files instead.
"""
