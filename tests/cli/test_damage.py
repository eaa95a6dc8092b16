"""Files that are broken, change while they are read, or find no room: a sentence names each."""

import errno
import os
import signal
import subprocess
import sys

import click
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from hetrisk import atomic
from hetrisk.cli import app
from hetrisk.tables import inputs, parquet, reading, spooled

from .conftest import FEW, frame, run

COLUMNS = ["a", "b", "kind", "place", "y"]
WHOLE, BLOCKS = 10**9, 1000


@pytest.fixture(params=[WHOLE, BLOCKS], ids=["whole", "blocks"])
def limit(request, monkeypatch):
    """A machine with memory, and one on which nothing fits."""
    monkeypatch.setattr(inputs, "memory_limit", lambda: request.param)
    return request.param


def commands(data, model):
    return {
        "fit": ("fit", data, "-t", "y", "--time", "year", *FEW),
        "predict": ("predict", model, data),
        "check": ("check", model, data),
    }


@pytest.mark.parametrize("command", ["fit", "predict", "check"])
def test_a_page_that_cannot_be_decoded_is_named_with_its_file(command, limit, workshop, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    frame().to_parquet(folder / "one.parquet")
    data = bytearray((folder / "one.parquet").read_bytes())
    data[4:60] = bytes(byte ^ 0xFF for byte in data[4:60])
    (folder / "two.parquet").write_bytes(data)
    result = run(*commands(folder, workshop / "y.hetrisk")[command])
    assert result.exit_code == 1
    assert "two.parquet" in result.stderr
    assert "unforeseen" not in result.stderr


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_notes_of_pandas_that_are_broken_do_not_matter(kind, limit, workshop, tmp_path):
    table = pa.Table.from_pandas(frame()).replace_schema_metadata({b"pandas": b"{broken"})
    data = tmp_path / f"t.{kind}"
    {"parquet": pq.write_table, "feather": pyarrow.feather.write_feather}[kind](table, data)
    for arguments in commands(data, workshop / "y.hetrisk").values():
        result = run(*arguments)
        if kind == "feather" and limit == BLOCKS:  # it is not read in blocks
            assert "'t.feather' does not fit in memory" in result.stderr
            continue
        assert result.exit_code in (0, 3, 4), result.stderr  # 3 and 4: what check found


@pytest.mark.parametrize("command", ["fit", "predict", "check"])
@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_text_that_is_not_utf_8_is_named_with_its_column(kind, command, limit, workshop, tmp_path):
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    broken = pa.array([b"\xff\xfe"] * len(table), pa.binary()).view(pa.string())
    table = table.set_column(table.column_names.index("kind"), "kind", broken)
    data = tmp_path / f"t.{kind}"
    {"parquet": pq.write_table, "feather": pyarrow.feather.write_feather}[kind](table, data)
    result = run(*commands(data, workshop / "y.hetrisk")[command])
    assert result.exit_code == 1
    large = kind == "feather" and limit == BLOCKS  # it is not read in blocks
    what = "does not fit in memory" if large else "column 'kind' holds text that is not UTF-8"
    assert what in result.stderr
    assert f"t.{kind}" in result.stderr


@pytest.mark.parametrize("command", ["fit", "predict", "check"])
def test_text_that_changes_while_it_is_read_is_refused(
    command, limit, workshop, tmp_path, monkeypatch
):
    data = tmp_path / "t.csv"
    frame().to_csv(data, index=False)
    for module in (reading, spooled):
        found = module.layout_of
        monkeypatch.setattr(module, "layout_of", lambda *a, f=found: after(f, *a))

    def after(found, source, *rest):
        layout = found(source, *rest)
        with source.path.open("a") as file:
            file.write("1,2\n")
        return layout

    result = run(*commands(data, workshop / "y.hetrisk")[command])
    assert result.exit_code == 1
    assert "'t.csv' was replaced or written to while it was being read" in result.stderr


def test_parquet_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch):
    data, opened = tmp_path / "t.parquet", parquet.parquet_parts

    def replaced(path):
        parts = opened(path)
        frame()[["a"]].to_parquet(data)
        return parts

    frame()[COLUMNS].to_parquet(data)
    monkeypatch.setattr(parquet, "parquet_parts", replaced)
    result = run("fit", data, "-t", "y")
    assert result.exit_code == 1
    assert "t.parquet' was replaced or written to since it was opened" in result.stderr


@pytest.mark.parametrize("file", ["text.parquet"])
def test_rows_put_down_on_a_full_disk_are_a_sentence(file, tmp_path, monkeypatch):
    frame()[COLUMNS].to_csv(tmp_path / "t.csv", index=False)
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    monkeypatch.setattr(inputs, "memory_limit", lambda: BLOCKS)
    monkeypatch.setattr(pq, "ParquetWriter", lambda place, *a, **k: Full(place, file, *a, **k))
    result = run("fit", tmp_path / "t.csv", "-t", "y")
    assert result.exit_code == 1
    assert (
        f"'t.csv' is larger than memory, and its rows do not fit in the folder for temporary "
        f"files, '{spool}' (No space left on device): let TMPDIR name" in result.stderr
    )
    assert list(spool.iterdir()) == []


class Full(pq.ParquetWriter):
    """A writer whose disk is full once a file of some name is written."""

    def __init__(self, place, name, *rest, **more):
        super().__init__(place, *rest, **more)
        self.full = place.name == name

    def write_table(self, table, row_group_size=None):
        if self.full:
            raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space")
        super().write_table(table, row_group_size)


def test_a_full_disk_is_said_in_its_own_words(tmp_path):
    with (
        pytest.raises(OSError, match=r"No space left on device: '.*f'"),
        atomic.replacing(tmp_path / "f"),
    ):
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28]")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_an_output_without_room_is_named(workshop):
    arguments = ("predict", workshop / "y.hetrisk", workshop / "table.csv")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hetrisk.cli", *map(str, arguments)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Error: standard output: No space left on device"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("place", ["parsing", "the command"])
def test_a_signal_decides_the_exit_code_wherever_it_comes(place, number, workshop, monkeypatch):
    def stopped(*arguments, **options):
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except KeyboardInterrupt:
            if place == "the command":  # a library may call it something else
                raise click.UsageError("no answer") from None
            raise

    home, name = {
        "parsing": (click.Group, "make_context"),
        "the command": (app.Commands, "get_command"),
    }[place]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(home, name, stopped)
    try:
        result = run("fit", workshop / "table.csv", "-t", "y")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 128 + number
    assert result.stderr.strip() == "Stopped. No file was changed."


def test_an_interrupt_is_forgotten_with_its_command(workshop, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hetrisk.cli.fitting.fit_table", stopped)
    assert run("fit", workshop / "table.csv", "-t", "y").exit_code == 130
    assert run("fit", workshop / "none.csv", "-t", "y").exit_code == 1
