"""What a field of a model file can be: a declaration, and with it how to write and check it.

A schema (`hetrisk.modelfile.schema`) is made of these values alone. Reading is checking: type,
range, finiteness and shape are settled here, field by field, before anything is built; dimensions
have names, and arrays that share a name must agree. There is no kind for functions, methods,
modules or classes, so a file has no words for them.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

import hetrisk
from hetrisk.modelfile.archive import is_later
from hetrisk.modelfile.errors import ModelFileError
from hetrisk.tables.errors import listed, quoted

MOST_ITEMS = 1_000_000  # of one list
LARGEST_WHOLE = 1 << 62
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_NOTHING: Any = object()


class Writer:
    """Collects the bytes of arrays while records become JSON."""

    def __init__(self) -> None:
        self.arrays = bytearray()

    def place(self, data: bytes) -> int:
        """Put bytes among the arrays, and return where they start."""
        start = len(self.arrays)
        self.arrays += data
        self.arrays += bytes(-len(self.arrays) % 8)  # the next one starts at a multiple of 8
        return start


class Reader:
    """Where reading stands: the place in the file, the dimensions known, the bytes left.

    Parameters
    ----------
    arrays : the bytes of all arrays.
    written : version of hetrisk that wrote the file.
    """

    def __init__(self, arrays: bytes, written: str) -> None:
        self.arrays, self.written = arrays, written
        self.version = 1  # of the record being read
        self.dims: dict[str, int] = {}
        self._room = len(arrays)
        self._path: list[str] = []

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Read within ``name``, which errors then mention."""
        self._path.append(name)
        yield
        self._path.pop()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget, at the end, dimensions that were met inside."""
        outer = dict(self.dims)
        yield
        self.dims = outer

    def need(self, right: bool, what: str) -> None:
        """Refuse the file unless ``right``; ``what`` says what this place must be."""
        if not right:
            place = quoted("".join(self._path).lstrip("."), 80)
            raise ModelFileError(f"is damaged or was tampered with: {place} must {what}")

    def size(self, name: str | int, size: int) -> None:
        """Let a dimension be ``size``, or refuse where it is known to be another."""
        known = self.dims.setdefault(name, size) if isinstance(name, str) else name
        self.need(size == known, f"have length {known:,}; got {size:,}")

    def take(self, start: Any, size: int) -> bytes:
        """Return bytes from among the arrays, each of them once."""
        whole = type(start) is int
        self.need(whole and 0 <= start <= start + size <= len(self.arrays), "lie inside the file")
        # Arrays that share their bytes would unfold to more memory than the file takes.
        self._room -= size
        self.need(self._room >= 0, "have bytes of its own")
        return self.arrays[start : start + size]


class Kind(ABC):
    """What one field can be."""

    def write(self, value: Any, out: Writer) -> Any:
        """Return ``value`` as plain JSON; `read` decides whether it is right."""
        return self._write(value, out)

    def read(self, node: Any, src: Reader) -> Any:
        """Return the value, or refuse it with its place and what it must be."""
        return self._read(node, src)

    @abstractmethod
    def _write(self, value: Any, out: Writer) -> Any: ...

    @abstractmethod
    def _read(self, node: Any, src: Reader) -> Any: ...


@final
@dataclass(frozen=True)
class Text(Kind):
    """Text of at most ``most`` letters; one of ``words``, or like ``pattern``, where given."""

    most: int = 100_000
    words: tuple[str, ...] = ()
    pattern: str = ""

    def _write(self, value: Any, out: Writer) -> str:
        return str(value)

    def _read(self, node: Any, src: Reader) -> str:
        src.need(type(node) is str and len(node) <= self.most, "be text, and not too long")
        src.need(not self.words or node in self.words, f"be one of {listed(self.words)}")
        src.need(not self.pattern or bool(re.fullmatch(self.pattern, node)), "have its form")
        return str(node)


@final
@dataclass(frozen=True)
class Truth(Kind):
    """True or false."""

    def _write(self, value: Any, out: Writer) -> bool:
        return bool(value)

    def _read(self, node: Any, src: Reader) -> bool:
        src.need(type(node) is bool, "be true or false")
        return bool(node)


@final
@dataclass(frozen=True)
class Whole(Kind):
    """A whole number between ``low`` and ``high``; the length of dimension ``dim``, if named."""

    low: int = 0
    high: int = LARGEST_WHOLE
    dim: str = ""

    def _write(self, value: Any, out: Writer) -> int:
        return int(value)

    def _read(self, node: Any, src: Reader) -> int:
        right = type(node) is int and self.low <= node <= self.high
        src.need(right, f"be a whole number from {self.low:,} to {self.high:,}")
        if self.dim:
            src.size(self.dim, node)
        return int(node)


@final
@dataclass(frozen=True)
class Number(Kind):
    """A float between ``low`` and ``high``; nan and infinity only where they are allowed."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = False
    inf: bool = False

    def _write(self, value: Any, out: Writer) -> float | str:
        number = float(value)
        return number if math.isfinite(number) else str(number)

    def _read(self, node: Any, src: Reader) -> float:
        plain = NOT_FINITE.get(node) if type(node) is str else node
        whole = type(plain) is int and abs(plain) < LARGEST_WHOLE
        src.need(whole or type(plain) is float, "be a number")
        number = float(plain or 0.0)
        src.need(self.nan or not math.isnan(number), "not be missing")
        src.need(self.inf or not math.isinf(number), "be finite")
        right = math.isnan(number) or self.low <= number <= self.high
        src.need(right, f"lie between {self.low:g} and {self.high:g}")
        return number


