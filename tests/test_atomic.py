"""Files are replaced whole or not at all."""

import errno
import os
import stat
import threading

import pytest

from hetrisk import atomic


def test_a_new_file_is_written_with_ordinary_permissions(tmp_path):
    mask = os.umask(0o022)
    try:
        atomic.write_bytes(tmp_path / "f", b"data")
    finally:
        os.umask(mask)
    assert (tmp_path / "f").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["f"]


def test_an_existing_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o600)
    atomic.write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure, step):
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def fail(*args):
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure)):
        atomic.write_bytes(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_keeps_pointing(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    atomic.write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        atomic.write_bytes(tmp_path, b"")


def test_a_pipe_is_written_to_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    atomic.write_bytes(pipe, b"through")
    reader.join(timeout=10)
    assert received == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_written_in_pieces_appears_whole_or_not_at_all(tmp_path):
    place = tmp_path / "file"
    with atomic.replacing(place) as temporary:
        temporary.write_text("first, ")
        with temporary.open("a") as more:
            more.write("then second")
        assert not place.exists()
    assert place.read_text() == "first, then second"

    def interrupted():
        with atomic.replacing(place) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert place.read_text() == "first, then second"
    assert os.listdir(tmp_path) == ["file"]


def test_the_umask_is_never_touched(tmp_path, monkeypatch):
    """Asking for it sets it, for every thread: a file saved meanwhile would be open to all."""

    def fail(mask):
        raise AssertionError("the umask was touched")

    before = os.umask(0o027)
    monkeypatch.setattr(os, "umask", fail)
    atomic.write_bytes(tmp_path / "f", b"data")
    monkeypatch.undo()
    os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_read_only_file_is_refused(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match=r"read-only") as refused:
        atomic.write_bytes(path, b"new")
    assert refused.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_file_keeps_its_owner(tmp_path, monkeypatch):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    atomic.write_bytes(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)
    assert path.read_bytes() == b"new"

    def forbidden(*args):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", forbidden)
    with pytest.raises(PermissionError, match="belongs to another user"):
        atomic.write_bytes(path, b"newer")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]
