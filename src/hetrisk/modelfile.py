"""Models as files that are safe to open: skops, an allowlist of types, and a format version.

A model file is a zip archive: skops' description of one scikit-learn Pipeline (the
`hetrisk.tables.TableEncoder` and the model), and ``hetrisk.json`` with the version of the
format. Opening one runs no code from the file: before anything is built, every type it names
must be one of hetrisk's own value types and estimators, or one that skops trusts of
scikit-learn and numpy. Pickles and archives of anything else are refused.

A file holds no training rows and nothing per training row: the environments of the training
rows stay with the model in memory.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import io
import json
import os
import pkgutil
import zipfile
import zlib
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import hetrisk
from hetrisk import atomic
from hetrisk.tables.errors import listed, quoted

FORMAT_VERSION = 2  # 1: the classes of version 0.1.0, which have moved
_LABEL = "hetrisk.json"
_HOMES = ("hetrisk.core", "hetrisk.estimators", "hetrisk.tables")
_LARGEST_EXPANDED = 1 << 31  # no model of ours comes near; an archive built to fill memory does
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"(", b"c")
_MALFORMED = (
    AttributeError,
    EOFError,
    ImportError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


class ModelFileError(ValueError):
    """A file that is not a model hetrisk will open, and why, in a sentence."""


def save(model: Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted pipeline to a file, all at once or not at all.

    Parameters
    ----------
    model : a fitted Pipeline whose steps are hetrisk's or scikit-learn's.
    path : the file to write; an existing one is replaced only once the new one is whole.

    Raises
    ------
    ModelFileError : when the pipeline holds something `load` would not open again.
    """
    atomic.write_bytes(path, dumps(model))


def dumps(model: Pipeline) -> bytes:
    """Return the bytes of a model file."""
    import skops.io
    from skops.io.exceptions import UnsupportedTypeException

    if not isinstance(model, Pipeline):
        raise ModelFileError(f"model must be a scikit-learn Pipeline; got {type(model).__name__}.")
    try:
        data = skops.io.dumps(_without_rows(model), compression=zipfile.ZIP_DEFLATED)
    except UnsupportedTypeException as error:
        raise ModelFileError(f"the model cannot be written: {error}") from None
    _refuse_foreign(skops.io.get_untrusted_types(data=data), "the model cannot be written")
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_LABEL, json.dumps(_label()))
    return buffer.getvalue()


def load(path: str | os.PathLike[str]) -> Pipeline:
    """Open a model file written by `save`.

    Raises
    ------
    ModelFileError : when the file is not one, is damaged, names types that are not trusted, or
        was written in another format; nothing in it was executed.
    OSError : when it cannot be read.
    """
    try:
        return loads(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{quoted(Path(path).name)} {error}") from None


def loads(data: bytes) -> Pipeline:
    """Return the pipeline in the bytes of a model file; see `load`."""
    import skops.io

    _check_archive(data)
    try:
        foreign = skops.io.get_untrusted_types(data=data)
        trusted = _refuse_foreign(foreign, "was refused, and nothing in it was run")
        model = skops.io.loads(data, trusted=trusted)
    except ModelFileError:
        raise
    except (*_MALFORMED, MemoryError) as error:
        what = type(error).__name__
        raise ModelFileError(f"is damaged or was tampered with ({what})") from None
    if not isinstance(model, Pipeline):
        raise ModelFileError(f"holds a {type(model).__name__}, not a hetrisk model")
    return model


def read_label(data: bytes) -> dict[str, Any]:
    """Return what a model file says about itself: format and library versions."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        label = json.loads(archive.read(_LABEL))
    if not isinstance(label, dict) or not isinstance(label.get("format"), int):
        raise ValueError("no format version")
    return label


def _label() -> dict[str, Any]:
    versions = {"hetrisk": hetrisk.__version__, "scikit-learn": sklearn.__version__}
    return {"format": FORMAT_VERSION, "versions": versions}


def _check_archive(data: bytes) -> None:
    """Refuse what is not a model file before a single type in it is looked at."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        if data.startswith(b"PK\x03\x04"):
            raise ModelFileError("is truncated: the end of the archive is missing")
        if data.startswith(_PICKLES) and data.rstrip().endswith(b"."):
            raise ModelFileError("is a pickle: opening it could run anything, so it was refused")
        raise ModelFileError("is not a hetrisk model file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            expanded = sum(entry.file_size for entry in archive.infolist())
            names = set(archive.namelist())
        if not {"schema.json", _LABEL} <= names:
            raise ModelFileError("is a zip archive, but not a hetrisk model file")
        if expanded > _LARGEST_EXPANDED:
            raise ModelFileError("would expand to more than 2 GB, which no model needs")
        version = read_label(data)["format"]
    except _MALFORMED as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError("is damaged: its contents cannot be read") from None
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"was written in format {version}, newer than the format {FORMAT_VERSION} this "
            f"version of hetrisk ({hetrisk.__version__}) reads: upgrade hetrisk"
        )
    if version < FORMAT_VERSION:
        raise ModelFileError(
            f"was written in format {version}, older than the format {FORMAT_VERSION} this "
            f"version of hetrisk ({hetrisk.__version__}) reads: fit the model again"
        )


def _refuse_foreign(types: list[str], refusal: str) -> list[str]:
    """Return the types when all are hetrisk's own; skops has vouched for the rest already."""
    foreign = [name for name in types if name not in _own_types()]
    if foreign:
        raise ModelFileError(f"{refusal}: it holds foreign types ({listed(foreign)})")
    return types


@cache
def _own_types() -> frozenset[str]:
    """Names of the estimators, dataclasses and plain value types a model is made of.

    A class counts under every name it has in our modules, not only that of its home.
    """
    names = set()
    for home in _HOMES:
        package = importlib.import_module(home)
        for entry in pkgutil.walk_packages(package.__path__, f"{home}."):
            module = importlib.import_module(entry.name)
            for name, value in vars(module).items():
                if isinstance(value, type) and _is_value(value):
                    names.add(f"{entry.name}.{name}")
    return frozenset(names)


def _is_value(kind: type) -> bool:
    """Whether it is ours, and building one does nothing but hold its parts."""
    ours = kind.__module__.partition(".")[0] == "hetrisk"
    return ours and (dataclasses.is_dataclass(kind) or issubclass(kind, (BaseEstimator, Enum)))


def _without_rows(model: Pipeline) -> Pipeline:
    """Return a shallow copy whose last step has forgotten the environments of its training rows."""
    last = copy.copy(model.steps[-1][1])
    if "_environment_proba" in vars(last):
        last._environment_proba = None
    lean = copy.copy(model)
    lean.steps = [*model.steps[:-1], (model.steps[-1][0], last)]
    return lean
