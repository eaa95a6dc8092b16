"""A file that changes while it is read is noticed, whatever its times say."""

import os

import pytest

from hetrisk.tables.errors import TableError
from hetrisk.tables.inputs import input_of


def test_a_change_in_place_is_noticed_where_size_and_time_are_put_back(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    before = path.stat()

    def change() -> None:
        # The clock of a file system ticks every few milliseconds.
        while path.stat().st_ctime_ns == before.st_ctime_ns:
            path.write_text("a,b\n3,4\n")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with (
        pytest.raises(TableError, match=r"'t\.csv' was replaced or written to"),
        input_of(path).unchanged(),
    ):
        change()
