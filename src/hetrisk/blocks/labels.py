"""Labels of environments: in what order they stand, wherever the rows live."""

from __future__ import annotations

import numpy as np
import pandas as pd


def quoted(label: object) -> str:
    """Return a label as it would be typed: 0 and 'a', whatever type of number an array holds."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def as_numbers(values: pd.Series) -> pd.Series:
    """Text that is numbers throughout, such as years, as numbers: they have an order."""
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values
    levels = pd.unique(values)
    numbers = pd.to_numeric(pd.Series(levels), errors="coerce")
    if numbers.isna().any() or numbers.nunique() < len(levels):
        return values
    return values.map(dict(zip(levels, numbers, strict=True)))


def sorted_labels(labels: np.ndarray) -> np.ndarray:
    """Return distinct labels sorted: as numbers where they are numbers throughout."""
    values = as_numbers(pd.Series(labels)).to_numpy()
    return labels[np.argsort(values, kind="stable")]


def have_order(values: pd.Series) -> bool:
    """Whether labels stand in an order that means something: numbers, dates."""
    dtype = as_numbers(values).dtype
    if pd.api.types.is_bool_dtype(dtype):
        return False
    return bool(pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype))
