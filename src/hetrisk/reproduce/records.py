"""Records of finished cases: one JSON object a line, appended when a case is done.

A run may be killed at any moment. Each record reaches the disk in one append before the next is
taken up, so a kill loses at most the cases in flight. What a kill can leave behind is a last line
without its end: opening the file heals it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hetrisk.atomic import write_bytes

Record = dict[str, Any]
OK, FAILED = "ok", "failed"


class RecordsError(ValueError):
    """A records file that cannot be read or is in use."""


class Records:
    """The records of a folder.

    Parameters
    ----------
    path : of the JSONL file; made when the first record is added.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> dict[str, Record]:
        """Return the last record of every case, by key; a half-written last line is left out."""
        if not self.path.exists():
            return {}
        lines = self.path.read_bytes().split(b"\n")
        records: dict[str, Record] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            record = _parsed(line)
            if record is not None:
                records[record["key"]] = record
            elif number < len(lines):
                raise RecordsError(
                    f"{self.path}, line {number}: not a record. Only the last line can be cut "
                    "short by a kill; remove this line to go on."
                )
        return records

    def finished(self) -> set[str]:
        """Keys of the cases that are settled; failed ones are tried again."""
        return {key for key, record in self.read().items() if record["status"] != FAILED}

    def drop(self, unwanted: Callable[[Record], bool]) -> int:
        """Remove the records that ``unwanted`` picks; return how many went."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as file:
            _lock(file.fileno(), self.path)
            records = self.read()
            kept = [record for record in records.values() if not unwanted(record)]
            if len(kept) < len(records):
                write_bytes(self.path, b"".join(_line(record) for record in kept))
        return len(records) - len(kept)

    @contextmanager
    def appending(self) -> Iterator[Callable[[Record], None]]:
        """Open for writing: heal, lock against a second run, and yield ``append(record)``."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+", buffering=0) as file:
            _lock(file.fileno(), self.path)
            self._heal(file)

            def append(record: Record) -> None:
                data = _line(record)
                if file.write(data) != len(data):
                    raise OSError(f"{self.path}: the disk took only part of a record.")
                os.fsync(file.fileno())

            yield append

    def _heal(self, file: Any) -> None:
        """End an unfinished last line: keep it if it is whole, cut it off if it is not."""
        file.seek(0)
        data = file.read()
        start = data.rfind(b"\n") + 1
        if start == len(data):
            return
        if _parsed(data[start:]) is not None:
            file.write(b"\n")
        else:
            file.truncate(start)


def _line(record: Record) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _parsed(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(record, dict) and {"key", "status"} <= set(record)
    return record if whole else None


def _lock(handle: int, path: Path) -> None:
    """Hold the file for this process; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # not POSIX: two runs in one folder are then the user's to avoid
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RecordsError(f"{path} is being written by another run; wait for it.") from None
