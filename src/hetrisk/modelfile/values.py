"""The values models are made of: numbers of numpy, arrays, tuples, dictionaries, generators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetrisk.modelfile.codec import Kind, Reader, Writer, texts
from hetrisk.modelfile.errors import ModelFileError

DATES = {f"<M8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")}
NUMBERS = {
    *("|b1", "|i1", "|u1"),
    *(f"<{letter}{size}" for letter in "iu" for size in (2, 4, 8)),
    *("<f4", "<f8"),
}
MOST_DIMENSIONS = 5


class Special(Kind):
    """A float JSON has no word for: nan, inf, -inf."""

    tag = "float"

    def holds(self, value: Any) -> bool:
        """Whether it is such a float."""
        return type(value) is float and not math.isfinite(value)

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write its name."""
        return {"of": repr(value)}

    def read(self, node: dict[str, Any], reader: Reader) -> float:
        """Read its name."""
        if node["of"] not in ("nan", "inf", "-inf"):
            raise ModelFileError("is damaged: it holds a number that cannot be read")
        return float(node["of"])


class Tuple(Kind):
    """A tuple of values."""

    tag = "tuple"

    def holds(self, value: Any) -> bool:
        """Whether it is a tuple, and no named one."""
        return type(value) is tuple

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write the items."""
        return {"of": [writer.write(item) for item in value]}

    def read(self, node: dict[str, Any], reader: Reader) -> tuple[Any, ...]:
        """Read the items."""
        return tuple(reader.read(item) for item in _listed(node["of"]))


class Dictionary(Kind):
    """A dictionary whose keys are plain values."""

    tag = "dict"

    def holds(self, value: Any) -> bool:
        """Whether it is a dictionary."""
        return type(value) is dict

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write pairs, in order: JSON itself has only text for keys."""
        return {"of": [[writer.write(key), writer.write(item)] for key, item in value.items()]}

    def read(self, node: dict[str, Any], reader: Reader) -> dict[Any, Any]:
        """Read the pairs."""
        pairs = [_listed(pair) for pair in _listed(node["of"])]
        return {reader.read(key): reader.read(item) for key, item in pairs}


class Scalar(Kind):
    """A number of numpy, with its type."""

    tag = "scalar"

    def holds(self, value: Any) -> bool:
        """Whether it is a number, date or text of numpy."""
        return isinstance(value, np.generic)

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write it as an array without dimensions."""
        return {"of": writer.write(np.asarray(value))}

    def read(self, node: dict[str, Any], reader: Reader) -> Any:
        """Read it."""
        array = reader.read(node["of"])
        if not isinstance(array, np.ndarray) or array.ndim:
            raise ModelFileError("is damaged: a number is an array")
        return array[()]


class Array(Kind):
    """Numbers, true and false, or dates: bytes among the arrays, with type and shape."""

    tag = "array"

    def holds(self, value: Any) -> bool:
        """Whether it is a plain array of a type that can be written."""
        return type(value) is np.ndarray and _code(value.dtype) in NUMBERS | DATES

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write the bytes in the order of rows."""
        code = _code(value.dtype)
        data = np.ascontiguousarray(value, dtype=np.dtype(code)).tobytes()
        return {"type": code, "shape": list(value.shape), "at": writer.place(data)}

    def read(self, node: dict[str, Any], reader: Reader) -> np.ndarray:
        """Return an array that owns its memory."""
        code, shape = node["type"], _shape(node["shape"])
        if code not in NUMBERS | DATES:
            raise ModelFileError("is damaged: an array has a type no model needs")
        dtype = np.dtype(code)
        data = reader.take(node["at"], math.prod(shape) * dtype.itemsize)
        if code == "|b1" and not set(data) <= {0, 1}:
            raise ModelFileError("is damaged: an array of true and false holds something else")
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()


class Texts(Kind):
    """An array of text, or of labels of mixed types."""

    tag = "texts"

    def holds(self, value: Any) -> bool:
        """Whether it is an array of text or objects."""
        return type(value) is np.ndarray and value.dtype.kind in "UO"

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write the labels."""
        labels = [writer.write(label) for label in texts(value.ravel())]
        return {"type": value.dtype.kind, "shape": list(value.shape), "of": labels}

    def read(self, node: dict[str, Any], reader: Reader) -> np.ndarray:
        """Read the labels; text gets the width of the longest."""
        shape = _shape(node["shape"])
        labels = [reader.read(label) for label in _listed(node["of"])]
        if len(labels) != math.prod(shape) or any(isinstance(x, (list, dict)) for x in labels):
            raise ModelFileError("is damaged: an array of labels has another size than it says")
        if node["type"] == "U":
            return _text_array(labels, shape, reader)
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array.reshape(shape)


class Generator(Kind):
    """A `numpy.random.RandomState`, as ``random_state`` may be one."""

    tag = "random"

    def holds(self, value: Any) -> bool:
        """Whether it is one, with the usual bit generator."""
        return type(value) is np.random.RandomState and _state(value)[0] == "MT19937"

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write its state."""
        _, keys, position, gauss, cached = _state(value)
        return {"of": [writer.write(x) for x in (keys, int(position), int(gauss), float(cached))]}

    def read(self, node: dict[str, Any], reader: Reader) -> np.random.RandomState:
        """Return a generator in that state."""
        keys, position, gauss, cached = (reader.read(part) for part in _listed(node["of"]))
        state = np.random.RandomState()
        fits = isinstance(keys, np.ndarray) and keys.shape == (624,) and keys.dtype == np.uint32
        if not fits or not 0 <= position <= 624:
            raise ModelFileError("is damaged: a random generator has no such state")
        state.set_state(("MT19937", keys, position, gauss, cached))
        return state


def _state(generator: np.random.RandomState) -> Any:
    return generator.get_state(legacy=True)


def _text_array(labels: list[Any], shape: tuple[int, ...], reader: Reader) -> np.ndarray:
    if not all(isinstance(label, str) for label in labels):
        raise ModelFileError("is damaged: an array of text holds something else")
    width = max((len(label) for label in labels), default=0)
    reader.spend(4 * width * len(labels))  # every label takes the room of the longest
    return np.asarray(labels, dtype=f"<U{max(width, 1)}").reshape(shape)


def _code(dtype: np.dtype[Any]) -> str:
    return dtype.newbyteorder("<").str


def _shape(shape: Any) -> tuple[int, ...]:
    right = all(type(size) is int and 0 <= size < 1 << 40 for size in _listed(shape))
    if not right or len(shape) > MOST_DIMENSIONS:
        raise ModelFileError("is damaged: an array has an impossible shape")
    return tuple(shape)


def _listed(node: Any) -> list[Any]:
    if not isinstance(node, list):
        raise ModelFileError("is damaged: a list is something else")
    return node


KINDS: tuple[Kind, ...] = (
    Special(),
    Tuple(),
    Dictionary(),
    Scalar(),
    Array(),
    Texts(),
    Generator(),
)
