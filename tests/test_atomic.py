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
