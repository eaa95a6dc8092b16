"""A model as a tree of plain JSON and a run of bytes, through a fixed list of kinds.

Text, whole and finite numbers, true, false, null and lists stand for themselves; everything
else is an object ``{"is": tag, ...}`` whose tag names a `Kind`. A tag that is not in the list is
refused, on the way in and on the way out: there is no kind for functions, methods, modules or
classes, so a file has no words for them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from hetrisk.modelfile.errors import ModelFileError
from hetrisk.tables.errors import quoted

DEEPEST = 60  # a forest in a pipeline in a model is 12 deep
MOST_PARTS = 500_000  # ten thousand boosted trees have 240,000
LARGEST_INTEGER = 1 << 64
ROOM_FOR_TEXT = 1 << 26  # bytes of all arrays of text: a million labels of 16 letters


class Kind(ABC):
    """One kind of thing a model file can hold."""

    tag: ClassVar[str]

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether ``value`` is of this kind."""

    @abstractmethod
    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Return the fields of the JSON object for ``value``."""

    @abstractmethod
    def read(self, node: dict[str, Any], reader: Reader) -> Any:
        """Return the value of a JSON object, or raise when it is not one `write` makes."""


class Writer:
    """Turns values into JSON, and collects the bytes of arrays.

    Parameters
    ----------
    kinds : what a file may hold beside plain JSON; the first that holds a value writes it.
    """

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.arrays = bytearray()

    def write(self, value: Any) -> Any:
        """Return the JSON for ``value``."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int and abs(value) < LARGEST_INTEGER:
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if type(value) is list:
            return [self.write(item) for item in value]
        for kind in self.kinds:
            if kind.holds(value):
                return {"is": kind.tag, **kind.write(value, self)}
        raise ModelFileError(
            f"the model cannot be written: a model file has no place for {_described(value)}"
        )

    def place(self, data: bytes) -> int:
        """Put bytes among the arrays, and return where they start."""
        start = len(self.arrays)
        self.arrays += data
        self.arrays += bytes(-len(self.arrays) % 8)  # the next one starts at a multiple of 8
        return start


class Reader:
    """Turns JSON back into values.

    Parameters
    ----------
    kinds : what a file may hold beside plain JSON.
    arrays : the bytes of all arrays.
    """

    def __init__(self, kinds: Iterable[Kind], arrays: bytes) -> None:
        self.kinds = {kind.tag: kind for kind in kinds}
        self.arrays = arrays
        self._depth = 0
        self._parts = 0
        self._room = len(arrays) + ROOM_FOR_TEXT

    def read(self, node: Any) -> Any:
        """Return the value of a node of the JSON tree."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return _plain(node)
        self._depth += 1
        self._parts += 1
        if self._depth > DEEPEST:
            raise ModelFileError("was refused: it is nested deeper than any model")
        if self._parts > MOST_PARTS:
            raise ModelFileError("was refused: it has more parts than any model")
        try:
            if isinstance(node, list):
                return [self.read(item) for item in node]
            tag = node.get("is")
            if not isinstance(tag, str) or tag not in self.kinds:
                raise ModelFileError(
                    f"was refused, and nothing in it was run: it holds {quoted(tag)}, which no "
                    "model is made of"
                )
            return self.kinds[tag].read(node, self)
        finally:
            self._depth -= 1

    def fields(self, node: dict[str, Any], name: str) -> dict[str, Any]:
        """Return the values of an object of named parts."""
        parts = node[name]
        if not isinstance(parts, dict):
            raise ModelFileError(f"is damaged: {name} must be named parts")
        return {key: self.read(part) for key, part in parts.items()}

    def take(self, start: int, size: int) -> bytes:
        """Return bytes from among the arrays."""
        if type(start) is not int or not 0 <= start <= start + size <= len(self.arrays):
            raise ModelFileError("is damaged: an array lies outside the file")
        self.spend(size)
        return self.arrays[start : start + size]

    def spend(self, size: int) -> None:
        """Count memory for an array: many that share the same bytes would unfold to more."""
        self._room -= size
        if self._room < 0:
            raise ModelFileError("was refused: its arrays would take more memory than the file")


def _plain(node: Any) -> Any:
    if isinstance(node, float) and not math.isfinite(node):
        raise ModelFileError("is damaged: it holds a number that is not finite where none can be")
    if isinstance(node, int) and abs(node) >= LARGEST_INTEGER:
        raise ModelFileError("is damaged: it holds a number no model needs")
    return node


def _name(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return _name(value)
    return (
        f"an array of {value.dtype}: arrays, of labels too, may hold text, whole numbers, floats "
        "of 32 or 64 bits, true and false, or dates (datetime64[Y] to datetime64[ns])"
    )


def texts(values: Iterable[Any]) -> list[Any]:
    """Return labels as plain JSON: text, numbers, true, false and null."""
    plain = []
    for value in values:
        item = value.item() if isinstance(value, np.generic) else value
        if item is not None and type(item) not in (str, int, float, bool):
            raise ModelFileError(
                f"the model cannot be written: labels must be text or numbers; got {_name(value)}"
            )
        plain.append(item)
    return plain
