"""Where the bytes of a table come from: a file, or standard input."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pandas as pd

from hetrisk.tables.errors import TableError, quoted
from hetrisk.tables.inference import LeftOut

STANDARD_INPUT = "-"
MAGIC_BYTES = 10
MODEST_MEMORY = 4 * 2**30
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Input:
    """The bytes of a table, that can be opened again and again.

    Attributes
    ----------
    name : of the file, without its folder.
    path : the file or folder, or None where the bytes came from a pipe.
    held : the bytes that came from a pipe.
    """

    name: str
    path: Path | None
    held: bytes = b""

    def open(self) -> IO[bytes]:
        """Open the bytes as they are."""
        return io.BytesIO(self.held) if self.path is None else self.path.open("rb")

    def unpacked(self) -> IO[bytes]:
        """Open the bytes, decompressed where they are gzipped."""
        if self.start.startswith(b"\x1f\x8b"):
            place = io.BytesIO(self.held) if self.path is None else self.path
            return cast("IO[bytes]", gzip.open(place, "rb"))
        return self.open()

    @property
    def start(self) -> bytes:
        """The first few bytes, by which formats are told apart."""
        with self.open() as file:
            return file.read(MAGIC_BYTES)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of files, read as one table."""
        return self.path is not None and self.path.is_dir()

    @property
    def quoted(self) -> str:
        """The name for a message."""
        return "standard input" if self.path is None else quoted(self.name)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse what was read within the block if the file became another one meanwhile.

        Text is read in several passes: what one of them checked must be what the next one reads.
        """
        before = self._stamp()
        try:
            yield
        except Exception as error:
            if self._stamp() != before:
                raise self._changed() from error
            raise
        if self._stamp() != before:
            raise self._changed()

    def _stamp(self) -> tuple[int, int, int, int] | None:
        if self.path is None or not self.path.is_file():
            return None
        state = self.path.stat()
        # The time of change too: a tool may put the time of modification back.
        return state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino

    def _changed(self) -> TableError:
        return TableError(f"{self.quoted} was replaced or written to while it was being read")


@dataclass(frozen=True)
class Table:
    """A table as read.

    Attributes
    ----------
    frame : the cells; where the file holds nothing but text, text that is marked so
        (`hetrisk.tables.frames.marked`).
    source : the file's name, without its folder.
    notes : what the reader did that its owner should know, a clause each.
    left_out : columns of some files that are not part of the table, and why.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def input_of(path: str | os.PathLike[str]) -> Input:
    """Return the input a path means; ``-`` is standard input, read whole."""
    if str(path) == STANDARD_INPUT:
        return _standard_input()
    if not str(path):
        raise TableError("the name of the file is empty")
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise TableError(f"{quoted(path.name)} is not a regular file")
    return Input(path.name or str(path), path)


def _standard_input() -> Input:
    if sys.stdin is None or sys.stdin.isatty():
        raise TableError("standard input is a terminal: pipe a table into it, or name a file")
    limit = memory_limit()
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise TableError(
            f"standard input holds more than {limit / 2**30:.1f} GB, too much for this machine's "
            "memory: write it to a file first"
        )
    return Input("standard input", None, data)


def unreadable(source: Input, what: str, error: BaseException) -> TableError:
    """Return the error for a file whose format is known and whose contents are broken."""
    lines = str(error).splitlines() or [type(error).__name__]
    return TableError(f"{source.quoted} is not a readable {what}: {lines[0]}")


def memory_limit() -> int:
    """Bytes a table may take with room to work: an eighth of the memory of machine or container."""
    memory = _machine_memory()
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        memory = min(memory, int(_CGROUP_LIMIT.read_text()))
    return memory // 8


def _machine_memory() -> int:
    """Bytes of memory; a modest machine's where the system does not say."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return MODEST_MEMORY
