"""What later rows are held against: made from the rows a model was fitted to, stored with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetrisk.core.backtest.adaptation import Drift
from hetrisk.core.drift.columns import Columns, summarise
from hetrisk.core.drift.rise import Misses, misses
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.report.learned import Sample
from hetrisk.report.summary import ColumnLine

MOST_LINES = 40  # columns whose slopes are compared: those of most weight


@dataclass(frozen=True)
class Reference:
    """Summaries of the rows a model was fitted to, and never one of them.

    Its fields are those of ``REFERENCE`` in `hetrisk.modelfile.schema`.

    Attributes
    ----------
    names, groups : (p,) numbers the model sees, and the columns of the table they come from.
    columns : their distributions.
    weights : how far each column of the table moves predictions.
    constant : (K,) mean outcome.
    misses : residuals over some of the columns; None where there were too few rows.
    missed, centre : names of these columns, and their means.
    environments : "name" and "share" of each.
    drift : how far scores were off in environments left out, for adapting; None without a backtest.
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    columns: Columns
    weights: Mapping[str, float]
    constant: FloatArray
    misses: Misses | None
    missed: tuple[str, ...]
    centre: FloatArray
    environments: tuple[Mapping[str, Any], ...] = ()
    drift: Drift | None = None


def reference_of(
    s: Sample,
    lines: Sequence[ColumnLine],
    drift: Drift | None = None,
) -> Reference:
    """Return the reference of a fitted model.

    Parameters
    ----------
    s : rows it was fitted to.
    lines : the columns with their weights.
    drift : what a backtest found of how environments differ.
    """
    order = [line.name for line in lines if line.weight > 0]
    ranked = sorted(
        (j for j, group in enumerate(s.groups) if group in order),
        key=lambda j: order.index(s.groups[j]),
    )
    chosen = ranked[: min(MOST_LINES, len(s.X) // 5)]
    X = np.nan_to_num(s.X[:, chosen])
    centre = X.mean(axis=0)
    return Reference(
        names=s.names,
        groups=s.groups,
        columns=summarise(s.observed),
        weights={line.name: line.weight for line in lines},
        constant=s.y.mean(axis=0),
        misses=misses(X, s.y - s.predicted, centre) if len(X) > 1 else None,
        missed=tuple(s.names[j] for j in chosen),
        centre=centre,
        environments=_shares(s.environment),
        drift=drift,
    )


def _shares(environment: np.ndarray | None) -> tuple[Mapping[str, Any], ...]:
    if environment is None:
        return ()
    names, counts = np.unique(environment.astype(str), return_counts=True)
    shares = zip(names.tolist(), (counts / counts.sum()).tolist(), strict=True)
    return tuple({"name": name, "share": share} for name, share in shares)
