"""Files to tables: what is read, and what is refused with which sentence."""

import gzip

import numpy as np
import pandas as pd
import pytest

from hetrisk.tables import TableError, inputs, read_table
from hetrisk.tables.errors import counted, listed, quoted, shown

ROWS = "a,b\n1,x\n2,y\n"


def written(tmp_path, data, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_text_stays_text(tmp_path):
    table = read_table(written(tmp_path, 'a,b\n007,"x, y"\n 2 ,\n'))
    assert table.frame.to_dict("list") == {"a": ["007", " 2 "], "b": ["x, y", ""]}
    assert table.source == "t.csv"
    assert table.notes == ()


@pytest.mark.parametrize(
    ("delimiter", "note"), [("\t", "tabs"), (";", "semicolons"), ("|", "bars")]
)
def test_delimiters_are_found_by_themselves(tmp_path, delimiter, note):
    table = read_table(written(tmp_path, ROWS.replace(",", delimiter)))
    assert list(table.frame.columns) == ["a", "b"]
    assert note in table.notes[0]


def test_a_delimiter_inside_quotes_does_not_count(tmp_path):
    table = read_table(written(tmp_path, '"a;b;c","d"\n"1;2;3","4"\n'))
    assert list(table.frame.columns) == ["a;b;c", "d"]


def test_a_given_delimiter_wins(tmp_path):
    table = read_table(written(tmp_path, "a^b,c\n1^2\n"), delimiter="^")
    assert list(table.frame.columns) == ["a", "b,c"]


@pytest.mark.parametrize(
    "data",
    [
        ROWS.encode(),
        gzip.compress(ROWS.encode(), mtime=0),
        b"\xef\xbb\xbf" + ROWS.encode(),
        ROWS.encode("utf-16"),
        ROWS.replace("\n", "\r\n").encode(),
        ROWS.replace("\n", "\r").encode(),
        ROWS.replace("\n", "\n\n").encode(),
        ROWS.rstrip().encode(),
    ],
    ids=["plain", "gzip", "bom", "utf-16", "crlf", "cr", "blank lines", "no last newline"],
)
def test_the_same_table_in_many_dresses(tmp_path, data):
    frame = read_table(written(tmp_path, data)).frame
    assert frame.to_dict("list") == {"a": ["1", "2"], "b": ["x", "y"]}


def test_quoted_cells_keep_their_newlines(tmp_path):
    frame = read_table(written(tmp_path, 'a,b\n"one\ntwo",2\n')).frame
    assert frame["a"].tolist() == ["one\ntwo"]


def test_parquet_is_known_by_its_content(tmp_path):
    path = tmp_path / "odd.name"
    pd.DataFrame({"a": [1, 2], "when": pd.to_datetime(["2020-01-01", None])}).to_parquet(path)
    frame = read_table(path).frame
    assert frame["a"].tolist() == [1, 2]
    assert frame["when"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "is empty"),
        (b"\n\n", "only one column"),
        (b"a,b\n", "column names but no rows"),
        (b"a\n1\n2\n", "only one column"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b"a,,\n1,2,3\n", "more than one column named ''"),
        (b"a,b\n1,2\n3\n", "line 3: 1 field where the header has 2"),
        (b"a,b\n1,2,3\n", "line 2: 3 fields where the header has 2"),
        (b'a,b\n1,"2\n3,4\n', "quotation mark is opened and never closed"),
        (b'a,b\n1,"2"x\n', "text follows a closing quotation mark"),
        (b'a,b\n1,"' + b"x" * 200_000 + b"\n", "quotation mark is opened and never closed"),
        (b"a,b\n1,\x00\n", "line 2 holds a NUL byte"),
        (b"a,b\n1,caf\xe9\n", "line 2: the byte 0xe9 is not utf-8; if the file comes from an old"),
        (b"PK\x03\x04rest", "not a readable zip archive"),
        (b"BZh91AY&SY", "bzip2"),
        (b"\xfd7zXZ\x00", "compressed with xz"),
        (b"\x28\xb5\x2f\xfdxx", "zstd"),
        (b"%PDF-1.7", "a PDF"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"\x80\x04\x95rest", "a pickle"),
        (b"PAR1 but not really PAR1", "not a readable Parquet file"),
        (gzip.compress(b"a,b\n" * 1000, mtime=0)[:-9], "damaged or truncated gzip"),
        (b"\x1f\x8b\x08\x00garbage that is not deflate", "damaged or truncated gzip"),
    ],
)
def test_what_is_not_a_table_is_refused_with_a_reason(tmp_path, data, match):
    with pytest.raises(TableError, match=match):
        read_table(written(tmp_path, data))


def test_latin_1_is_read_when_said(tmp_path):
    path = written(tmp_path, b"a,b\n1,caf\xe9\n")
    assert read_table(path, encoding="latin-1").frame["b"].tolist() == ["café"]


def test_an_unknown_encoding_is_named(tmp_path):
    with pytest.raises(TableError, match="'klingon' is not an encoding"):
        read_table(written(tmp_path, ROWS), encoding="klingon")


def test_an_empty_folder_and_a_device_are_not_tables(tmp_path):
    with pytest.raises(TableError, match="is a folder without Parquet files"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="not a regular file"):
        read_table("/dev/zero")


def test_more_text_than_memory_is_refused_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    bomb = written(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
    with pytest.raises(TableError, match="too much for this machine's memory"):
        read_table(bomb)


def test_parquet_with_two_columns_of_one_name(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="more than one column named 'a'"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 漢 🙂", "plain é 漢 🙂"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("two\nlines", "two\\nlines"),
        ("evil\u202eltr", "evil\\u202eltr"),
        ("lone \udcff", "lone \\udcff"),
        ("x" * 100, "x" * 59 + "…"),
        (3.5, "3.5"),
    ],
)
def test_text_from_files_is_shown_not_obeyed(text, expected):
    assert shown(text) == expected


def test_lists_of_names():
    assert quoted("a'b") == "'a'b'"
    assert listed("abc") == "'a', 'b', 'c'"
    assert listed("abcdef", most=2) == "'a', 'b' and 4 more"
    assert counted(1, "row") == "1 row"
    assert counted(12345, "row") == "12,345 rows"
    assert counted(2, "category", "categories") == "2 categories"


def test_reading_does_not_depend_on_row_count_being_small(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(5000, 3)), columns=list("abc"))
    path = tmp_path / "big.csv.gz"
    frame.to_csv(path, index=False)
    back = read_table(path).frame.astype(float)
    pd.testing.assert_frame_equal(back, frame)


def test_very_many_columns_are_read_as_few_are(tmp_path):
    names = [f"c{j}" for j in range(2_100)]
    lines = [
        ",".join(names),
        ",".join(['"a,b"', " x ", "", *"1" * 2_097]),
        "",
        ",".join("2" * 2_100),
    ]
    wide = tmp_path / "wide.csv"
    wide.write_text("\n".join(lines) + "\n")
    frame = read_table(wide).frame
    assert frame.shape == (2, 2_100)
    assert frame.iloc[0, :4].tolist() == ["a,b", " x ", "", "1"]
    wide.write_text(",".join(names) + "\n")
    with pytest.raises(TableError, match="has column names but no rows"):
        read_table(wide)
