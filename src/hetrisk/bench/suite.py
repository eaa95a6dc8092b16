"""The cases in the order they are told, and a run of them."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from pathlib import Path
from time import perf_counter
from typing import Any

from hetrisk.bench.metric import Metric, Run, Size

EXTRAS = {"dask": "dask", "distributed": "dask", "pyarrow": "parquet"}
LIBRARIES = ("hetrisk", "numpy", "scipy", "scikit-learn", "pyarrow", "dask", "distributed")


@dataclass(frozen=True)
class Case:
    """A claim and the functions that measure it, ``module.function`` each, imported when run."""

    title: str
    functions: tuple[str, ...]


CASES = {
    "backends": Case("Same data, three backends", ("backends.same_answer",)),
    "iteration": Case(
        "One EM iteration", ("iteration.gram_ratio", "iteration.by_rows", "iteration.by_features")
    ),
    "fits": Case(
        "Whole fits",
        ("fits.small_fits", "gates.gate_optimisation", "fits.long_fit", "fits.wide_fit"),
    ),
    "memory": Case("Memory, and data larger than it", ("footprint.in_memory", "footprint.parquet")),
    "cluster": Case("A dask cluster", ("cluster.speed_up", "cluster.lost_worker")),
    "others": Case("Beside other libraries", ("others.flexmix", "others.yardsticks")),
    "constants": Case("Constants", ("constants.measured_constants",)),
}


def run_suite(
    size: Size,
    only: Iterable[str] = (),
    report: Callable[[Metric], None] = lambda metric: None,
    starting: Callable[[str, float], None] = lambda title, done: None,
) -> Run:
    """Run the cases and return what they measured.

    Parameters
    ----------
    size : how large.
    only : names of cases; none for all.
    report : called with each metric as it is known.
    starting : called before each function with the title of its work and the share that is done.
    """
    chosen = list(only) or list(CASES)
    unknown = [name for name in chosen if name not in CASES]
    if unknown:
        raise ValueError(f"cases must be among {', '.join(CASES)}; got {unknown[0]!r}.")
    begun = perf_counter()
    metrics: list[Metric] = []
    series: dict[str, Any] = {}
    work = [(name, function) for name in chosen for function in CASES[name].functions]
    for done, (name, function) in enumerate(work):
        title = f"{CASES[name].title}: {function.split('.')[1].replace('_', ' ')}"
        starting(title, done / len(work))
        for metric in _measure(name, function, size, series):
            metrics.append(metric)
            report(metric)
    return Run(tuple(metrics), machine(), versions(), perf_counter() - begun, size.quick, series)


def _measure(case: str, function: str, size: Size, series: dict[str, Any]) -> list[Metric]:
    """Metrics of one function; one that fails is a metric that says so, and the run goes on."""
    module, name = function.split(".")
    try:
        found = getattr(import_module(f"hetrisk.bench.{module}"), name)(size)
    except ImportError as error:
        return [Metric(case, name.replace("_", " "), math.nan, note=_needs(error))]
    except Exception as error:
        note = f"failed: {type(error).__name__}: {error}"[:300]
        return [Metric(case, name.replace("_", " "), math.nan, note=note)]
    metrics = found
    if isinstance(found, tuple):
        metrics, series[name] = found
    if size.quick:  # the targets are claims about the full sizes
        return [replace(metric, bound=None) for metric in metrics]
    return list(metrics)


def _needs(error: ImportError) -> str:
    """Return what to install for a case a plain installation cannot run."""
    library = (error.name or str(error)).partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is None:
        return f"not run: {error}"
    return f"not run: needs {library}, pip install 'hetrisk[{extra}]'"


def machine() -> dict[str, Any]:
    """Describe what the run ran on."""
    record: dict[str, Any] = {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        record["memory_gb"] = round(memory / 1e9, 1)
    return record


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that were measured."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found
