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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetrisk.columns.words import listed
from hetrisk.modelfile.archive import is_later
from hetrisk.modelfile.codec import Reader, Writer

MOST_ITEMS = 1_000_000  # of one list
LARGEST = 1 << 62
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_NOTHING: Any = object()


class Kind(ABC):
    """What one field can be."""

    def write(self, value: Any, out: Writer) -> Any:
        """Return ``value`` as plain JSON; `read` decides whether it is right."""
        # A date of numpy would become a number without a word.
        known = isinstance(value, np.generic) and value.dtype.kind in "biufU"
        item = value.item() if known else value
        right = type(item) in (str, bool, int, float)
        what = "a value must be text, a number, or true or false"
        out.need(right, f"{what}; got {type(item).__name__}")
        # JSON has no words for numbers that are not finite.
        return str(item) if type(item) is float and not math.isfinite(item) else item

    @abstractmethod
    def read(self, node: Any, src: Reader) -> Any:
        """Return the value, or refuse it with its place and what it must be."""


@dataclass(frozen=True)
class Text(Kind):
    """Text of at most ``most`` letters; one of ``words``, or like ``pattern``, where given."""

    most: int = 100_000
    words: tuple[str, ...] = ()
    pattern: str = ""

    def read(self, node: Any, src: Reader) -> str:
        src.need(type(node) is str and len(node) <= self.most, "be text, and not too long")
        src.need(not self.words or node in self.words, f"be one of {listed(self.words)}")
        src.need(not self.pattern or bool(re.fullmatch(self.pattern, node)), "have its form")
        return str(node)


@dataclass(frozen=True)
class Truth(Kind):
    """True or false."""

    def read(self, node: Any, src: Reader) -> bool:
        src.need(type(node) is bool, "be true or false")
        return bool(node)


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number between ``low`` and ``high``; the length of dimension ``dim``, if named."""

    low: int = 0
    high: int = LARGEST
    dim: str = ""

    def read(self, node: Any, src: Reader) -> int:
        right = type(node) is int and self.low <= node <= self.high
        src.need(right, f"be a whole number from {self.low:,} to {self.high:,}")
        if self.dim:
            src.size(self.dim, node)
        return int(node)


@dataclass(frozen=True)
class Number(Kind):
    """A float between ``low`` and ``high``; nan and infinity only where they are allowed."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = False
    inf: bool = False

    def write(self, value: Any, out: Writer) -> Any:
        item = super().write(value, out)
        return float(item) if type(item) is int else item

    def read(self, node: Any, src: Reader) -> float:
        plain = NOT_FINITE.get(node) if type(node) is str else node
        whole = type(plain) is int and abs(plain) < LARGEST
        src.need(whole or type(plain) is float, "be a number")
        number = float(plain or 0.0)
        src.need(self.nan or not math.isnan(number), "not be missing")
        src.need(self.inf or not math.isinf(number), "be finite")
        right = not math.isfinite(number) or self.low <= number <= self.high
        src.need(right, f"lie between {self.low:g} and {self.high:g}")
        return number


@dataclass(frozen=True)
class Maybe(Kind):
    """A value of another kind, or nothing."""

    of: Kind

    def write(self, value: Any, out: Writer) -> Any:
        return None if value is None else self.of.write(value, out)

    def read(self, node: Any, src: Reader) -> Any:
        return None if node is None else self.of.read(node, src)


@dataclass(frozen=True)
class Many(Kind):
    """A tuple of values of one kind, as many as dimension ``dim`` where it is named."""

    of: Kind
    dim: str = ""
    least: int = 0
    most: int = MOST_ITEMS
    differ: bool = False

    def write(self, value: Any, out: Writer) -> list[Any]:
        return [self.of.write(item, out) for item in value]

    def read(self, node: Any, src: Reader) -> tuple[Any, ...]:
        src.need(type(node) is list and self.least <= len(node) <= self.most, "be a list that fits")
        if self.dim:
            src.size(self.dim, len(node))
        items = []
        for i, item in enumerate(node):
            with src.inside(f"[{i}]"):
                items.append(self.of.read(item, src))
        src.need(not self.differ or len(set(items)) == len(items), "hold nothing twice")
        return tuple(items)


