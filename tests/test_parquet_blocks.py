"""Parquet folders: what is read, what is refused and how it is named, what is written."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hetrisk.blocks import ArrayBlocks, ParquetBlocks
from hetrisk.columns import parquet as parquet_files
from hetrisk.core.numerics.moments import moments


def frame(n: int = 100, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return table.assign(y=table["a"] + rng.normal(size=n))


def total(source: ParquetBlocks) -> np.ndarray:
    return source.sum(lambda rows: np.append(rows.X.sum(axis=0), rows.y.sum()))


@pytest.fixture
def folder(tmp_path) -> Path:
    """Three files of 100 rows in row groups of 30."""
    for i in range(3):
        frame(seed=i).to_parquet(tmp_path / f"part-{i}.parquet", row_group_size=30)
    return tmp_path


def test_file_folder_and_glob(folder):
    nested = folder / "year=2020"
    nested.mkdir()
    frame(seed=9).to_parquet(nested / "part-9.pq")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").write_bytes(b"half written")
    (folder / "notes.txt").write_text("not data")
    assert ParquetBlocks(folder / "part-1.parquet", target="y").n_rows == 100
    assert ParquetBlocks(folder, target="y").n_rows == 400
    assert ParquetBlocks(str(folder / "part-[01].parquet"), target="y").n_rows == 200
    assert ParquetBlocks(str(folder / "**" / "*.pq"), target="y").n_rows == 100


def test_reads_every_row_in_the_order_of_the_files(folder):
    source = ParquetBlocks(folder, target="y", features=["b", "a"], block_rows=17)
    expected = pd.concat([frame(seed=i) for i in range(3)])
    np.testing.assert_array_equal(source.collect(lambda rows: rows.X), expected[["b", "a"]])
    assert source.feature_names == ("b", "a")
    assert np.isnan(source.without_target().sample(5, 0).y).all()
    assert not source.without_target().has_target


@pytest.mark.parametrize("kind", ["int8", "float32", "bool", "uint64", "Int64", "decimal"])
def test_any_number_becomes_float(tmp_path, kind):
    whole = np.array([1, 0, 1, 1])
    if kind == "decimal":
        column = pa.array(whole).cast(pa.decimal128(22, 2))
    else:
        column = pa.array(pd.Series(whole).astype(kind))
    pq.write_table(pa.table({"a": column, "y": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "t.parquet")
    np.testing.assert_array_equal(total(ParquetBlocks(tmp_path, target="y")), [3.0, 10.0])


def test_widths_may_differ_between_files(folder):
    frame(seed=7).astype({"a": "float32"}).to_parquet(folder / "part-7.parquet")
    assert np.isfinite(total(ParquetBlocks(folder, target="y"))).all()


def test_empty_row_groups_and_files_are_passed_over(tmp_path):
    table = pa.Table.from_pandas(frame(10))
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for piece in (table[:4], table[:0], table[4:]):
            writer.write_table(piece)
    pq.write_table(table[:0], tmp_path / "b.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 3
    source = ParquetBlocks(tmp_path, target="y")
    np.testing.assert_allclose(total(source), frame(10).sum())
    np.testing.assert_array_equal(source.sample(3, 1).X, ArrayBlocks(*xy(frame(10))).sample(3, 1).X)


def xy(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return table[["a", "b"]].to_numpy(), table["y"].to_numpy()


def test_labels_from_polars_pandas_and_categories(tmp_path):
    labels = ["no", "yes", "no", "maybe"]
    pl.DataFrame({"a": [1.0, 2, 3, 4], "y": labels}).write_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": [1.0, 2, 3, 4], "y": pd.Categorical(labels)}).to_parquet(
        tmp_path / "2.parquet"
    )
    source = ParquetBlocks(tmp_path, target="y")
    np.testing.assert_array_equal(source.labels(), ["maybe", "no", "yes"])
    codes = source.encoded(source.labels()).collect(lambda rows: rows.y)
    np.testing.assert_array_equal(codes, [1, 2, 1, 0] * 2)
    given = ParquetBlocks(tmp_path, target="y", classes=["yes", "no", "maybe"])
    np.testing.assert_array_equal(given.collect(lambda rows: rows.y), [1, 0, 1, 2] * 2)


def test_integer_and_float_labels_meet(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "y": [0, 2]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}).to_parquet(tmp_path / "2.parquet")
    source = ParquetBlocks(tmp_path, target="y")
    np.testing.assert_array_equal(source.labels(), [0, 1, 2])
    codes = source.encoded(source.labels()).collect(lambda rows: rows.y)
    np.testing.assert_array_equal(codes, [0, 2, 1, 2])


# What is wrong with the table itself


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is nothing at '.*absent.parquet'"):
        ParquetBlocks(tmp_path / "absent.parquet", target="y")
    with pytest.raises(FileNotFoundError, match=r"path must lead to Parquet files; .* holds none"):
        ParquetBlocks(tmp_path, target="y")
    with pytest.raises(FileNotFoundError, match=r"holds none"):
        ParquetBlocks(str(tmp_path / "*.parquet"), target="y")


def test_not_parquet(tmp_path):
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"file '.*t.parquet': not a readable Parquet file"):
        ParquetBlocks(tmp_path, target="y")


def test_no_rows(tmp_path):
    frame(0).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"holds no rows in 1 file\(s\)"):
        ParquetBlocks(tmp_path, target="y")


def test_missing_column_names_the_file(folder):
    frame().drop(columns="b").to_parquet(folder / "part-9.parquet")
    with pytest.raises(
        ValueError, match=r"'b' cannot be used: not in every file: '.*part-9.parquet'"
    ):
        ParquetBlocks(folder, target="y", features=["a", "b"])
    with pytest.raises(ValueError, match=r"column 'z' cannot be used: '.*' has only \['a'"):
        ParquetBlocks(folder, target="z", features=["a"])


@pytest.mark.parametrize(
    ("change", "features", "match"),
    [
        (lambda t: t.assign(extra=1.0), ("a", "b"), r"'extra' is not used: not in every file"),
        (lambda t: t.drop(columns="b"), ("a",), r"'b' is not used: .*part-9.parquet' has no such"),
        (lambda t: t.astype({"b": str}), ("a",), r"'b' is not used: its type changes .*part-9"),
    ],
)
def test_columns_that_files_disagree_about_are_left_outside(folder, change, features, match):
    change(frame()).to_parquet(folder / "part-9.parquet")
    with pytest.warns(UserWarning, match=match):
        source = ParquetBlocks(folder, target="y")
    assert source.feature_names == features
    assert len(source.outside) == 1
    assert source.sum(len) == 400
    # No warning where the columns are chosen.
    assert ParquetBlocks(folder, target="y", features=["a"]).n_rows == 400


def test_files_that_differ_in_order_and_widths_are_one_table(folder):
    other = frame(seed=9).assign(e=[1, 2] * 50, w=np.arange(100, dtype=np.int8))
    for i, e in enumerate([["1", "2"], ["2", "3"], ["10", "2"]]):
        kinds = {"a": np.float32, "w": ["int32", "float64", "uint8"][i]}
        part = frame(seed=i).assign(e=e * 50, w=np.arange(100)).astype(kinds)
        part.to_parquet(folder / f"part-{i}.parquet")
    other = other.astype({"e": str})[["w", "y", "b", "e", "a"]]
    other["e"] = other["e"].astype("category")
    other.to_parquet(folder / "part-9.parquet")
    source = ParquetBlocks(folder, target="y", environments="e", weight="w", aside=[])
    assert source.feature_names == ("a", "b")
    assert source.environment_labels.tolist() == ["1", "2", "3", "10"]
    counts = source.sum(lambda rows: rows.environments.sum(axis=0))
    assert counts.tolist() == [100.0, 200.0, 50.0, 50.0]
    assert source.sum(lambda rows: rows.weight.sum()) == 4 * 4950


def test_numbers_as_labels_of_environments_meet(folder):
    for i, kind in enumerate(["int32", "float64", "int8"]):
        values = np.tile([1.0, 2.5 if kind == "float64" else 2.0], 50).astype(kind)
        frame(seed=i).assign(e=values).to_parquet(folder / f"part-{i}.parquet")
    source = ParquetBlocks(folder, target="y", environments="e")
    assert source.environment_labels.tolist() == [1.0, 2.0, 2.5]
    assert source.sum(lambda rows: rows.environments.sum(axis=0)).tolist() == [150.0, 100.0, 50.0]


def test_days_are_dates_among_hints(folder):
    for i in range(3):
        days = pd.Series(pd.date_range("2020-01-01", periods=100)).dt.date
        frame(seed=i).assign(day=days).to_parquet(folder / f"part-{i}.parquet")
    (column,) = ParquetBlocks(folder, target="y", aside="day").side_columns
    assert column.kind == "date"


def test_labels_are_integers_of_any_size(folder):
    small, large = np.tile(np.array([0, 7], dtype=np.uint64), 50), np.uint64(2**63)
    for i in range(3):
        values = small + (large if i else np.uint64(0))
        frame(seed=i).assign(e=values).to_parquet(folder / f"part-{i}.parquet")
    source = ParquetBlocks(folder, target="y", environments="e")
    assert source.environment_labels.tolist() == [0, 7, 2**63, 2**63 + 7]
    assert source.sum(lambda r: r.environments.sum(axis=0)).tolist() == [50.0, 50.0, 100.0, 100.0]
    source = ParquetBlocks(folder, target="e", features=["a", "b"])
    assert source.encoded(source.labels()).sum(lambda r: r.y.sum()) == 100 * (2 + 3) + 50


DAYS = pd.Series(pd.date_range("2020-01-01", periods=50).repeat(2))
HELD = {
    "timestamp[us]": DAYS.dt.as_unit("us"),
    "timestamp[ns]": DAYS.dt.as_unit("ns"),
    "date32": DAYS.dt.date,
    "period": DAYS.dt.to_period("D"),
}


@pytest.mark.parametrize("other", HELD)
@pytest.mark.parametrize("first", HELD)
def test_dates_of_every_type_meet_as_labels_and_as_hints(folder, first, other):
    (folder / "part-2.parquet").unlink()
    for i, kind in enumerate((first, other)):
        frame(seed=i).assign(day=HELD[kind]).to_parquet(folder / f"part-{i}.parquet")
    source = ParquetBlocks(folder, target="y", environments="day")
    labels = source.environment_labels.astype("datetime64[D]")
    assert labels.tolist() == DAYS.dt.date.unique().tolist()
    assert source.sum(lambda rows: rows.environments.sum(axis=0)).tolist() == [4.0] * 50
    (column,) = ParquetBlocks(folder, target="y", aside="day").side_columns
    assert column.kind == "date"


def test_labels_in_a_zone_are_moments(folder):
    for i in range(3):
        zoned = DAYS.dt.tz_localize("Europe/Berlin")
        frame(seed=i).assign(day=zoned).to_parquet(folder / f"part-{i}.parquet")
    source = ParquetBlocks(folder, target="y", environments="day")
    assert source.environment_labels[0] == np.datetime64("2019-12-31T23:00")
    assert source.sum(lambda rows: rows.environments.sum(axis=0)).tolist() == [6.0] * 50


def test_what_cannot_be_told_apart_is_no_label(folder):
    for i in range(3):
        frame(seed=i).assign(e=[[1, 2]] * 100).to_parquet(folder / f"part-{i}.parquet")
    with pytest.raises(ValueError, match=r"'e' must hold labels; it holds list<.*> in '"):
        ParquetBlocks(folder, target="y", environments="e")


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"aside": ["y"]}, "column 'y' cannot be both target and aside"),
        ({"aside": "e", "environments": "e"}, "column 'e' cannot be both environments and aside"),
        ({"environments": "y"}, "column 'y' cannot be both target and environments"),
        ({"weight": "w", "aside": ["w"]}, "column 'w' cannot be both aside and weight"),
    ],
)
def test_a_column_has_one_role(folder, roles, message):
    table = pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0], "e": ["p", "q"], "w": [1.0, 2.0]})
    table.to_parquet(folder / "roles.parquet")
    with pytest.raises(ValueError, match=message):
        ParquetBlocks(folder / "roles.parquet", target="y", **roles)


def test_a_hint_that_files_disagree_about_is_an_error(folder):
    for i in range(3):
        frame(seed=i).assign(h="x" if i else 1).to_parquet(folder / f"part-{i}.parquet")
    with pytest.raises(ValueError, match=r"'h' cannot be used: its type changes between files"):
        ParquetBlocks(folder, target="y", aside="h")


def test_target_that_changes_type_names_both_files(folder):
    frame().astype({"y": str}).to_parquet(folder / "part-9.parquet")
    with pytest.raises(
        ValueError, match=r"'y' cannot be used: its type changes between files: .*part-0.*part-9"
    ):
        ParquetBlocks(folder, target="y")


def test_repeated_column(tmp_path):
    table = pa.table([[1.0], [2.0]], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"has more than one column named 'a'"):
        ParquetBlocks(tmp_path, target="y")


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"features": ["a", "y"]}, "column 'y' cannot be both features and target"),
        ({"features": ["a", "a"]}, "features must be distinct"),
        ({"features": []}, "features must name at least one column"),
        ({"features": "a"}, "features must be a list of column names; got 'a'"),
        ({"weight": "a", "features": ["a"]}, "column 'a' cannot be both features and weight"),
        ({"classes": []}, "classes must be distinct labels, at least one"),
    ],
)
def test_roles_that_clash(folder, roles, message):
    with pytest.raises(ValueError, match=message):
        ParquetBlocks(folder, "y", **roles)


# What is wrong with some row of it


@pytest.mark.parametrize(
    ("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")]
)
@pytest.mark.parametrize("column", ["b", "y"])
def test_bad_value_names_file_row_group_column_and_row(folder, value, kind, column):
    table = frame()
    table.loc[61, column] = value
    pq.write_table(_table(table), folder / "part-1.parquet", row_group_size=30)
    source = ParquetBlocks(folder, target="y", block_rows=8)
    message = rf"file '.*part-1.parquet', row group 2: column '{column}' is {kind} in row 61"
    with pytest.raises(ValueError, match=message):
        source.sum(moments)
    with pytest.raises(ValueError, match=message):
        source.sample(250, 0)


def _table(table: pd.DataFrame) -> pa.Table:
    """An Arrow table that keeps NaN apart from missing."""
    return pa.table({name: table[name].to_numpy() for name in table})


def test_nan_in_block_700(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=8000)
    X[7005] = np.nan
    pq.write_table(pa.table({"a": X, "y": X * 0}), tmp_path / "t.parquet", row_group_size=10)
    with pytest.raises(ValueError, match=r"row group 700: column 'a' is NaN in row 7005"):
        ParquetBlocks(tmp_path, target="y", block_rows=10).sum(moments)


def test_missing_value_is_named(folder):
    table = pa.table({"a": [1.0, None], "b": [1.0, 2.0], "y": [1.0, 2.0]})
    pq.write_table(table, folder / "part-3.parquet")
    with pytest.raises(ValueError, match=r"part-3.parquet', row group 0: column 'a' is missing in"):
        total(ParquetBlocks(folder, target="y"))


def test_values_that_overflow_a_sum_are_not_taken_for_infinite(tmp_path):
    pq.write_table(pa.table({"a": [1e308] * 4, "y": [0.0] * 4}), tmp_path / "t.parquet")
    assert len(ParquetBlocks(tmp_path, target="y").sample(4, 0)) == 4


def test_negative_weight_is_named(folder):
    with pytest.raises(ValueError, match=r"row group \d: weight column 'b' is negative in row \d+"):
        ParquetBlocks(folder, target="y", weight="b").sum(moments)


def test_text_target_needs_classes(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "y": ["u", "v"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"target column 'y' must hold numbers \(or pass classes="):
        ParquetBlocks(tmp_path, target="y").sum(moments)
    with pytest.raises(ValueError, match=r"'y' is 'v', which is not among the 1 known classes"):
        ParquetBlocks(tmp_path, target="y", classes=["u"]).sum(moments)


def test_classes_of_another_type_are_refused(folder):
    with pytest.raises(ValueError, match=r"classes must be values of column 'y', which holds"):
        ParquetBlocks(folder, target="y", classes=["u", "v"]).sum(moments)


def test_too_many_labels(folder, monkeypatch):
    monkeypatch.setattr("hetrisk.blocks.parquet.MAX_LABELS", 250)
    with pytest.raises(ValueError, match=r"column 'y' must hold labels; it has more than 250"):
        ParquetBlocks(folder, target="y").labels()


def test_labels_need_a_target(folder):
    with pytest.raises(ValueError, match=r"target must name a column to find its labels"):
        ParquetBlocks(folder, target=None).labels()


# What happens to the files in the meantime


def test_file_that_vanishes_is_named(folder):
    source = ParquetBlocks(folder, target="y")
    (folder / "part-2.parquet").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"file '.*part-2.parquet', row group 0: the file has vanished"
    ):
        source.sum(moments)


def test_file_that_changes_is_named(folder):
    source = ParquetBlocks(folder, target="y")
    frame(50).to_parquet(folder / "part-2.parquet")
    with pytest.raises(
        ValueError, match=r"part-2.parquet' has changed since it was opened: it had 100"
    ):
        source.sum(moments)


def test_damaged_page_is_named(folder):
    path = folder / "part-1.parquet"
    start = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start : start + 40] = b"\xff" * 40
    path.write_bytes(damaged)
    source = ParquetBlocks(folder, target="y")
    with pytest.raises(ValueError, match=r"part-1.parquet', row group \d: cannot be read"):
        source.sum(moments)


def test_only_row_groups_with_chosen_rows_are_read(folder, monkeypatch):
    read = []
    real = parquet_files.batches

    def spy(part, columns, batch_rows, groups=None, *rest):
        read.append((part.path.name, groups))
        return real(part, columns, batch_rows, groups, *rest)

    monkeypatch.setattr(parquet_files, "batches", spy)
    source = ParquetBlocks(folder, target="y")
    source.sample(1, seed=0)
    read.clear()  # what the rows hold was found in one pass, and is known from then on
    source.sample(1, seed=1)
    assert sum(len(groups) for _, groups in read) == 1


def test_a_large_row_group_is_not_held_whole(tmp_path):
    """Reading a row group of 80 MB in small blocks takes less than holding it would."""
    X = np.random.default_rng(0).normal(size=1_000_000)
    table = pa.table({f"x{j}": X for j in range(10)} | {"y": X})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=len(X), use_dictionary=False)
    code = (
        "import sys, re, pathlib\n"
        "from hetrisk.blocks import ParquetBlocks\n"
        "status = pathlib.Path('/proc/self/status')\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text()).group(1))\n"
        "source = ParquetBlocks(sys.argv[1], target='y', block_rows=5000)\n"
        "before = peak()\n"
        "source.sum(lambda rows: rows.y.sum())\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    held = int(done.stdout)  # kilobytes
    assert held < 90_000


@pytest.mark.parametrize("how", ["replaced", "written to", "written to, its time put back"])
def test_a_file_replaced_by_one_of_the_same_shape_is_noticed(how, tmp_path):
    path = tmp_path / "part.parquet"
    frame = pd.DataFrame({"x": np.arange(50.0), "y": np.arange(50.0)})
    frame.to_parquet(path)
    blocks = ParquetBlocks(path, "y")
    blocks.sum(lambda rows: rows.y.sum())
    other = tmp_path / "other"
    (2 * frame).to_parquet(other)
    if how == "replaced":
        other.replace(path)
    else:
        before = path.stat()
        # The clock of a file system ticks every few milliseconds.
        while path.stat().st_ctime_ns == before.st_ctime_ns:
            path.write_bytes(other.read_bytes())
            if how != "written to":
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ValueError, match=r"part.parquet' was replaced or written to since"):
        blocks.sum(lambda rows: rows.y.sum())
