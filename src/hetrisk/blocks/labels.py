"""Labels of environments, and responsibilities: the same rule wherever the rows live."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from hetrisk.columns.dates import iso, plain
from hetrisk.core.numerics.rows import FloatArray

SUM_TOLERANCE = 1e-6  # a row of responsibilities may miss a sum of one by this much


def in_numpy(given: Any) -> Any:
    """Columns of Arrow, or held by it in pandas, as numpy can read them; anything else as it is."""
    # By name: Arrow need not be installed.
    if type(given).__module__.split(".")[0] == "pyarrow":
        given = given.to_pandas()
    if isinstance(given, pd.DataFrame) and given.shape[1] == 1:
        given = given.iloc[:, 0]
    return plain(given) if isinstance(given, pd.Series) else given


def name_of(given: Any) -> str:
    """What labels are called, as a Series or a frame of one column; "" where they have no name."""
    names = list(getattr(given, "columns", ()))
    name = names[0] if len(names) == 1 else getattr(given, "name", None)
    return "" if name is None else str(name)


def as_labels(given: Any) -> np.ndarray:
    """(n,) labels as they are compared: dates of any library as datetime64."""
    labels: np.ndarray = plain(pd.Series(given, copy=False)).to_numpy()
    return labels


def shown(label: Any) -> str:
    """Return a label as people write it: whole numbers without a point, dates as ISO 8601 does."""
    if isinstance(label, pd.Timestamp | np.datetime64):
        return iso(pd.Timestamp(label))
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def quoted(label: object) -> str:
    """Return a label as it would be typed: 0 and 'a', whatever type of number an array holds."""
    if isinstance(label, pd.Timestamp | np.datetime64):
        return repr(shown(label))
    return repr(label.item() if isinstance(label, np.generic) else label)


def refuse_mixed(name: str, labels: np.ndarray) -> None:
    """Refuse labels, none missing, of several kinds: they have no order, or True equals 1."""
    if labels.dtype != object:
        return
    kinds: dict[str, type] = {}
    for held in dict.fromkeys(map(type, labels.tolist())):
        kinds.setdefault(_kind_of(held), held)
    if len(kinds) > 1:
        got = [quoted(next(x for x in labels if type(x) is held)) for held in kinds.values()]
        raise ValueError(
            f"{name} must hold labels of one kind, all numbers, all text or all truths; got "
            f"{got[0]} and {got[1]}."
        )


def _kind_of(held: type) -> str:
    """What labels of a type are, as far as two of them can be compared."""
    if issubclass(held, str):
        return "text"
    if issubclass(held, bool | np.bool):
        return "truth"
    return "number" if issubclass(held, Number) else held.__name__


def sorted_labels(labels: np.ndarray) -> np.ndarray:
    """Return distinct labels sorted: text as the numbers it spells, where it does throughout."""
    values = plain(pd.Series(labels))
    if values.dtype.kind in "OT":
        numbers = pd.to_numeric(values, errors="coerce")
        values = values if numbers.isna().any() else numbers
    return labels[np.argsort(values.to_numpy(), kind="stable")]


def check_shares(given: np.ndarray) -> FloatArray:
    """(n, K) numbers that are shares of a row: not negative, one together."""
    if given.dtype.kind not in "fiub":
        raise TypeError(
            f"environments given as responsibilities must be numbers; got dtype {given.dtype}."
        )
    shares: FloatArray = given.astype(np.float64)
    # Written so that NaN fails: every comparison with it is false.
    if not (np.all(shares >= 0) and np.all(np.abs(shares.sum(axis=1) - 1.0) <= SUM_TOLERANCE)):
        raise ValueError(
            "environments given as responsibilities must be non-negative with rows summing to one."
        )
    return shares
