"""Fitted attributes described in a line each, and checked against one another.

A description is a kind and its dimensions: ``"float r d"`` is an array of floats with r rows
and d columns. A letter means the same number in all attributes of one estimator; a digit means
itself. ``"count d"`` is the whole number d, ``"labels c"`` are c different labels in order,
``"number"`` one finite float. Alternatives are separated by ``|``; ``"none"`` is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk.modelfile.errors import ModelFileError

Sizes = dict[str, int]


def check_shapes(owner: str, values: dict[str, Any], described: dict[str, str]) -> Sizes:
    """Return the sizes the letters stand for, or refuse attributes that do not go together.

    Parameters
    ----------
    owner : the estimator, for the message.
    values : attributes as read.
    described : the description of every attribute that must be there; a name that ends in
        ``?`` may be missing.
    """
    sizes: Sizes = {}
    for name, description in described.items():
        plain = name.rstrip("?")
        if plain not in values:
            if name.endswith("?"):
                continue
            raise ModelFileError(f"is damaged or was tampered with: {owner} has no {plain}")
        for option in description.split("|"):
            bound = match(values[plain], option.split(), sizes)
            if bound is not None:
                sizes = bound
                break
        else:
            raise ModelFileError(
                f"is damaged or was tampered with: {plain} of {owner} is not {description}"
            )
    return sizes


def match(value: Any, description: list[str], sizes: Sizes) -> Sizes | None:
    """Return the sizes with those of ``value`` added, or None where it does not fit."""
    kind, *dimensions = description
    if kind == "none":
        return sizes if value is None else None
    shape = KINDS[kind](value)
    if shape is None or len(shape) != len(dimensions):
        return None
    bound = dict(sizes)
    for letter, size in zip(dimensions, shape, strict=True):
        expected = int(letter) if letter.isdigit() else bound.setdefault(letter, size)
        if size != expected:
            return None
    return bound


def _float(value: Any) -> tuple[int, ...] | None:
    right = isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isfinite(value).all()
    return value.shape if right else None


def _measured(value: Any) -> tuple[int, ...] | None:
    right = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value.shape if right else None


def _number(value: Any) -> tuple[int, ...] | None:
    number = isinstance(value, (float, int, np.floating)) and not isinstance(value, bool)
    return () if number and np.isfinite(value) else None


def _count(value: Any) -> tuple[int, ...] | None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return (int(value),) if whole and value >= 0 else None


def _labels(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufMUO":
        return None
    return value.shape if len(set(value.tolist())) == len(value) else None


def _texts(value: Any) -> tuple[int, ...] | None:
    right = isinstance(value, np.ndarray) and value.dtype.kind in "UO" and value.ndim == 1
    return value.shape if right and all(isinstance(text, str) for text in value) else None


KINDS = {
    "float": _float,
    "measured": _measured,  # floats that may be NaN
    "number": _number,
    "count": _count,
    "labels": _labels,
    "texts": _texts,
}
