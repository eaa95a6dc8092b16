"""Files written beside their place and renamed, so that a failure leaves the old one whole."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

_made: list[tuple[Path, int]] = []


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Put ``data`` at ``path`` all at once or not at all.

    The bytes go to a temporary file in the same folder, reach the disk, and take the place of
    whatever was there in one rename. If anything fails (a full disk, a lost permission, an
    interrupt) the temporary file is removed and an existing file is untouched. A file that is
    replaced keeps its permissions, owner and group; one that is read-only, or whose owner could
    not be kept, is refused. What is not a regular file (a pipe, ``/dev/stdout``) is written to
    directly: renaming would destroy it.

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

    It takes the place of ``path`` when the block ends well, as `write_bytes` describes. An error
    of the operating system names ``path``, whatever it named before.
    """
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(place))
    if place.exists() and not place.is_file():
        with _naming(place):
            yield place
        return
    place = place.resolve()  # a symbolic link keeps pointing where it did
    # The name is chosen first and the file made inside the block that removes it: a signal
    # between the two would otherwise leave an empty file behind.
    name = place.parent / f".hetrisk-{secrets.token_hex(6)}.part"
    try:
        with _naming(place):
            before = _state(place)
            # A new file gets what the umask leaves: asking for it would change it for a moment,
            # in every thread. One that replaces another is nobody else's until it is whole.
            handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _mode(before))
            _made.append((place, os.fstat(handle).st_ino))
            os.close(handle)
            _keep_owner(name, place, before)
            yield name
            with name.open("rb+") as file:
                os.fsync(file.fileno())
            if before is not None:
                os.chmod(name, before.st_mode & 0o777)
            os.replace(name, place)
    except BaseException:
        with contextlib.suppress(OSError):
            name.unlink()
        raise


def written() -> list[Path]:
    """Files this process has put in their place since `forget`, in order."""
    found = []
    for place, inode in _made:
        with contextlib.suppress(OSError):
            if place.stat().st_ino == inode:
                found.append(place)
    return found


def forget() -> None:
    """Begin the list of `written` anew."""
    _made.clear()


@contextlib.contextmanager
def _naming(place: Path) -> Iterator[None]:
    """Let errors of the operating system name the file being written, not a temporary one.

    A full disk, for one, is reported without any name.
    """
    try:
        yield
    except OSError as error:
        ours = error.filename is None or str(error.filename).endswith(".part")
        if not ours or error.errno == errno.EPIPE:
            raise
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno or errno.EIO, reason, str(place)) from error


def _state(place: Path) -> os.stat_result | None:
    """State of the file to be replaced; None for a new one, an error for one that is read-only."""
    if not place.exists():
        return None
    before = place.stat()
    if not before.st_mode & 0o222 or not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, "The file is read-only", str(place))
    return before


def _mode(before: os.stat_result | None) -> int:
    """Permissions a temporary file is made with."""
    return 0o666 if before is None else 0o600


def _keep_owner(name: Path, place: Path, before: os.stat_result | None) -> None:
    """Give the temporary file the owner and group of the file it will replace."""
    now = name.stat()
    if before is None or (before.st_uid, before.st_gid) == (now.st_uid, now.st_gid):
        return
    try:
        os.chown(name, before.st_uid, before.st_gid)
    except OSError:
        what = "The file belongs to another user or group, who would lose it"
        raise PermissionError(errno.EPERM, what, str(place)) from None
