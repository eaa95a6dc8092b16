"""Files written beside their place and renamed, so that a failure leaves the old one whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Put ``data`` at ``path`` all at once or not at all.

    The bytes go to a temporary file in the same folder, reach the disk, and take the place of
    whatever was there in one rename. If anything fails (a full disk, a lost permission, an
    interrupt) the temporary file is removed and an existing file is untouched. What is not a
    regular file (a pipe, ``/dev/stdout``) is written to directly: renaming would destroy it.

    Parameters
    ----------
    path : the file to write.
    data : its whole content.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside ``path`` to write to, for content too large to hold.

    It takes the place of ``path`` when the block ends well, as `write_bytes` describes.
    """
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(place))
    if place.exists() and not place.is_file():
        yield place
        return
    place = place.resolve()  # a symbolic link keeps pointing where it did
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".hetrisk-", suffix=".part")
    try:
        os.close(handle)
        yield Path(name)
        with open(name, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(name, _mode(place))
        os.replace(name, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(place: Path) -> int:
    """Permissions of the file to be replaced, or those a new file gets."""
    if place.exists():
        return place.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
