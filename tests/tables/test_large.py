"""Parquet that does not fit in memory: which rows decide, and one rule for schemas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.columns.parquet import open_parts
from hetrisk.columns.schema import common_schema
from hetrisk.estimators.large import table_blocks
from hetrisk.tables import TableEncoder, inputs, parquet, read_table, read_target
from hetrisk.tables.large import drawn, pieces
from hetrisk.tables.spooled import LargeTable

N = 900
THIRD = N // 3


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] + 0.3 * rng.normal(size=N)
    return frame


@pytest.fixture(autouse=True)
def few_rows_are_looked_at(monkeypatch):
    monkeypatch.setattr(parquet, "PIECE_ROWS", 130)


def written(frame, folder, files=3):
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), files)):
        frame.iloc[rows].to_parquet(folder / f"part-{i}.parquet", index=False)
    return folder


def at(path):
    return LargeTable(path, path.name)


def test_a_sample_is_the_same_rows_in_whatever_order_they_lie(table, tmp_path):
    table["town"] = np.where(np.arange(N) % 3, "ulm", None)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = drawn(at(written(table, tmp_path / "a")), 200)
    names = table.columns[::-1]
    shuffled = table.sample(frac=1, random_state=0)[names]
    other = drawn(at(written(shuffled, tmp_path / "b", 2)), 200)
    assert one.notes[0] == "too large for memory: a sample of 200 of 900 rows"
    assert set(one.frame["a"]) == set(other.frame["a"])
    assert len(one.frame) == 200


def variety(table, folder):
    """Files that differ in widths, encodings, order and columns, as years of exports do."""
    first = table.iloc[:THIRD].assign(count=np.arange(THIRD, dtype=np.int32) % 7, town="ulm")
    first.to_parquet(folder / "2019.parquet", index=False)
    second = table.iloc[THIRD : 2 * THIRD].assign(
        count=np.arange(THIRD) % 7 + 0.5, town="bonn", extra=1.0
    )
    second["town"] = second["town"].astype("category")
    second[["town", "extra", "count", "y", "b", "a"]].to_parquet(folder / "2020.parquet")
    third = table.iloc[2 * THIRD :].assign(count=np.arange(THIRD) % 2 == 0, town="kiel", mixed="x")
    third.to_parquet(folder / "2021.parquet", index=False)
    return folder


@pytest.mark.parametrize("large_table", [False, True])
def test_files_that_differ_are_one_table_on_every_path(table, tmp_path, monkeypatch, large_table):
    place = variety(table, tmp_path)
    if large_table:
        monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
        found = drawn(at(place), 500)
    else:
        found = read_table(place)
    assert set(found.frame.columns) == {"a", "b", "count", "town", "y"}
    reasons = {out.name: out.reason for out in found.left_out}
    assert set(reasons) == {"extra", "mixed"}
    assert "not in every file" in reasons["extra"]
    assert "2019.parquet' has no such column" in reasons["extra"]
    encoder = TableEncoder().fit(found.frame.drop(columns="y"))
    assert sum(len(encoder.transform(piece)) for piece in pieces(place)) == N


def test_types_that_do_not_meet_name_both_files(table, tmp_path):
    table.iloc[:10].assign(c=1).to_parquet(tmp_path / "one.parquet")
    table.iloc[10:40].assign(c="x").to_parquet(tmp_path / "two.parquet")
    (out,) = read_table(tmp_path).left_out
    assert "its type changes between files: int64 in '" in out.reason
    assert "one.parquet', " in out.reason
    assert "two.parquet'" in out.reason


def test_numbers_written_by_people_are_read_alike_in_every_block(table, tmp_path):
    """The notation is that of the sample, not of each block: 1,500 alone could be either."""
    table["y"] = [f"{value:,.0f}" for value in 5000 + 900 * table["y"]]
    table["a"] = [f"{value:,.2f}" for value in 2000 + 500 * table["a"]]
    table["site"] = np.arange(N) % 3
    written(table, tmp_path, 1)
    frame = drawn(at(tmp_path), 200).frame
    target = read_target(frame, "y")
    encoding = TableEncoder(number=["a"]).fit(frame[["a", "b"]]).encoding_
    sides = {"site": lambda column: column.to_numpy(float)}
    (rows,) = table_blocks(tmp_path, encoding, target, aside=sides).map(lambda block: block)
    np.testing.assert_array_equal(rows.y, read_target(table, "y").values)
    np.testing.assert_array_equal(rows.X, encoding.encode(table)[0])
    np.testing.assert_array_equal(rows.aside[:, 0], table["site"])
    assert rows.y.min() > 1000


kinds = st.sampled_from(
    [
        pa.int8(),
        pa.int64(),
        pa.uint64(),
        pa.float32(),
        pa.bool_(),
        pa.string(),
        pa.large_string(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.timestamp("ns"),
        pa.date32(),
        pa.null(),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(kinds, min_size=1, max_size=3))
def test_what_meets_keeps_its_values(types):
    """Law: files of types that meet are one table with the same values, in any order of files."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        tables = [pa.table({"c": pa.array([None, _one(kind)], kind)}) for kind in types]
        paths = [Path(folder) / f"{i}.parquet" for i in range(len(types))]
        for path, part in zip(paths, tables, strict=True):
            pq.write_table(part, path)
        common = common_schema(open_parts(paths))
        backwards = common_schema(open_parts(paths[::-1]))
    assert set(common.outside) == set(backwards.outside)
    if common.outside:
        assert "its type changes between files" in common.outside["c"]
        return
    assert common.schema.field("c").type == backwards.schema.field("c").type
    for part in tables:
        cast = common.conform(part.to_batches()[0]).column("c").to_pylist()
        expected = part.column("c").to_pylist()
        assert str(cast[1])[:10] == str(expected[1])[:10] or float(cast[1]) == float(expected[1])


def _one(kind):
    if pa.types.is_null(kind):
        return None
    if pa.types.is_temporal(kind):
        return pd.Timestamp("2020-03-01").date() if pa.types.is_date(kind) else pd.Timestamp("2020")
    if pa.types.is_boolean(kind):
        return True
    text = pa.types.is_dictionary(kind) or "string" in str(kind)
    return "x" if text else 1
