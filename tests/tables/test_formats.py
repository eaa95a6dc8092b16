"""Formats beyond delimited text, standard input, and files without a header."""

import datetime
import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from hetrisk.tables import TableEncoder, TableError, inputs, read_table, read_target
from hetrisk.tables.parquet import decoded_bytes, is_large, parquet_parts
from hetrisk.tables.text import looks_headerless

N = 30


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=N).round(6),
            "rooms": rng.integers(1, 6, N),
            "town": rng.choice(["x", "y", "z"], N),
            "sold": pd.date_range("2020-01-01", periods=N),
            "gap": [None, "a", "b"] * (N // 3),
        }
    )


def written(frame, path):
    """Write the frame in the format of the path's suffix."""
    kinds = {
        ".xlsx": lambda: frame.to_excel(path, index=False),
        ".feather": lambda: frame.to_feather(path),
        ".dta": lambda: frame.to_stata(path, write_index=False),
        ".parquet": lambda: frame.to_parquet(path, index=False),
        ".csv": lambda: frame.to_csv(path, index=False),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True, date_format="iso"),
        ".json": lambda: frame.to_json(path, orient="records", indent=1, date_format="iso"),
    }
    kinds[path.suffix]()
    return path


@pytest.mark.parametrize(
    "suffix", [".xlsx", ".feather", ".dta", ".parquet", ".csv", ".jsonl", ".json"]
)
def test_the_same_table_in_every_format(frame, tmp_path, suffix):
    """Law: what a table means does not depend on the format it was kept in."""
    table = read_table(written(frame, tmp_path / f"odd-name{suffix}"))
    expected = TableEncoder().fit(frame)
    encoder = TableEncoder().fit(table.frame)
    assert list(encoder.get_feature_names_out()) == list(expected.get_feature_names_out())
    np.testing.assert_allclose(
        encoder.transform(table.frame), expected.transform(frame), rtol=1e-12
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx", ".jsonl"])
def test_standard_input_is_a_file_like_any_other(frame, tmp_path, monkeypatch, suffix):
    data = written(frame, tmp_path / f"t{suffix}").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    table = read_table("-")
    assert table.source == "standard input"
    assert list(table.frame.columns) == list(frame.columns)
    assert len(table.frame) == N


def test_standard_input_must_be_a_pipe_that_fits(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(TableError, match="standard input is a terminal: pipe a table into it"):
        read_table("-")
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n" * 1000)))
    with pytest.raises(TableError, match="standard input holds more than"):
        read_table("-")


@pytest.mark.parametrize(
    ("name", "package", "line"),
    [
        ("t.xlsx", "openpyxl", "an Excel workbook needs openpyxl: pip install 'hetrisk[formats]'"),
        ("t.feather", "pyarrow", "reading Feather needs pyarrow: pip install 'hetrisk[formats]'"),
        ("t.parquet", "pyarrow", "reading Parquet needs pyarrow: pip install 'hetrisk[parquet]'"),
    ],
)
def test_what_is_missing_is_named_with_its_install_line(
    frame, tmp_path, monkeypatch, name, package, line
):
    path = written(frame, tmp_path / name)
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert line in str(caught.value)


def test_of_several_sheets_the_first_is_read_and_said(frame, tmp_path):
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        frame.to_excel(book, sheet_name="houses", index=False)
        frame.to_excel(book, sheet_name="other", index=False)
    table = read_table(tmp_path / "book.xlsx")
    assert table.notes == ("only the first of 2 sheets ('houses') was read",)


def test_a_sheet_as_people_keep_it(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    for line in [
        (None, None, None),
        ("when", " pay ", "paid"),
        (datetime.time(14, 30), "1,200", True),
        (None, None, None),
        (datetime.time(6, 0), "800", False),
        (None, "#N/A", None),
    ]:
        book.active.append(line)
    book.save(tmp_path / "t.xlsx")
    frame = read_table(tmp_path / "t.xlsx").frame
    assert list(frame.columns) == ["when", "pay", "paid"]
    encoder = TableEncoder().fit(frame)
    assert encoder.transform(frame).tolist() == [
        [14.5, 1200.0, 1.0],
        [6.0, 800.0, 0.0],
        [10.25, 1000.0, 1.0],
    ]


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/"), data)


def test_archives_that_are_no_workbooks(tmp_path, monkeypatch):
    archive(tmp_path / "t.zip", **{"t.csv": "a,b\n1,2\n"})
    with pytest.raises(TableError, match=r"'t.zip' is a zip archive; unpack it"):
        read_table(tmp_path / "t.zip")
    archive(tmp_path / "t.xlsx", **{"xl__workbook.xml": "<nonsense"})
    with pytest.raises(TableError, match=r"'t.xlsx' is not a readable Excel workbook"):
        read_table(tmp_path / "t.xlsx")
    archive(tmp_path / "bomb.xlsx", **{"xl__workbook.xml": " " * 5000})
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    with pytest.raises(TableError, match="does not fit in memory once it is unpacked"):
        read_table(tmp_path / "bomb.xlsx")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b'{"a": 1}\n{"a": 2\n', "line 2: not JSON"),
        (b'{"a": 1}\n[2]\n', "line 2: not a JSON object"),
        (b'[{"a": 1}, 2]', "item 2 is not a JSON object"),
        (b'[{"a": 1},\n {"b": }]', "line 2: not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"\n1}", "only one column|not JSON"),
        (b"<stata_dta>rest", "not a readable Stata file"),
        (b"s\x02\x01\x00rest", "not a readable Stata file"),
        (b"ARROW1\x00\x00rest", "not a readable Feather file"),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(tmp_path, data, match):
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(TableError, match=match):
        read_table(tmp_path / "t")


def test_records_may_lack_keys_and_hold_lists(tmp_path):
    lines = [{"a": 1, "tags": ["x"]}, {"a": 2.5, "b": "yes"}, {"b": "no", "a": None}] * 8
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    encoder = TableEncoder().fit(read_table(path).frame)
    assert [column.name for column in encoder.columns_] == ["a", "b"]
    assert "lists" in encoder.left_out_[0].reason


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["5.1", "3.5", "1.4", "Iris-setosa"], True),
        (["17", "25000"], True),
        (["country", "2010", "2011", "2012"], False),
        (["0", "1", "2", "3"], False),
        (["1", "2", "3", "y"], False),
        (["a", "b"], False),
        ([""], False),
    ],
)
def test_names_that_look_like_data(names, expected):
    assert looks_headerless(names) == expected