@final
@dataclass(frozen=True)
class Maybe(Kind):
    """A value of another kind, or nothing."""

    of: Kind

    def _write(self, value: Any, out: Writer) -> Any:
        return None if value is None else self.of.write(value, out)

    def _read(self, node: Any, src: Reader) -> Any:
        return None if node is None else self.of.read(node, src)


@final
@dataclass(frozen=True)
class Many(Kind):
    """A tuple of values of one kind, as many as dimension ``dim`` where it is named."""

    of: Kind
    dim: str = ""
    least: int = 0
    most: int = MOST_ITEMS
    differ: bool = False

    def _write(self, value: Any, out: Writer) -> list[Any]:
        return [self.of.write(item, out) for item in value]

    def _read(self, node: Any, src: Reader) -> tuple[Any, ...]:
        src.need(type(node) is list and self.least <= len(node) <= self.most, "be a list that fits")
        if self.dim:
            src.size(self.dim, len(node))
        items = []
        for i, item in enumerate(node):
            with src.inside(f"[{i}]"):
                items.append(self.of.read(item, src))
        src.need(not self.differ or len(set(items)) == len(items), "hold nothing twice")
        return tuple(items)


@final
@dataclass(frozen=True)
class Named(Kind):
    """A mapping from any text to values of one kind."""

    of: Kind
    most: int = 10_000

    def _write(self, value: Any, out: Writer) -> dict[str, Any]:
        return {str(name): self.of.write(item, out) for name, item in value.items()}

    def _read(self, node: Any, src: Reader) -> dict[str, Any]:
        src.need(type(node) is dict and len(node) <= self.most, "be named values")
        values = {}
        for name, item in node.items():
            with src.inside(f".{name}"):
                values[name] = self.of.read(item, src)
        return values