@dataclass(frozen=True)
class Named(Kind):
    """A mapping from any text to values of one kind."""

    of: Kind

    def write(self, value: Any, out: Writer) -> dict[str, Any]:
        return {str(name): self.of.write(item, out) for name, item in value.items()}

    def read(self, node: Any, src: Reader) -> dict[str, Any]:
        src.need(type(node) is dict, "be named values")
        values = {}
        for name, item in node.items():
            with src.inside(f".{name}"):
                values[name] = self.of.read(item, src)
        return values


CODES = {"number": "<f8", "whole": "<i8", "truth": "|b1"}


@dataclass(frozen=True)
class Array(Kind):
    """An array of numbers, whole numbers or true and false, whose dimensions have names."""

    of: str
    shape: tuple[str | int, ...]
    low: float = -math.inf
    high: float = math.inf
    nan: bool = False
    inf: bool = False

    def write(self, value: Any, out: Writer) -> dict[str, Any]:
        array = np.asarray(value)
        plain = np.ascontiguousarray(array, dtype=CODES[self.of])
        same = array.dtype.kind in "biuf" and np.array_equal(plain, array, equal_nan=True)
        out.need(same, f"an array of {array.dtype} is not one of {self.of}")
        return {"shape": list(array.shape), "at": out.place(plain.tobytes())}

    def read(self, node: Any, src: Reader) -> np.ndarray:
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
        inside = ~np.isfinite(array) | ((array >= self.low) & (array <= self.high))
        src.need(bool(inside.all()), f"lie between {self.low:g} and {self.high:g}")


@dataclass(frozen=True)
class Label(Kind):
    """A label: text, a number, or true or false."""

    def read(self, node: Any, src: Reader) -> Any:
        right = type(node) in (str, bool) or (type(node) in (int, float) and abs(node) < LARGEST)
        src.need(right, "be text, a number, or true or false")
        return node


@dataclass(frozen=True)
class Field:
    """One field of a record: its kind, the version of the record it came with, its default."""

    kind: Kind
    since: int = 1
    default: Any = _NOTHING


@dataclass(frozen=True)
class Record(Kind):
    """Named fields, each of its own kind; what they make, and what must hold between them.

    Attributes
    ----------
    fields : by name.
    make : builds the value from the fields.
    check : says what is wrong with the value made, "" for nothing.
    parts : the fields of a value, by default its items or attributes.
    """

    fields: Mapping[str, Field]
    make: Callable[..., Any] = dict
    check: Callable[[Any], str] | None = None
    parts: Callable[[Any], Mapping[str, Any]] | None = None

    def write(self, value: Any, out: Writer) -> dict[str, Any]:
        take = self.parts or (dict if isinstance(value, Mapping) else vars)
        items = {**{name: field.default for name, field in self.fields.items()}, **take(value)}
        strange = [name for name in items if name not in self.fields or items[name] is _NOTHING]
        out.need(not strange, f"no field, or no value, for {listed(strange)}")
        return {name: f.kind.write(items[name], out) for name, f in self.fields.items()}

    def read(self, node: Any, src: Reader) -> Any:
        src.need(type(node) is dict, "be a record")
        src.refuse_unknown([name for name in node if name not in self.fields])
        with src.scope():
            values = {}
            for name, declared in self.fields.items():
                with src.inside(f".{name}"):
                    src.need(name in node or declared.since > src.version, "be there")
                    there = (
                        declared.kind.read(node[name], src) if name in node else declared.default
                    )
                    values[name] = there
            try:
                made = self.make(**values)
            except ValueError as error:  # what it makes checks its own fields
                src.need(False, f"be right: {error}")
            wrong = "" if self.check is None else self.check(made)
            src.need(not wrong, wrong)
        return made


@dataclass(frozen=True)
class OneOf(Kind):
    """A record whose ``kind`` says which of several it is."""

    records: Mapping[str, Record]

    def write(self, value: Any, out: Writer) -> dict[str, Any]:
        out.need(value.kind in self.records, f"{value.kind} has no place")
        return {"kind": value.kind, **self.records[value.kind].write(value, out)}

    def read(self, node: Any, src: Reader) -> Any:
        kind = node.get("kind") if type(node) is dict else None
        known = type(kind) is str and kind in self.records
        src.refuse_unknown([] if known or not is_later(src.written) else [f"kind {kind}"])
        src.need(known, f"be one of {listed(self.records)}")
        return self.records[str(kind)].read({k: v for k, v in node.items() if k != "kind"}, src)