def test_a_file_without_a_header_gets_a_hint(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n4.7,3.2,virginica\n")
    table = read_table(path)
    assert "looks like data" in table.notes[0]
    with pytest.raises(TableError, match="if the file has no line of names, add one"):
        read_target(table.frame, "species")
    path.write_text("5.1,5.1,setosa\n4.9,3.0,setosa\n")
    with pytest.raises(TableError, match=r"named '5.1'; the first line looks like data"):
        read_table(path)


def test_large_is_decided_by_what_is_decoded(tmp_path, monkeypatch):
    """A few distinct values take next to nothing in the file, and 8 bytes a row in memory."""
    n = 20_000
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(n) % 3, "b": "north"}).to_parquet(path, index=False)
    decoded = decoded_bytes(parquet_parts(path))
    assert path.stat().st_size < 10_000
    assert decoded >= 16 * n
    monkeypatch.setattr(inputs, "memory_limit", lambda: 10_000)
    assert is_large(path)
    monkeypatch.setattr(inputs, "memory_limit", lambda: 10 * decoded)
    assert not is_large(path)


def test_the_limit_of_a_container_is_its_memory(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(inputs, "_CGROUP_LIMIT", limit)
    whole = inputs.memory_limit()
    limit.write_text("80000\n")
    assert inputs.memory_limit() == 10_000
    limit.write_text("max\n")
    assert inputs.memory_limit() == whole


def test_reading_text_never_holds_it(tmp_path):
    """The table takes what its cells take; no copy of the text stands beside it."""
    import tracemalloc

    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + f"1,{'x' * 400}\n" * 20_000)
    tracemalloc.start()
    table = read_table(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table.frame) == 20_000
    assert peak < 0.5 * path.stat().st_size