@final
@dataclass(frozen=True)
class Plain(Kind):
    """Text, numbers, true and false, nothing, and tuples and named values of these."""

    deepest: int = 12

    def _write(self, value: Any, out: Writer) -> Any:
        if isinstance(value, Mapping):
            return {"of": {str(name): self.write(item, out) for name, item in value.items()}}
        if isinstance(value, (list, tuple)):
            return [self.write(item, out) for item in value]
        item = value.item() if isinstance(value, np.generic) else value
        if type(item) is float and not math.isfinite(item):
            return {"number": str(item)}
        if item is not None and type(item) not in (str, bool, int, float):
            raise ModelFileError(
                f"the model cannot be written: {type(item).__name__} is not plain text or a number"
            )
        return item

    def _read(self, node: Any, src: Reader, deep: int = 0) -> Any:
        src.need(deep <= self.deepest, "not be nested so deeply")
        if type(node) is list:
            return tuple(self._read(item, src, deep + 1) for item in node)
        if type(node) is not dict:
            right = type(node) is not int or abs(node) < LARGEST_WHOLE
            src.need(right and (type(node) is not float or math.isfinite(node)), "be a number")
            return node
        key = next(iter(node), "")
        src.need(len(node) == 1 and key in ("of", "number"), "be plain")
        if key == "number":
            return Number(nan=True, inf=True).read(node[key], src)
        src.need(type(node[key]) is dict, "be named values")
        return {name: self._read(item, src, deep + 1) for name, item in node[key].items()}


CODES = {"number": "<f8", "whole": "<i8", "truth": "|b1"}


@final
@dataclass(frozen=True)
class Array(Kind):
    """An array of numbers, whole numbers or true and false, whose dimensions have names."""

    of: str
    shape: tuple[str | int, ...]
    low: float = -math.inf
    high: float = math.inf
    nan: bool = False
    inf: bool = False

    def _write(self, value: Any, out: Writer) -> dict[str, Any]:
        array = np.asarray(value)
        plain = np.ascontiguousarray(array, dtype=CODES[self.of])
        if array.dtype.kind not in "biuf" or not np.array_equal(plain, array, equal_nan=True):
            raise ModelFileError(f"the model cannot be written: {array.dtype} is not {self.of}")
        return {"shape": list(array.shape), "at": out.place(plain.tobytes())}

    def _read(self, node: Any, src: Reader) -> np.ndarray:
        right = type(node) is dict and set(node) == {"shape", "at"} and type(node["shape"]) is list
        src.need(right and len(node["shape"]) == len(self.shape), "be an array of its dimensions")
        for name, size in zip(self.shape, node["shape"], strict=True):
            src.need(type(size) is int and 0 <= size <= len(src.arrays), "have a possible shape")
            src.size(name, size)
        dtype = np.dtype(CODES[self.of])
        raw = src.take(node["at"], math.prod(node["shape"]) * dtype.itemsize)
        src.need(self.of != "truth" or set(raw) <= {0, 1}, "hold true and false")
        array = np.frombuffer(raw, dtype).reshape(node["shape"])
        self._check(array, src)
        return array  # of bytes of the file: it cannot be written to

    def _check(self, array: np.ndarray, src: Reader) -> None:
        src.need(self.nan or not np.isnan(array).any(), "hold no missing value")
        src.need(self.inf or not np.isinf(array).any(), "hold finite values")
        inside = np.isnan(array) | ((array >= self.low) & (array <= self.high))
        src.need(bool(inside.all()), f"lie between {self.low:g} and {self.high:g}")


LABELS = {"text": str, "whole": int, "number": float, "truth": bool}


@final
@dataclass(frozen=True)
class Labels(Kind):
    """An array of labels, (dim,): text, whole numbers, numbers, or true and false; all differ."""

    dim: str
    least: int = 0

    def _write(self, value: Any, out: Writer) -> dict[str, Any]:
        array = np.asarray(value)
        values = [x.item() if isinstance(x, np.generic) else x for x in array.tolist()]
        kinds = {type(item) for item in values} or {str}
        word = next((word for word, kind in LABELS.items() if kinds == {kind}), None)
        if word is None or array.dtype.kind not in "OUbiuf":
            raise ModelFileError(
                "the model cannot be written: labels must be all text, all numbers, or true and "
                f"false; got {listed(sorted(kind.__name__ for kind in kinds))}"
            )
        return {"kind": word, "of": values}

    def _read(self, node: Any, src: Reader) -> np.ndarray:
        right = type(node) is dict and set(node) == {"kind", "of"} and type(node["of"]) is list
        src.need(right and type(node["kind"]) is str and node["kind"] in LABELS, "be labels")
        kind = LABELS[node["kind"]]
        src.need(len(node["of"]) >= self.least, f"hold {self.least} labels or more")
        src.size(self.dim, len(node["of"]))
        src.need(all(type(item) is kind for item in node["of"]), f"be all {node['kind']}")
        src.need(len(set(node["of"])) == len(node["of"]), "differ")
        small = kind is str or all(abs(item) < LARGEST_WHOLE for item in node["of"])
        src.need(small, "be numbers that fit")
        # Text as objects: an array of letters gives every label the room of the longest.
        return np.array(node["of"], dtype=object if kind is str else kind)


