"""Temporary folders go away with their process, or with the next one."""

import signal
import subprocess
import sys

import pytest

from hetrisk.tables.spool import PREFIX, spool_folder

HOLD = """
import sys, time
from hetrisk.tables.spool import spool_folder
with spool_folder() as folder:
    (folder / "rows").write_text("many")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def holding():
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def test_a_folder_goes_with_its_work(place):
    with spool_folder() as folder:
        (folder / "rows").write_text("many")
        assert folder.parent == place
    assert list(place.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="folders are locked on POSIX systems alone")
def test_what_a_killed_process_left_goes_at_the_next_start(place):
    process, left = holding()
    with spool_folder():  # it is alive: its folder stays
        assert sum(1 for _ in place.glob(f"{PREFIX}*")) == 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert [str(folder) for folder in place.iterdir()] == [left]
    other = place / f"{PREFIX}unlocked"  # not yet locked, or not ours: stays
    other.mkdir()
    with spool_folder() as folder:
        assert {path.name for path in place.iterdir()} == {folder.name, other.name}
