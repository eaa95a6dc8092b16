"""Models as files that are safe to open: plain JSON, plain arrays, and a list of what may be in.

A model file is a zip archive of a label, a tree of JSON and the bytes of arrays
(`hetrisk.modelfile.archive`). It can hold any estimator of hetrisk, alone or in a pipeline, with
a final estimator of scikit-learn that is named in `hetrisk.modelfile.named`: linear and logistic
models, trees, forests and gradient boosting. Opening one runs nothing from the file: there are
no words in the format for a function, a method or a class that is not on a list; the nodes of
trees are checked before compiled code follows them; sizes are checked against one another; and
two rows go through the model before it is handed out. Pickles are refused.

A file holds no training rows and nothing per training row: the environments of the training
rows stay with the model in memory. Nor does it hold requests of metadata (``set_fit_request``,
``set_score_request``): predictions need none, and who fits or scores again sets them again.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import hetrisk
from hetrisk import atomic
from hetrisk.modelfile import named, own, trees, values
from hetrisk.modelfile.archive import FORMAT_VERSION, LARGEST_FILE, pack, unpack
from hetrisk.modelfile.codec import Reader, Writer
from hetrisk.modelfile.errors import ModelFileError, NewerModelWarning
from hetrisk.modelfile.trial import check_kind, try_out
from hetrisk.tables.errors import quoted

__all__ = [
    "FORMAT_VERSION",
    "ModelFileError",
    "NewerModelWarning",
    "dumps",
    "load",
    "loads",
    "read_label",
    "save",
]

KINDS = (*values.KINDS, *own.KINDS, *named.KINDS, *trees.KINDS)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, all at once or not at all.

    Parameters
    ----------
    model : a fitted estimator of hetrisk, or a Pipeline that holds one.
    path : the file to write; an existing one is replaced only once the new one is whole.

    Raises
    ------
    ModelFileError : when the model holds something `load` would not open again.
    """
    atomic.write_bytes(path, dumps(model))


def dumps(model: Any) -> bytes:
    """Return the bytes of a model file, once they have been opened again as a test."""
    try:
        check_kind(model)
    except ModelFileError as error:
        raise ModelFileError(f"the model cannot be written: {error}") from None
    writer = Writer(KINDS)
    data = pack(writer.write(model), bytes(writer.arrays))
    try:
        loads(data)
    except ModelFileError as error:
        raise ModelFileError(
            f"the model cannot be written: read again, it {error}; is it fitted?"
        ) from None
    return data


def load(path: str | os.PathLike[str]) -> Any:
    """Open a model file written by `save`.

    Returns
    -------
    The estimator or Pipeline that was saved.

    Raises
    ------
    ModelFileError : when the file is not one, is damaged, holds anything that is not on the
        list, or was written in another format; nothing in it was executed.
    OSError : when it cannot be read.

    Warns
    -----
    NewerModelWarning : when a later version of hetrisk wrote it.
    """
    place = Path(path)
    try:
        if place.is_file() and place.stat().st_size > LARGEST_FILE:
            raise ModelFileError(f"is larger than {LARGEST_FILE:,} bytes, which no model needs")
        return loads(place.read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{quoted(place.name)} {error}") from None


def loads(data: bytes) -> Any:
    """Return the model in the bytes of a model file; see `load`."""
    contents = unpack(data)
    try:
        model = Reader(KINDS, contents.arrays).read(contents.model)
        check_kind(model)
        try_out(model, len(data))
    except ModelFileError as error:
        raise ModelFileError(_as_clause(error)) from None
    # Parts that do not fit together can fail anywhere in numpy or scikit-learn.
    except (Exception, MemoryError) as error:
        what = type(error).__name__
        raise ModelFileError(f"is damaged or was tampered with ({what})") from None
    _warn_if_newer(contents.label)
    return model


def read_label(data: bytes) -> dict[str, Any]:
    """Return what a model file says about itself: format and library versions."""
    return unpack(data).label


def _as_clause(error: ModelFileError) -> str:
    """The message with a verb first, so that the name of the file can stand before it."""
    text = str(error)
    verbs = ("is ", "was ", "does ", "holds ")
    return text if text.startswith(verbs) else f"was refused, and nothing in it was run: {text}"


def _warn_if_newer(label: dict[str, Any]) -> None:
    versions = label.get("versions")
    written = versions.get("hetrisk") if isinstance(versions, dict) else None
    if isinstance(written, str) and _numbers(written) > _numbers(hetrisk.__version__):
        warnings.warn(
            f"the model was written by hetrisk {written[:40]}, later than this version "
            f"({hetrisk.__version__}): what it says should be checked, or hetrisk upgraded",
            NewerModelWarning,
            stacklevel=3,
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])
