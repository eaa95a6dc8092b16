"""Input that is unusual, broken or made to break: a sentence, in bounded memory."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from hetrisk.tables import TableEncoder, TableError, formats, inputs, read_table
from hetrisk.tables.parquet import decoded_bytes, parquet_parts
from hetrisk.tables.spooled import is_large_text

ROWS = range(60)
SHEET = (
    '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/'
    'main"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>{}</sheetData>'
    "</worksheet>"
)


def sheet(path, rows):
    """A workbook whose first sheet holds these rows of XML."""
    openpyxl.Workbook().save(path.with_suffix(".tmp"))
    with (
        zipfile.ZipFile(path.with_suffix(".tmp")) as whole,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out,
    ):
        for entry in whole.infolist():
            first = entry.filename == "xl/worksheets/sheet1.xml"
            out.writestr(entry.filename, SHEET.format(rows) if first else whole.read(entry))
    return path


def peak_of(path, limit=None):
    """Megabytes that reading a file takes, and what came of it, in a process of its own."""
    code = (
        "import sys\n"
        "from hetrisk.tables import TableEncoder, inputs, read_table\n"
        "import openpyxl, pyarrow.parquet, pandas\n"
        f"limit = {limit}\n"
        "if limit: inputs.memory_limit = lambda: limit\n"
        "place = '/proc/self/status'\n"
        "def held(key):\n"
        "    return int(next(x for x in open(place) if x.startswith(key)).split()[1]) // 1024\n"
        "before = held('VmRSS')\n"
        "try: print(read_table(sys.argv[1]).frame.shape)\n"
        "except ValueError as error: print(error)\n"
        "print(held('VmHWM') - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    *said, peak = run.stdout.splitlines()
    return int(peak), "\n".join(said)


def test_a_sheet_with_a_row_far_down_is_refused_in_bounded_memory(tmp_path):
    path = sheet(tmp_path / "t.xlsx", '<row r="200000000"><c r="A200000000"><v>1</v></c></row>')
    peak, said = peak_of(path)
    assert said == "'t.xlsx' has rows beyond the last of Excel"
    assert peak < 100


def test_a_sheet_with_a_cell_far_right_takes_what_it_holds(tmp_path):
    rows = "".join(
        f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="XFD{i}"><v>1</v></c></row>'
        for i in range(2, 302)
    )
    peak, said = peak_of(sheet(tmp_path / "t.xlsx", rows))
    assert said == "(300, 2)"
    assert peak < 60


def test_a_sheet_of_more_cells_than_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    pd.DataFrame(np.ones((40, 40))).to_excel(path)
    for limit, said in ((150_000, "does not fit in memory$"), (10_000, "memory once it is")):
        monkeypatch.setattr(inputs, "memory_limit", lambda limit=limit: limit)
        with pytest.raises(TableError, match=said):
            read_table(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "{}," * 2_000_000 + "{}]",
        '{"a":1}\n{"a":[' + "[]," * 2_000_000 + "1]}\n",
        '{"a":1}\n' * 2_000_000,
        "".join(f'{{"k{i}":1}}\n' for i in range(6_000)),
    ],
    ids=["empty objects", "empty lists", "lines", "a name a row"],
)
def test_json_that_unfolds_is_refused_before(tmp_path, text):
    peak, said = peak_of(written(tmp_path / "t.json", text), limit=40 << 20)
    assert said == "'t.json' does not fit in memory"
    assert peak < 130


@pytest.mark.parametrize("compression", ["zstd", "lz4", "uncompressed"])
def test_what_feather_unpacks_to_is_known_before(tmp_path, compression):
    words = pa.array(["u", "v"] * 500_000).dictionary_encode()
    table = pa.table({"a": np.zeros(1_000_000), "t": ["x" * 99] * 1_000_000, "w": words})
    feather.write_feather(table, tmp_path / "t.feather", compression=compression, chunksize=10**6)
    peak, said = peak_of(tmp_path / "t.feather", limit=100 << 20)
    assert said == "'t.feather' does not fit in memory"
    assert peak < 20 + (tmp_path / "t.feather").stat().st_size / 2**20
    with (tmp_path / "t.feather").open("rb") as file:
        assert table.nbytes == pytest.approx(formats._unpacked(file), rel=0.01)


def test_a_name_that_stands_twice_is_found_at_once(tmp_path):
    names = "".join(f'"k{i}":1,' for i in range(200_000))
    with pytest.raises(TableError, match="'z' stands twice"):
        read_table(written(tmp_path / "t.json", f'[{{{names}"z":1,"z":2}}]'))


def test_texts_that_fill_memory_once_they_are_decoded_are_refused_before(tmp_path):
    words = pa.array(["a" * 2_000_000, "b" * 2_000_000])
    text = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 200, pa.int8()), words)
    table = pa.table({"t": text, "b": list(range(400))})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="zstd", store_schema=False)
    peak, said = peak_of(path, limit=100 << 20)
    assert "column 't' holds more than 100 MB of text" in said or "does not fit in memory" in said
    assert peak < 60


def test_what_fits_in_memory_is_measured_on_rows_of_the_file(tmp_path, monkeypatch):
    short, path = tmp_path / "short.csv", tmp_path / "t.parquet"
    short.write_text("a,b\n" + "1,2\n" * 50_000)
    size = short.stat().st_size
    monkeypatch.setattr(inputs, "memory_limit", lambda: 3 * size)
    assert is_large_text(short)  # a digit of two bytes is a cell of ten
    monkeypatch.setattr(inputs, "memory_limit", lambda: 100 * size)
    assert not is_large_text(short)
    pd.DataFrame({"t": ["x" * 500 + str(i % 7) for i in range(5_000)]}).to_parquet(path)
    assert 2_500_000 < decoded_bytes(parquet_parts(path)) < 4_000_000


def written(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content)
    return path


BIG = "".join(json.dumps({"a": 10 ** (400 * (i == 3)), "b": i % 7}) + "\n" for i in ROWS)
LINES = "".join(f"{i % 7},{i % 5}\n" for i in ROWS)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("utf32.csv", ("a,b\n" + LINES).encode("utf-32"), ["a", "b"]),
        ("bz.csv", "BZhead,b\n" + LINES, ["BZhead", "b"]),
        ("par.csv", "PAR1,b\n" + LINES, ["PAR1", "b"]),
        ("arrow.csv", "ARROW1,b\n" + LINES, ["ARROW1", "b"]),
        (
            "big.jsonl",
            "".join(json.dumps({"a": 10 ** (400 * (i == 3)), "b": i % 7}) + "\n" for i in ROWS),
            ["a", "b"],
        ),
    ],
)
def test_what_only_looks_like_something_else_is_read(tmp_path, name, content, columns):
    frame = read_table(written(tmp_path / name, content)).frame
    assert list(frame.columns) == columns
    assert len(frame) == len(ROWS)
    assert len(TableEncoder().fit(frame).columns_) >= 1


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("half.jsonl", '{"a": "x\\ud800"}\n' * 60, {}, "holds half a character"),
        ("twice.jsonl", '{"a": 1, "a": 2}\n' * 60, {}, "line 1: .*'a' stands twice in one object"),
        (
            "cell.csv",
            "a,b\n" + LINES + "x" * 1_000_000 + ",3\n",
            {},
            "a field of more than 131,072",
        ),
        ("t.csv", "aéb\n" + LINES, {"delimiter": "é"}, "separated by one ASCII character; got 'é'"),
        ("t.csv", "a,b\n" + LINES, {"delimiter": ""}, "separated by one ASCII character"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, name, content, options, said):
    with pytest.raises(TableError, match=said) as caught:
        read_table(written(tmp_path / name, content), **options)
    assert len(str(caught.value)) < 400


def test_files_that_are_none_are_said(tmp_path):
    with pytest.raises(TableError, match="the name of the file is empty"):
        read_table("")
    with pytest.raises(TableError, match="is a folder without Parquet files"):
        read_table(".")
    with pytest.raises(TableError, match="'zero' is not a regular file"):
        read_table("/dev/zero")


def test_dates_that_no_calendar_has_are_missing_or_said(tmp_path):
    far = pa.array([2**31 - 1, 0] * 30, pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"d": far}), tmp_path / "d.parquet")
    with pytest.raises(TableError, match="column 'd' holds values out of range"):
        read_table(tmp_path / "d.parquet")
    later = pa.array([2**55, 0] * 30, pa.int64()).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"d": later}), tmp_path / "t.parquet")
    frame = read_table(tmp_path / "t.parquet").frame
    assert TableEncoder().fit(frame).columns_[0].kind == "date"


def test_a_category_whose_levels_repeat_is_the_levels(tmp_path):
    held = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 20, pa.int8()), ["x", "x", "y"])
    feather.write_feather(pa.table({"c": held}), tmp_path / "t.feather")
    frame = read_table(tmp_path / "t.feather").frame
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == ["c=y"]


def test_whole_pages_of_text_are_no_category():
    frame = pd.DataFrame({"t": ["a" * 5000, "b" * 5000] * 30, "x": [1.0, 2.0, 3.0] * 20})
    (out,) = TableEncoder().fit(frame).left_out_
    assert str(out) == "text of up to 5,000 characters: free text"
