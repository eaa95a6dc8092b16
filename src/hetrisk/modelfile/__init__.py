"""Models as files that are safe to open: four records of plain values, and nothing else.

A model file is a zip archive (`hetrisk.modelfile.archive`) of what `hetrisk.modelfile.schema`
declares: an encoder, a predictor, a summary and a reference, each with a version. One reader checks
every field against its declaration before anything is built: opening a file runs nothing from it,
nothing in it reaches compiled code but numpy's, and it names no class and no module. What comes
back, `Deployed`, predicts. A file holds no training rows and nothing per training row.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import hetrisk
from hetrisk import atomic
from hetrisk.columns.words import quoted
from hetrisk.modelfile.archive import FORMAT_VERSION, LARGEST_FILE, is_later, pack, unpack
from hetrisk.modelfile.codec import Reader, Writer
from hetrisk.modelfile.deployed import Deployed
from hetrisk.modelfile.errors import ModelFileError, NewerModelWarning
from hetrisk.modelfile.records import read_records, write_records

__all__ = [
    "FORMAT_VERSION",
    "Deployed",
    "ModelFileError",
    "NewerModelWarning",
    "dumps",
    "load",
    "loads",
    "save",
]


def save(path: str | os.PathLike[str], deployed: Deployed) -> None:
    """Write a model to a file, all at once or not at all.

    Parameters
    ----------
    path : the file to write; an existing one is replaced only once the new one is whole.
    deployed : see `Deployed.from_model`.

    Raises
    ------
    ModelFileError : when it holds something `load` would not open again.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from hetrisk import StableRegressor, modelfile
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = StableRegressor().fit(X, X[:, 0], environments=np.arange(200) % 4)
    >>> place = Path(tempfile.mkdtemp()) / "model.hetrisk"
    >>> modelfile.save(place, modelfile.Deployed.from_model(model))
    >>> bool(np.allclose(modelfile.load(place).predict(X), model.predict(X)))
    True
    """
    atomic.write_bytes(path, dumps(deployed))


def dumps(deployed: Deployed) -> bytes:
    """Return the bytes of a model file, once they have been opened again as a test."""
    writer = Writer()
    data = pack(write_records(deployed, writer), bytes(writer.arrays))
    try:
        loads(data)
    except ModelFileError as error:
        raise ModelFileError(f"the model cannot be written: read again, it {error}") from None
    return data


def load(path: str | os.PathLike[str]) -> Deployed:
    """Open a model file written by `save`.

    Raises
    ------
    ModelFileError : when the file is not one, is damaged, holds anything that is not declared, or
        was written in another format; nothing in it was executed.
    OSError : when it cannot be read.

    Warns
    -----
    NewerModelWarning : when a later version of hetrisk wrote it.
    """
    place = Path(path)
    try:
        if place.exists() and not place.is_file() and not place.is_dir():
            raise ModelFileError("is not a regular file")
        if place.is_file() and place.stat().st_size > LARGEST_FILE:
            raise ModelFileError(f"is larger than {LARGEST_FILE:,} bytes, which no model needs")
        return loads(place.read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{quoted(place.name)} {error}") from None


def loads(data: bytes) -> Deployed:
    """Return the model in the bytes of a model file; see `load`."""
    contents = unpack(data)
    try:
        deployed = read_records(contents.records, Reader(contents.arrays, contents.version))
    except ModelFileError:
        raise
    # The records are right one by one; what else fails is the file's fault all the same.
    except (Exception, MemoryError) as error:
        what = type(error).__name__
        raise ModelFileError(f"is damaged or was tampered with ({what})") from None
    if is_later(contents.version):
        warnings.warn(
            f"the model was written by hetrisk {quoted(contents.version, 20)}, later than this "
            f"version ({hetrisk.__version__}): what it says should be checked, or hetrisk upgraded",
            NewerModelWarning,
            stacklevel=3,
        )
    return deployed