@final
@dataclass(frozen=True)
class Field:
    """One field of a record: its kind, the version of the record it came with, its default."""

    kind: Kind
    since: int = 1
    default: Any = _NOTHING


@final
@dataclass(frozen=True)
class Record(Kind):
    """Named fields, each of its own kind; what they make, and what must hold between them.

    Attributes
    ----------
    fields : by name.
    make : builds the value from the fields; written from are the items of a dict, or attributes.
    check : says what is wrong with the value made, "" for nothing.
    """

    fields: Mapping[str, Kind | Field]
    make: Callable[..., Any] = dict
    check: Callable[[Any], str] | None = field(default=None)

    def _write(self, value: Any, out: Writer) -> dict[str, Any]:
        given = value if isinstance(value, Mapping) else vars(value)
        defaults = {name: _field(declared).default for name, declared in self.fields.items()}
        items = {**defaults, **given}
        strange = [name for name in items if name not in self.fields or items[name] is _NOTHING]
        if strange:
            raise ModelFileError(
                f"the model cannot be written: no field, or no value, for {listed(strange)}"
            )
        return {name: _field(f).kind.write(items[name], out) for name, f in self.fields.items()}

    def _read(self, node: Any, src: Reader) -> Any:
        src.need(type(node) is dict, "be a record")
        _refuse_unknown([name for name in node if name not in self.fields], src)
        with src.scope():
            values = {}
            for name, kind in self.fields.items():
                with src.inside(f".{name}"):
                    values[name] = _read_field(_field(kind), node.get(name, _NOTHING), src)
            made = self.make(**values)
            wrong = "" if self.check is None else self.check(made)
            src.need(not wrong, wrong)
        return made


@final
@dataclass(frozen=True)
class OneOf(Kind):
    """A record whose ``kind`` says which of several it is."""

    records: Mapping[str, Record]

    def _write(self, value: Any, out: Writer) -> dict[str, Any]:
        if value.kind not in self.records:
            raise ModelFileError(f"the model cannot be written: {quoted(value.kind)} has no place")
        return {"kind": value.kind, **self.records[value.kind].write(value, out)}

    def _read(self, node: Any, src: Reader) -> Any:
        kind = node.get("kind") if type(node) is dict else None
        known = type(kind) is str and kind in self.records
        if not known and is_later(src.written):
            _refuse_unknown([f"kind {kind}"], src)
        src.need(known, f"be one of {listed(self.records)}")
        return self.records[str(kind)].read({k: v for k, v in node.items() if k != "kind"}, src)


def _field(declared: Kind | Field) -> Field:
    return declared if isinstance(declared, Field) else Field(declared)


def _read_field(declared: Field, node: Any, src: Reader) -> Any:
    if node is _NOTHING:
        src.need(declared.since > src.version, "be there")
        return declared.default
    return declared.kind.read(node, src)


def _refuse_unknown(names: list[str], src: Reader) -> None:
    """Refuse what no field is declared for: of a later version, or of nobody."""
    if not names:
        return
    if is_later(src.written):
        raise ModelFileError(
            f"was written by hetrisk {quoted(src.written, 20)} and holds {listed(names)}, which "
            f"this version ({hetrisk.__version__}) does not know: upgrade hetrisk"
        )
    src.need(False, f"not hold {listed(names)}")
