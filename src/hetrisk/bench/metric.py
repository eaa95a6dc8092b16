"""What a benchmark measured: metrics with their targets, and the run they belong to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hetrisk import atomic

AT_MOST, AT_LEAST = "at most", "at least"


@dataclass(frozen=True)
class Metric:
    """One number.

    Attributes
    ----------
    case : name of the case it comes from.
    name : what was measured, in words.
    value : NaN where it could not be measured; ``note`` then says why.
    unit : "" for a ratio.
    bound, sense : the target, "at most" or "at least"; None for a number reported as it is.
    guarded : compared with the baseline by the regression check. Only ratios of two times of
        the same run are: seconds differ between machines.
    note : sizes, and what the ratio is of.
    """

    case: str
    name: str
    value: float
    unit: str = ""
    bound: float | None = None
    sense: str = AT_MOST
    guarded: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None where there is none, or nothing was measured."""
        if self.bound is None or math.isnan(self.value):
            return None
        return self.value <= self.bound if self.sense == AT_MOST else self.value >= self.bound


@dataclass(frozen=True)
class Size:
    """How large the cases are: the sizes of the claims, or small ones that only show the path."""

    quick: bool
    rows: int = 1_000_000
    rows_path: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    features: int = 20
    features_path: tuple[int, ...] = (20, 50, 100, 200)
    parquet_rows: int = 20_000_000
    throughput_rows: int = 2_000_000
    dask_rows: int = 2_000_000
    backend_rows: int = 50_000
    wide_features: int = 200
    repeats: int = 5

    @classmethod
    def full(cls) -> Size:
        """Return the sizes of the claims."""
        return cls(quick=False)

    @classmethod
    def small(cls) -> Size:
        """Return sizes that take a minute or two in all."""
        return cls(
            quick=True,
            rows=100_000,
            rows_path=(50_000, 100_000, 200_000),
            features_path=(20, 50, 100),
            parquet_rows=400_000,
            throughput_rows=200_000,
            dask_rows=400_000,
            backend_rows=4_000,
            wide_features=40,
            repeats=3,
        )


@dataclass(frozen=True)
class Run:
    """Everything one run measured, on what, and the series behind its figures."""

    metrics: tuple[Metric, ...]
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float
    quick: bool
    series: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write the run as JSON; what could not be measured becomes null."""
        record = asdict(self)
        for metric in record["metrics"]:
            if math.isnan(metric["value"]):
                metric["value"] = None
        atomic.write_bytes(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a run that `save` wrote."""
        record = json.loads(Path(path).read_text())
        for metric in record["metrics"]:
            if metric["value"] is None:
                metric["value"] = math.nan
        record["metrics"] = tuple(Metric(**metric) for metric in record["metrics"])
        return cls(**record)
