"""The container: a zip archive of three members that are stored, never compressed.

``hetrisk.json`` is the label (format and library versions), ``model.json`` the model as a tree
of plain JSON, ``arrays.bin`` the bytes of its arrays one after another. Because nothing is
compressed, opening a file takes memory in proportion to its size: a small file cannot unfold
into a large one. Every member has a checksum, so a flipped bit is found before anything is read.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

import sklearn

import hetrisk
from hetrisk.modelfile.errors import ModelFileError

FORMAT_VERSION = 2
LARGEST_FILE = 1 << 32  # a forest of 500 deep trees is a tenth of it
LARGEST_TEXT = 1 << 24  # model.json of 2000 features is a tenth of it; JSON unfolds twentyfold
LABEL, MODEL, ARRAYS = "hetrisk.json", "model.json", "arrays.bin"
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"(", b"c")


@dataclass(frozen=True)
class Contents:
    """What a model file holds, before anything is built from it.

    Attributes
    ----------
    label : format and library versions.
    model : the tree of plain JSON.
    arrays : the bytes of all arrays.
    """

    label: dict[str, Any]
    model: Any
    arrays: bytes


def pack(model: Any, arrays: bytes) -> bytes:
    """Return the bytes of a model file."""
    versions = {"hetrisk": hetrisk.__version__, "scikit-learn": sklearn.__version__}
    label = {"format": FORMAT_VERSION, "versions": versions}
    text = json.dumps(model, allow_nan=False).encode()
    if len(text) > LARGEST_TEXT:
        raise ModelFileError(
            f"the model cannot be written: its description takes {len(text):,} bytes, and a model "
            f"file has room for {LARGEST_TEXT:,}"
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_STORED) as archive:
        # A fixed date: the same model gives the same bytes.
        for name, data in ((LABEL, json.dumps(label).encode()), (MODEL, text), (ARRAYS, arrays)):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def unpack(data: bytes) -> Contents:
    """Return what is in the bytes of a model file, or refuse them with a sentence."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ModelFileError(_what_it_is(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries)
            label = _label(json.loads(archive.read(LABEL)))
            _check_format(label["format"])
            return Contents(label, json.loads(archive.read(MODEL)), archive.read(ARRAYS))
    except ModelFileError:
        raise
    # Whatever a damaged archive makes zipfile and json raise, the file is what is wrong.
    except (Exception, MemoryError) as error:
        what = type(error).__name__
        raise ModelFileError(f"is damaged: its contents cannot be read ({what})") from None


def _what_it_is(data: bytes) -> str:
    if data.startswith(b"PK\x03\x04"):
        return "is truncated: the end of the archive is missing"
    if data.startswith(_PICKLES) and data.rstrip().endswith(b"."):
        return "is a pickle: opening it could run anything, so it was refused"
    return "is not a hetrisk model file"


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if "schema.json" in names:
        raise ModelFileError(
            "is a skops file, the format of hetrisk 0.1.0, whose loader could be made to run code: "
            "it is not opened; fit the model again"
        )
    if sorted(names) != sorted((LABEL, MODEL, ARRAYS)):
        if LABEL in names:
            raise ModelFileError("is damaged: it does not hold the three parts of a model")
        raise ModelFileError("is a zip archive, but not a hetrisk model file")
    for entry in entries:
        stored = entry.compress_type == zipfile.ZIP_STORED and entry.flag_bits & 0x1 == 0
        if not stored or entry.file_size != entry.compress_size:
            raise ModelFileError(
                f"was tampered with: {entry.filename} is compressed or encrypted, which a model "
                "file never is"
            )
        if entry.filename != ARRAYS and entry.file_size > LARGEST_TEXT:
            raise ModelFileError(
                f"was refused: {entry.filename} takes {entry.file_size:,} bytes, and no model "
                f"needs more than {LARGEST_TEXT:,}"
            )


def _label(label: Any) -> dict[str, Any]:
    if not isinstance(label, dict) or type(label.get("format")) is not int:
        raise ModelFileError("is damaged: it does not say which format it has")
    return label


def _check_format(version: int) -> None:
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"was written in format {version}, newer than the format {FORMAT_VERSION} this "
            f"version of hetrisk ({hetrisk.__version__}) reads: upgrade hetrisk"
        )
    if version < FORMAT_VERSION:
        raise ModelFileError(
            f"was written in format {version}, which this version of hetrisk "
            f"({hetrisk.__version__}) does not read any more: fit the model again"
        )
