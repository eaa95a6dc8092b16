"""Argument checks shared by the simulators and the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import FloatArray

RandomState = int | np.random.Generator | None


def at_least(name: str, value: int, lowest: int) -> None:
    """Raise unless ``value`` is an integer of at least ``lowest``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest}; got {value}.")


def fraction(name: str, value: float) -> None:
    """Raise unless ``value`` lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}.")


def one_of(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def vector(name: str, value: Sequence[float] | np.ndarray, length: int) -> FloatArray:
    """Return ``value`` as a float vector, or raise unless it has ``length`` finite entries."""
    array: FloatArray = np.asarray(value, dtype=np.float64)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},); got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got {array}.")
    return array
