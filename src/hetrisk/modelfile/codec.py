"""Where writing and reading stand: bytes of arrays on the way out; place and dimensions back in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hetrisk
from hetrisk.columns.words import listed, quoted
from hetrisk.modelfile.archive import is_later
from hetrisk.modelfile.errors import ModelFileError


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

    def need(self, right: bool, what: str) -> None:
        """Refuse to write unless ``right``."""
        if not right:
            raise ModelFileError(f"the model cannot be written: {what}")


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
            place = quoted("".join(self._path).lstrip("."), 80) if self._path else "it"
            raise ModelFileError(f"is damaged or was tampered with: {place} must {what}")

    def refuse_unknown(self, names: list[str]) -> None:
        """Refuse what no field is declared for: of a later version, or of nobody."""
        if names and is_later(self.written):
            raise ModelFileError(
                f"was written by hetrisk {quoted(self.written, 20)} and holds {listed(names)}, "
                f"which this version ({hetrisk.__version__}) does not know: upgrade hetrisk"
            )
        self.need(not names, f"not hold {listed(names)}")

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
