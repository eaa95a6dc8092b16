"""Rows for the benchmarks: a mixture of three regressions, drawn block by block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import FloatArray

SHARES = np.array([0.6, 0.3, 0.1])
NOISE = 0.5
CHUNK = 1 << 17


def true_mixture(d: int) -> MixtureParameters:
    """Three regressions with coefficients of order one, half of them shared."""
    random = np.random.default_rng(0)
    coef = np.tile(random.normal(size=d) / np.sqrt(d), (3, 1))
    coef[:, : max(1, d // 4)] = random.normal(size=(3, max(1, d // 4)))
    variance = np.full(3, NOISE**2)
    return MixtureParameters(SHARES, coef, np.zeros(3), variance, Gaussian())


def chunks(n: int, d: int, part: int = 0) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Blocks of rows of the mixture, n in all; the same for the same part of the table."""
    coef = true_mixture(d).coef
    random = np.random.default_rng([1, part])
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        X = random.standard_normal((m, d))
        which = np.searchsorted(np.cumsum(SHARES), random.random(m))
        noise = NOISE * random.standard_normal(m)
        yield X, np.einsum("nd,nd->n", X, coef[which]) + noise


def table(n: int, d: int, part: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the rows in memory, with no more than a block beside them on the way."""
    X, y, start = np.empty((n, d)), np.empty(n), 0
    for block, target in chunks(n, d, part):
        X[start : start + len(block)], y[start : start + len(block)] = block, target
        start += len(block)
    return X, y


def write_parquet(folder: Path, n: int, d: int) -> Path:
    """Write the rows to files of up to a million rows each, as `table` would hold them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(d)] + [("y", pa.float64())])
    folder.mkdir(parents=True, exist_ok=True)
    writer = None
    for i, (X, y) in enumerate(chunks(n, d)):
        if i % 8 == 0:
            if writer is not None:
                writer.close()
            path = folder / f"part-{i // 8:04d}.parquet"
            writer = pq.ParquetWriter(path, schema, use_dictionary=False)
        assert writer is not None
        writer.write_table(pa.table([*X.T.copy(), y], schema=schema))
    if writer is not None:
        writer.close()
    return folder
