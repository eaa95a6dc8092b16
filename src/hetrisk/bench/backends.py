"""The same rows in memory, in Parquet and on dask: the same answer."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hetrisk.bench.fits import fitted, selection_bias
from hetrisk.bench.metric import AT_LEAST, Metric, Size
from hetrisk.core.numerics.floors import TINY
from hetrisk.estimators.hrm import HRMRegressor

CASE = "backends"


def same_answer(size: Size) -> list[Metric]:
    """Largest difference of a coefficient, and whether the same features were kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hetrisk.blocks import ParquetBlocks

    array: Any = import_module("dask.array")
    n, d = size.backend_rows, 10
    X, y = selection_bias(n, d)
    columns = {f"x{j}": X[:, j] for j in range(d)} | {"y": y}
    with TemporaryDirectory() as folder:
        pq.write_table(pa.table(columns), Path(folder) / "t.parquet", row_group_size=n // 7)
        models = [
            fitted(X, y),
            HRMRegressor(random_state=0).fit(ParquetBlocks(folder, target="y", block_rows=n // 9)),
            HRMRegressor(random_state=0).fit(array.from_array(X, chunks=(n // 5, d)), y),
        ]
    first = models[0]
    scale = max(float(np.abs(first.coef_).max()), TINY)
    gap = max(float(np.abs(m.coef_ - first.coef_).max()) / scale for m in models[1:])
    same = all(np.array_equal(m.support_, first.support_) for m in models[1:])
    note = f"arrays, Parquet, dask; n = {n:,}, d = {d}, {int(first.support_.sum())} features kept"
    return [
        Metric(
            "backends", "largest relative difference of a coefficient", gap, bound=1e-8, note=note
        ),
        Metric("backends", "same features kept", float(same), bound=1.0, sense=AT_LEAST, note=note),
    ]
