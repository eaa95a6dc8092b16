"""What a hint is taken for, and whether environments have an order: the same wherever rows live."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk import HRMRegressor
from hetrisk.blocks import ArrayBlocks, aside
from hetrisk.blocks.aside import described, side_numbers
from hetrisk.columns.names import are_codes, names_things
from hetrisk.estimators.side_information import read_side, side_of
from hetrisk.tables.roles import read_roles

N = 600
SITES = np.repeat(np.arange(40), 15)
THINGS = ["site", "shop 2", "region_code", "Batch", "subject", "pid", "zip"]
MEASURES = ["year", "age", "hint", "x", "paid", "opposite"]
LEVELS = tuple(sorted(map(str, range(40))))


def table(hint):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((len(hint), 2))
    return pd.DataFrame(X, columns=list("ab")).assign(y=X.sum(axis=1), **{hint.name: hint})


def in_memory(hint):
    return read_side(None, hint, len(hint)).hints


def in_files(hint, folder):
    pytest.importorskip("pyarrow")
    from hetrisk.blocks import ParquetBlocks

    frame, half = table(hint), len(hint) // 2
    frame[:half].to_parquet(folder / "0.parquet", row_group_size=70)
    frame[half:].to_parquet(folder / "1.parquet")
    return ParquetBlocks(folder, "y", ["a", "b"], aside=hint.name)


def on_dask(hint):
    dd = pytest.importorskip("dask.dataframe")
    from hetrisk.blocks import DaskBlocks

    far = dd.from_pandas(table(hint), npartitions=3)
    return DaskBlocks(far[["a", "b"]], far["y"], aside=far[hint.name])


def carried(rows):
    """What blocks say of their one hint, and its values."""
    return rows.side_columns, rows.collect(lambda block: block.aside[:, 0])


def told(hint):
    """What the command line makes of a column of text, as an estimator is given it."""
    text = [None if pd.isna(value) else str(value) for value in hint]
    frame = pd.DataFrame({hint.name: pd.Series(text, dtype="string")})
    return read_roles(frame, np.ones(len(hint), dtype=bool), None, [hint.name], None).hints


SPELLINGS = {
    "integers": lambda: pd.Series(SITES),
    "floats": lambda: pd.Series(SITES.astype(float)),
    "nullable": lambda: pd.Series(SITES, dtype="Int64"),
    "decimals": lambda: pd.Series([decimal.Decimal(int(site)) for site in SITES]),
    "objects": lambda: pd.Series(SITES, dtype=object),
    "unsigned": lambda: pd.Series(SITES, dtype="uint8"),
}


@pytest.mark.parametrize("name", THINGS + MEASURES)
def test_whole_numbers_are_names_where_the_command_line_says_so(name):
    hint = pd.Series(SITES, name=name)
    (column,), values = in_memory(hint), read_side(None, hint, N).values
    (line,), read = in_memory(told(hint)), read_side(None, told(hint), N).values
    assert names_things(name) == (name in THINGS)
    assert column == line
    assert column.kind == ("category" if name in THINGS else "number")
    assert np.array_equal(values, read)


@pytest.mark.parametrize("name", ["site", "year"])
@pytest.mark.parametrize("change", [lambda x: x + 0.5, lambda x: x.where(x != 3)])
def test_halves_are_no_names_and_gaps_are_none(name, change):
    hint = change(pd.Series(SITES.astype(float), name=name))
    (column,), (line,) = in_memory(hint), in_memory(told(hint))
    assert column == line
    assert (column.kind == "category") == (name == "site" and hint.isna().any())


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_names_that_are_numbers_are_spelled_alike_whatever_holds_them(spelling):
    (column,) = in_memory(SPELLINGS[spelling]().rename("site"))
    assert (column.kind, column.levels) == ("category", LEVELS)


def test_arrays_have_no_name():
    assert in_memory(SITES)[0].kind == "number"
    assert in_memory(np.column_stack([SITES, SITES]))[1].kind == "number"
    assert in_memory(pd.Series(SITES))[0].kind == "number"


def test_the_name_counts_in_every_library():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    series = pd.Series(SITES, name="site")
    named = [
        series,
        series.to_frame(),
        pd.Index(series),
        pl.Series("site", SITES),
        pl.DataFrame({"site": SITES}),
        pa.table({"site": SITES}),
    ]
    for hint in named:
        assert in_memory(hint)[0].levels == LEVELS
        side = read_side(hint, None, N)
        assert not side.labels.ordered
        assert side.labels.names == tuple(map(str, range(40)))
    year = series.rename("year")
    for hint in (SITES, year, pl.Series("year", SITES), pa.table({"year": SITES})):
        assert in_memory(hint)[0].kind == "number"
        assert read_side(hint, None, N).labels.ordered


@pytest.mark.parametrize("name", ["site", "year"])
@pytest.mark.parametrize("spelling", ["integers", "floats", "nullable"])
def test_files_and_dask_take_numbers_for_what_memory_does(tmp_path, name, spelling):
    hint = SPELLINGS[spelling]().rename(name)
    hint = hint.where(SITES != 3) if spelling != "integers" else hint
    values = read_side(None, hint, N).values[:, 0]
    for rows in (in_files(hint, tmp_path), on_dask(hint)):
        found, held = carried(rows)
        assert found == in_memory(hint)
        assert np.array_equal(held, values, equal_nan=True)


def test_a_hint_in_memory_keeps_its_name_beside_rows_on_dask():
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    from hetrisk.blocks import DaskBlocks

    hint = pd.Series(SITES, name="site")
    far = dd.from_pandas(table(hint), npartitions=3)
    rows = DaskBlocks(far[["a", "b"]], far["y"], aside=hint, environments=hint)
    assert carried(rows)[0] == in_memory(hint)
    assert not side_of(rows).labels.ordered
    # An array on dask has the name of a task.
    array = da.from_array(SITES, chunks=200, name="site")
    rows = DaskBlocks(far[["a", "b"]], far["y"], environments=array)
    assert side_of(rows).labels.ordered


@pytest.mark.parametrize(("name", "ordered"), [("site", False), ("year", True)])
def test_environments_have_the_same_order_in_files_and_on_dask(tmp_path, name, ordered):
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow")
    from hetrisk.blocks import DaskBlocks, ParquetBlocks

    frame = table(pd.Series(SITES, name=name))
    frame.to_parquet(tmp_path / "0.parquet")
    far = dd.from_pandas(frame, npartitions=3)
    homes = [
        ParquetBlocks(tmp_path, "y", ["a", "b"], environments=name),
        DaskBlocks(far[["a", "b"]], far["y"], environments=far[name]),
        DaskBlocks(far[["a", "b"]], far["y"], environments=far[[name]]),
    ]
    for rows in homes:
        assert side_of(rows).labels.ordered == ordered
        viewed = rows.standardised(np.zeros(3), np.ones(3))
        assert side_of(viewed).labels.ordered == ordered
    assert read_side(frame[name], None, N).labels.ordered == ordered
    assert read_side(frame[name].astype(str), None, N).labels.ordered == ordered


def test_sites_that_are_numbered_fall_into_kinds():
    """Sites of two kinds, numbered at random: neighbours have nothing in common."""
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(200), 10)
    X = rng.standard_normal((2000, 3))
    turned = rng.random(200) < 1 / 3
    y = X[:, 0] + np.where(turned[site], -2.0, 2.0) * X[:, 2] + 0.3 * rng.standard_normal(2000)
    hint = pd.Series(site, name="site")
    model = HRMRegressor().fit(X, y, hints=hint)
    assert model.support_.tolist() == [True, True, False]
    assert "200 levels in" in model.sources_[0].sentence
    line = HRMRegressor().fit(X, y, hints=told(hint))
    assert model.sources_ == line.sources_


def test_a_part_that_is_not_whole_makes_all_of_them_numbers():
    parts = [pd.Series([1, 2, 3]), pd.Series([None, None]), pd.Series([1.5, 2.0])]
    for order in (parts, parts[::-1]):
        column = described("site", 0, lambda order=order: order, 7)
        assert (column.kind, column.levels, column.missing) == ("number", (), True)
        assert side_numbers(parts[0], column).tolist() == [1.0, 2.0, 3.0]
    mixed = [parts[0], pd.Series(["a"])]
    with pytest.raises(ValueError, match=r"one kind of value; got \['category', 'number'\]"):
        described("site", 0, lambda: mixed, 4)


def test_an_infinite_number_is_no_name():
    with pytest.raises(ValueError, match="'site' must be finite or missing"):
        in_memory(pd.Series([1.0, np.inf] * 10, name="site"))
    assert not are_codes("site", np.array([1.0, np.nan]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=2, max_size=30),
    st.integers(1, 29),
)
def test_names_keep_every_digit_however_the_rows_are_cut(numbers, cut):
    whole = pd.Series(numbers, name="site")
    parts = [whole[:cut], pd.Series([*whole[cut:], None], dtype=object)]
    column = described("site", 0, lambda: parts, len(whole) + 1)
    assert column.levels == tuple(sorted({str(number) for number in numbers}))
    codes = np.concatenate([side_numbers(part, column) for part in parts])
    assert np.isnan(codes[-1])
    assert [column.levels[int(code)] for code in codes[:-1]] == [str(n) for n in numbers]


CATEGORIES = {
    "integers": lambda: pd.Series(pd.Categorical(np.arange(N) % 6)),
    "with gaps": lambda: pd.Series(pd.Categorical([i % 6 if i % 7 else None for i in range(N)])),
    "floats": lambda: pd.Series(pd.Categorical(np.arange(N) % 6 / 2)),
    "text": lambda: pd.Series(np.arange(N) % 6).astype(str).astype("category"),
    "dates": lambda: pd.Series(
        pd.Categorical(pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) % 6, "D"))
    ),
}


@pytest.mark.parametrize("held", CATEGORIES)
def test_a_category_is_one_in_files_and_on_dask_too(tmp_path, held):
    hint = CATEGORIES[held]().rename("x")
    expected = in_memory(hint)
    assert expected[0].kind == ("date" if held == "dates" else "category")
    values = read_side(None, hint, N).values[:, 0]
    for rows in (in_files(hint, tmp_path), on_dask(hint)):
        found, numbers = carried(rows)
        assert found == expected
        assert np.array_equal(numbers, values, equal_nan=True)


def test_a_category_of_numbers_is_one_where_every_file_says_so(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from hetrisk.blocks import ParquetBlocks

    numbers, category = pa.array([1, 2, 3]), pa.array([4, 5, 4]).dictionary_encode()
    columns = {"a": category, "b": pa.nulls(3), "c": numbers}
    for name, column in columns.items():
        held = pa.table({"u": pa.array([1.0, 2.0, 3.0]), "h": column})
        pq.write_table(held, tmp_path / f"{name}.parquet")

    def kind(files):
        return ParquetBlocks(tmp_path / files, None, ["u"], aside="h").side_columns[0].kind

    assert [kind("[a].parquet"), kind("[ab].parquet")] == ["category", "category"]
    assert [kind("[c].parquet"), kind("[ac].parquet")] == ["number", "number"]


def test_a_broken_note_about_categories_is_passed_over(tmp_path):
    pytest.importorskip("pyarrow")
    from hetrisk.columns import parquet as files

    class Noted:
        def __init__(self, note):
            self.metadata = type("Footer", (), {"metadata": note})()

    for note in (None, {}, {b"ARROW:schema": b"%"}, {b"ARROW:schema": b"AAAA"}):
        assert files._categories(Noted(note)) == frozenset()


PERIODS = pd.Series(pd.PeriodIndex([f"20{i % 6 + 10}-01" for i in range(N)], freq="M"), name="day")
STARTS = tuple(f"20{year}-01-01" for year in range(10, 16))


def periods_in_arrow():
    pa = pytest.importorskip("pyarrow")
    whole = pa.Table.from_pandas(PERIODS.to_frame())
    held = whole["day"]
    return [whole, held, held.combine_chunks(), pd.Series(held, dtype=pd.ArrowDtype(held.type))]


def test_periods_are_the_dates_they_start_at_in_arrow_too(tmp_path):
    expected = read_side(None, PERIODS, N)
    for held in (PERIODS, *periods_in_arrow()):
        assert read_side(held, None, N).labels.names == STARTS
        side = read_side(None, held, N)
        assert side.hints[0].kind == "date"
        assert np.array_equal(side.values, expected.values)
    for rows in (in_files(PERIODS, tmp_path), on_dask(PERIODS)):
        found, values = carried(rows)
        assert found == expected.hints
        assert np.array_equal(values, expected.values[:, 0])


@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64"])
def test_integers_that_become_one_number_are_refused(tmp_path, kind):
    hint = pd.Series(2**60 + np.arange(N) % 6, dtype=kind, name="x")
    message = (
        r"'x' must hold numbers that float64 tells apart; got 1152921504606846976 and "
        r"1152921504606846977\. Subtract the smallest from all, or pass them as text\."
    )
    for home in (in_memory, on_dask, lambda h: in_files(h, tmp_path)):
        with pytest.raises(ValueError, match=message):
            home(hint)
    model = HRMRegressor().fit(table(hint)[["a", "b"]], table(hint)["y"], hints=hint - 2**60)
    assert "no two groups" not in model.sources_[0].sentence


def test_integers_are_refused_beside_missing_ones_too(tmp_path):
    hint = pd.Series([2**60 + i % 6 if i % 7 else None for i in range(N)], dtype="Int64", name="x")
    for home in (in_memory, lambda h: in_files(h, tmp_path)):
        with pytest.raises(ValueError, match="'x' must hold numbers that float64 tells apart"):
            home(hint)


APART = [2**53 - 1, 2**60, -(2**60), -(2**53) + 1]
ALIKE = [(2**53, 2**53 + 1), (-(2**53) - 1, -(2**53)), (2**60, 2**60 + 1), (-(2**60), 1 - 2**60)]


@pytest.mark.parametrize("kind", ["int64", "Int64", "object"])
@pytest.mark.parametrize("pair", ALIKE)
def test_the_first_two_integers_that_meet_are_named_whatever_their_sign(pair, kind):
    assert float(pair[0]) == float(pair[1])
    message = f"tells apart; got {pair[0]} and {pair[1]}\\."
    for hint in ([*APART[:1], *pair], [*pair, *APART[3:]]):
        with pytest.raises(ValueError, match=message):
            in_memory(pd.Series(hint * 5, dtype=kind, name="x"))
    assert in_memory(pd.Series(APART * 5, dtype=kind, name="x"))[0].kind == "number"


@pytest.mark.parametrize("kind", ["int64", "Int64"])
def test_integers_that_meet_across_parts_are_refused_as_in_memory(tmp_path, kind):
    hint = pd.Series(np.repeat([2**60, 2**60 + 1], N // 2), dtype=kind, name="x")
    for home in (in_memory, on_dask, lambda h: in_files(h, tmp_path)):
        with pytest.raises(ValueError, match="got 1152921504606846976 and 1152921504606846977"):
            home(hint)
    apart = pd.Series(np.repeat([2**60, 2**61], N // 2), dtype=kind, name="x")
    assert carried(on_dask(apart))[0] == in_memory(apart)


def test_as_many_large_integers_are_kept_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr("hetrisk.blocks.aside.MOST_LARGE", 1)
    one, further, both = pd.Series([2**60]), pd.Series([2**61]), pd.Series([2**62, 2**62 + 1])
    for parts in ([one, further, one + 1], [one, further, both]):
        with pytest.raises(ValueError, match=r"got \d+ and \d+[57]\."):
            described("x", 0, lambda parts=parts: parts, 4)
    assert described("x", 0, lambda: [one, further, further + 1], 3).kind == "number"


@pytest.mark.parametrize("largest", [2**53 - 1, 2**53, -(2**53), 2**60 + 1])
def test_integers_of_files_are_objects_only_where_floats_would_not_do(tmp_path, largest):
    pytest.importorskip("pyarrow")
    from hetrisk.blocks import ParquetBlocks

    site = pd.Series([largest, 5, None] * 4, dtype="Int64", name="site")
    columns = {"gaps": site, "none": site.mask(site.notna()), "whole": site.fillna(5)}
    found = {"gaps": object if abs(largest) >= 2**53 else float, "none": float, "whole": int}
    for name, hint in columns.items():
        table(hint).to_parquet(tmp_path / f"{name}.parquet")
    rows = ParquetBlocks(tmp_path, "y", ["a", "b"], aside="site")
    assert [part.dtype for part in rows._side_parts("site")] == list(found.values())
    assert rows.side_columns[0].levels == tuple(sorted([str(largest), "5"]))


@pytest.mark.parametrize("kind", ["int64", "decimal128", "float32"])
def test_numbers_in_arrow_are_spelled_alike(kind):
    pa = pytest.importorskip("pyarrow")
    held = pa.decimal128(20, 0) if kind == "decimal128" else getattr(pa, kind)()
    known = SITES != 3
    hint = pd.Series(SITES, name="site").astype(pd.ArrowDtype(held)).where(known)
    (column,), codes = in_memory(hint), read_side(None, hint, N).values[:, 0]
    assert np.isnan(codes[~known]).all()
    assert [column.levels[int(c)] for c in codes[known]] == [str(s) for s in SITES[known]]


def test_only_distinct_numbers_are_spelled(monkeypatch):
    spelled = []

    def spelling(given, values):
        place, texts = real(given, values)
        spelled.append(len(texts))
        return place, texts

    real = aside._spelled
    monkeypatch.setattr(aside, "_spelled", spelling)
    read_side(None, pd.Series(SITES, name="site"), N)
    assert spelled == [40, 40]


def test_large_numbers_that_stay_apart_are_numbers():
    moments = pd.Series(pd.date_range("2020-01-01", periods=N).as_unit("ns").astype("int64"))
    assert in_memory(moments)[0].kind == "number"
    assert in_memory(moments.astype(float) * 1e9)[0].kind == "number"
    assert in_memory(pd.Series([2**60, 2**60, 2**61] * 200))[0].kind == "number"
    (column,) = in_memory(pd.Series(2**60 + np.arange(N) % 6, name="site"))
    assert column.levels == tuple(str(2**60 + i) for i in range(6))


def test_decimals_are_numbers_on_dask_where_it_leaves_objects_alone():
    dask = pytest.importorskip("dask")
    hint = pd.Series([decimal.Decimal(i % 6) / 4 for i in range(N)], name="x")
    with dask.config.set({"dataframe.convert-string": False}):
        assert carried(on_dask(hint))[0] == in_memory(hint)
    assert in_memory(hint)[0].kind == "number"


def test_spans_and_truths_are_what_they_were():
    spans = pd.Series([datetime.timedelta(days=1.5), datetime.timedelta(days=2)] * 10, name="x")
    assert in_memory(spans)[0].kind == "number"
    assert in_memory(pd.Series([True, False] * 10, name="site"))[0].levels == ("False", "True")


def test_blocks_of_their_own_have_no_name():
    rows = ArrayBlocks(np.ones((4, 1)), np.ones(4))
    assert rows.environment_name == ""
