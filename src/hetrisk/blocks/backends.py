"""Which backend holds a table: what estimators are given, as `Blocks`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from hetrisk.blocks.base import Blocks
from hetrisk.blocks.memory import ArrayBlocks


def is_out_of_core(X: Any) -> bool:
    """Whether ``X`` is blocks already, or a dask collection: rows that are not all in memory."""
    return isinstance(X, Blocks) or is_dask(X)


def is_dask(X: Any) -> bool:
    """Whether ``X`` is a dask collection; dask is not imported to find out."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def as_blocks(
    X: Any,
    y: Any = None,
    weight: Any = None,
    environments: np.ndarray | None = None,
    aside: Any = None,
) -> Blocks:
    """Return rows as blocks, wherever they live.

    Parameters
    ----------
    X : an array (n, d), a dask array or dataframe, or blocks (which bring their own target,
        weights and environments: the other arguments must then be None).
    y : (n,) targets; None for blocks, or for dask rows to predict.
    weight : (n,) sample weights, or None.
    environments : (n, K) responsibilities, or None; labels (n,) for dask rows.
    aside : (n, m) side information, or None.
    """
    if isinstance(X, Blocks):
        given = {
            "y": y,
            "sample_weight": weight,
            "environments": environments,
            "aside": aside,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name} must be None when X is {type(X).__name__}, which names its own "
                    f"columns; got {type(value).__name__}."
                )
        return X
    if is_dask(X):
        from hetrisk.blocks.dask import DaskBlocks

        return DaskBlocks(X, y, weight=weight, environments=environments, aside=aside)
    if y is None:
        raise ValueError("y must be given when X is an array; got None.")
    return ArrayBlocks(np.asarray(X), np.asarray(y), weight, environments)
