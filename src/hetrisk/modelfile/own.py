"""hetrisk's own estimators and value types: written attribute by attribute, whatever they are.

A type is known by its full name and must be an estimator, a dataclass or an enumeration that is
defined in hetrisk's own modules. Building one calls nothing: an empty instance gets the
attributes the file lists, and a dataclass only those it declares, each checked against the
type it is declared with. So a new field of a result travels without a word here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import keyword
import types
import typing
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

import hetrisk
from hetrisk.modelfile.codec import Kind, Reader, Writer
from hetrisk.modelfile.errors import ModelFileError
from hetrisk.tables.errors import quoted

HOMES = ("core", "estimators", "tables", "baselines")
OF_THE_MACHINE = ("n_jobs", "verbose")  # how the model was computed, not what it is
ALIAS: Any = getattr(typing, "TypeAliasType", None)  # Python 3.12 and later
REQUESTS = "_metadata_request"  # which arguments a pipeline passes on, set anew by who fits
OF_TRAINING_ROWS = ("_environment_proba", "_carried")


@cache
def _modules() -> frozenset[str]:
    """Names of the modules whose types may travel, from the files that are there."""
    root = Path(hetrisk.__file__).parent
    files = [path for home in HOMES for path in (root / home).rglob("*.py")]
    places = [path.relative_to(root.parent).with_suffix("") for path in files]
    return frozenset(".".join(place.parts).removesuffix(".__init__") for place in places)


@cache
def own_type(name: str) -> type | None:
    """Return the type of that full name if a model may hold it, else None."""
    module, _, last = name.rpartition(".")
    if module not in _modules():
        return None
    kind = vars(importlib.import_module(module)).get(last)
    ours = isinstance(kind, type) and kind.__module__ == module and _may_travel(kind)
    return kind if ours else None


def _may_travel(kind: type) -> bool:
    value = dataclasses.is_dataclass(kind) or issubclass(kind, (BaseEstimator, Enum))
    return value and not inspect.isabstract(kind)


def is_own(value: Any) -> bool:
    """Whether it is an instance of one of hetrisk's own types."""
    return own_type(_full_name(type(value))) is type(value)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _known(node: dict[str, Any], base: str) -> type:
    kind = own_type(str(node.get("type")))
    if kind is None or _base(kind) != base:
        raise ModelFileError(
            f"was refused, and nothing in it was run: hetrisk has no {base} "
            f"{quoted(node.get('type'))}"
        )
    return kind


def _base(kind: type) -> str:
    if dataclasses.is_dataclass(kind):
        return "value"
    return "estimator" if issubclass(kind, BaseEstimator) else "choice"


class OwnValue(Kind):
    """A dataclass of hetrisk."""

    tag = "value"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        kind = type(value)
        return dataclasses.is_dataclass(kind) and own_type(_full_name(kind)) is kind

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write its fields."""
        names = [field.name for field in dataclasses.fields(value)]
        parts = {name: writer.write(getattr(value, name)) for name in names}
        return {"type": _full_name(type(value)), "of": parts}

    def read(self, node: dict[str, Any], reader: Reader) -> Any:
        """Return an instance with those fields and no others."""
        kind = _known(node, "value")
        parts = reader.fields(node, "of")
        expected = {field.name for field in dataclasses.fields(kind)}
        if set(parts) != expected:
            odd = ", ".join(sorted(set(parts) ^ expected))
            raise ModelFileError(
                f"does not match this version of hetrisk: {kind.__name__} has other parts ({odd})"
            )
        hints = _hints(kind)
        value: Any = object.__new__(kind)
        for name, part in parts.items():
            if not fits(part, hints[name]):
                raise ModelFileError(
                    f"is damaged or was tampered with: {name} of {kind.__name__} is a "
                    f"{type(part).__name__}"
                )
            object.__setattr__(value, name, part)
        return value


class OwnChoice(Kind):
    """A member of an enumeration of hetrisk."""

    tag = "choice"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return isinstance(value, Enum) and is_own(value)

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write its name."""
        return {"type": _full_name(type(value)), "of": value.name}

    def read(self, node: dict[str, Any], reader: Reader) -> Any:
        """Return the member of that name."""
        return typing.cast("type[Enum]", _known(node, "choice"))[str(node["of"])]


class OwnEstimator(Kind):
    """An estimator of hetrisk, fitted or not."""

    tag = "hetrisk"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return isinstance(value, BaseEstimator) and is_own(value)

    def write(self, value: Any, writer: Writer) -> dict[str, Any]:
        """Write what it holds, but nothing per training row, of the machine or of fitting."""
        parts = {
            name: writer.write(None if name in OF_TRAINING_ROWS else part)
            for name, part in vars(value).items()
            if name not in (*OF_THE_MACHINE, REQUESTS)
        }
        return {"type": _full_name(type(value)), "of": parts}

    def read(self, node: dict[str, Any], reader: Reader) -> Any:
        """Return an estimator with those attributes."""
        kind = _known(node, "estimator")
        parts = reader.fields(node, "of")
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(kind).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        for name in parts:
            if name not in defaults and not _may_be_set(kind, name):
                raise ModelFileError(
                    f"was refused, and nothing in it was run: {kind.__name__} has no attribute "
                    f"{quoted(name)}"
                )
        value: Any = object.__new__(kind)
        vars(value).update({**defaults, **parts})
        return value


def _may_be_set(kind: type, name: str) -> bool:
    """Whether an attribute of that name holds data: it must shadow no method or property."""
    plain = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
    return plain and name != REQUESTS and not hasattr(kind, name)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value read from a file is what a field is declared to hold.

    Parameters
    ----------
    value : as read.
    hint : a type, union, tuple, list, dict, literal or array type. A field declared as a
        function or class holds none in a file and so takes None alone.
    """
    if hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return True
    hint = _spelled_out(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _dtype_fits(value.dtype, arguments)
    if origin is not None:
        return _container_fits(value, origin, arguments)
    if hint in (None, type(None)):
        return value is None
    if hint is float:
        return isinstance(value, (float, int, np.floating, np.integer)) and value is not True
    if hint in (int, bool):
        return isinstance(value, (hint, np.integer if hint is int else np.bool_))
    return isinstance(hint, type) and isinstance(value, hint)


def _spelled_out(hint: Any) -> Any:
    """Return what a named alias stands for: from numpy 2.5 on ``NDArray[float64]`` is one."""
    alias = get_origin(hint) or hint
    if ALIAS is None or not isinstance(alias, ALIAS):
        return hint
    arguments = get_args(hint)
    return alias.__value__[arguments] if arguments else alias.__value__


def _container_fits(value: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(origin, type) or not isinstance(value, origin):
        return False
    if isinstance(value, tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(fits(item, arguments[0]) for item in value)
        return not arguments or (len(value) == len(arguments) and all(map(fits, value, arguments)))
    if isinstance(value, list):
        return not arguments or all(fits(item, arguments[0]) for item in value)
    if isinstance(value, dict) and arguments:
        return all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items())
    return True


def _dtype_fits(dtype: np.dtype[Any], arguments: tuple[Any, ...]) -> bool:
    inner = get_args(arguments[-1]) if arguments else ()
    scalar = inner[0] if inner else Any
    return not isinstance(scalar, type) or np.issubdtype(dtype, scalar) or scalar is np.generic


KINDS: tuple[Kind, ...] = (OwnValue(), OwnChoice(), OwnEstimator())
