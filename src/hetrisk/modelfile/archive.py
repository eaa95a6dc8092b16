"""The container: a zip archive of three members that are stored, never compressed.

``hetrisk.json`` is the label (format and version), ``records.json`` the four records as plain JSON,
``arrays.bin`` the bytes of their arrays one after another. Because nothing is compressed, opening
a file takes memory in proportion to its size: a small file cannot unfold into a large one. Every
member has a checksum, so a flipped bit is found before anything is read.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any, NamedTuple, NoReturn

import hetrisk
from hetrisk.columns.words import quoted
from hetrisk.modelfile.errors import ModelFileError

FORMAT_VERSION = 3
LARGEST_FILE = 1 << 30  # a thousand boosted trees of 31 leaves take a three-hundredth of it
LARGEST_TEXT = 1 << 24
MOST_VALUES = 1_000_000  # of JSON: each takes 50 to 200 bytes once it is read
LABEL, RECORDS, ARRAYS = "hetrisk.json", "records.json", "arrays.bin"
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"(", b"c")


class Contents(NamedTuple):
    """What a file holds: the version of hetrisk that wrote it, plain JSON, bytes of arrays."""

    version: str
    records: Any
    arrays: bytes


def pack(records: Any, arrays: bytes) -> bytes:
    """Return the bytes of a model file."""
    try:
        text = json.dumps(records, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"the model cannot be written: {error}") from None
    for size, most in ((len(text), LARGEST_TEXT), (len(text) + len(arrays), LARGEST_FILE)):
        if size > most:
            room = f"takes {size:,} bytes where a model file has room for {most:,}"
            raise ModelFileError(f"the model cannot be written: it {room}")
    label = json.dumps({"format": FORMAT_VERSION, "hetrisk": hetrisk.__version__}).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_STORED) as archive:
        # A fixed date: the same model gives the same bytes.
        for name, data in ((LABEL, label), (RECORDS, text), (ARRAYS, arrays)):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def unpack(data: bytes) -> Contents:
    """Return what is in the bytes of a model file, or refuse them with a sentence."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ModelFileError(_what_it_is(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_entries(archive.infolist())
            version = _version(_parsed(archive.read(LABEL)))
            return Contents(version, _parsed(archive.read(RECORDS)), archive.read(ARRAYS))
    except ModelFileError:
        raise
    # Whatever a damaged archive makes zipfile and json raise, the file is what is wrong.
    except (Exception, MemoryError) as error:
        what = type(error).__name__
        raise ModelFileError(f"is damaged: its contents cannot be read ({what})") from None


def is_later(version: str) -> bool:
    """Whether a version is later than this one."""
    return _numbers(version) > _numbers(hetrisk.__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def _parsed(text: bytes) -> Any:
    if sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ModelFileError(f"was refused: no model needs more than {MOST_VALUES:,} values")
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_each_once)


def _no_number(word: str) -> NoReturn:
    raise ModelFileError(f"is damaged: {word} is no number of JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ModelFileError("is damaged: it says the same thing twice")
    return dict(pairs)


def _what_it_is(data: bytes) -> str:
    if data.startswith(b"PK\x03\x04"):
        return "is truncated: the end of the archive is missing"
    if data.startswith(_PICKLES) and data.rstrip().endswith(b"."):
        return "is a pickle: opening it could run anything, so it was refused"
    return "is not a hetrisk model file"


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if sorted(names) != sorted((LABEL, RECORDS, ARRAYS)):
        ours = "is damaged: it does not hold the three parts of a model file"
        other = "is a zip archive, but not a hetrisk model file"
        raise ModelFileError(ours if LABEL in names else other)
    for entry in entries:
        stored = entry.compress_type == zipfile.ZIP_STORED and entry.flag_bits & 0x1 == 0
        if not stored or entry.file_size != entry.compress_size:
            never = "is compressed or encrypted, which a model file never is"
            raise ModelFileError(f"was tampered with: {entry.filename} {never}")
        if entry.filename != ARRAYS and entry.file_size > LARGEST_TEXT:
            most = f"bytes, and no model needs more than {LARGEST_TEXT:,}"
            raise ModelFileError(f"was refused: {entry.filename} takes {entry.file_size:,} {most}")


def _version(label: Any) -> str:
    """Return the version of hetrisk that wrote the file, where this one reads its format."""
    if not isinstance(label, dict) or type(label.get("format")) is not int:
        raise ModelFileError("is damaged: it does not say which format it has")
    version, written = label["format"], str(label.get("hetrisk", "unknown"))
    here = f"this version of hetrisk ({hetrisk.__version__})"
    if version > FORMAT_VERSION:
        what = f"was written by hetrisk {quoted(written, 20)} in format {version}, newer than the"
        raise ModelFileError(f"{what} format {FORMAT_VERSION} {here} reads: upgrade hetrisk")
    if version < FORMAT_VERSION:
        what = f"was written in format {version}, which {here} does not read any more"
        raise ModelFileError(f"{what}: fit the model again")
    return written
