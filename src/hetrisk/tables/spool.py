"""A temporary folder that is removed even if its process was killed: at the next start.

A process that is killed outright (KILL, a machine out of memory) cleans nothing up. So each folder
holds a file that its process keeps locked; a lock ends with the process, however that ended. A
folder whose lock can be taken belongs to nobody, and goes. Where files cannot be locked (Windows)
folders of killed processes stay.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "hetrisk-spool-"
LOCK = "lock"


@contextmanager
def spool_folder() -> Iterator[Path]:
    """Give a temporary folder; first remove those of processes that are no more."""
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        with open(folder / "locking", "wb") as lock:
            _locked(lock.fileno())
            # Named only once it is locked: until then nobody takes it for a dead one's.
            os.rename(folder / "locking", folder / LOCK)
            yield folder


def _sweep(place: Path) -> None:
    if fcntl is None:
        return
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # no lock yet, another's, or gone meanwhile
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with open(folder / LOCK, "rb+") as lock:
                if _locked(lock.fileno()):
                    shutil.rmtree(folder, ignore_errors=True)


def _locked(file: int) -> bool:
    """Lock a file for as long as it is open; False where another process has."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
