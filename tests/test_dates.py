"""Dates as side columns: one reader, whatever library or file they come from."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from hetrisk.blocks.aside import as_frame, described, side_numbers
from hetrisk.columns.dates import plain

N = 600
START = pd.Timestamp("2019-03-05")
OFFSETS = np.repeat(np.arange(0, 1200, 2), 1)
DAYS = pd.Series(START + pd.to_timedelta(OFFSETS, "D"), name="day")
SINCE_1970 = (DAYS - pd.Timestamp(0)).dt.days.to_numpy(float)


def arrow(kind):
    pa = pytest.importorskip("pyarrow")
    return pd.ArrowDtype(getattr(pa, kind)("us") if kind == "timestamp" else getattr(pa, kind)())


def polars_dates():
    return pytest.importorskip("polars").Series("day", DAYS.dt.date.tolist())


SPELLINGS = {
    "datetime64": lambda: DAYS,
    "array of datetime64": lambda: DAYS.to_numpy(),
    "date": lambda: pd.Series(DAYS.dt.date, name="day"),
    "datetime": lambda: pd.Series(list(DAYS.dt.to_pydatetime()), dtype=object),
    "period": lambda: DAYS.dt.to_period("D"),
    "periods": lambda: DAYS.dt.to_period("D").astype(object),
    "index of periods": lambda: pd.PeriodIndex(DAYS.dt.to_period("D")),
    "date32": lambda: DAYS.dt.date.astype(arrow("date32")),
    "timestamp": lambda: DAYS.astype(arrow("timestamp")),
    "category": lambda: DAYS.astype("category"),
    "in a zone": lambda: DAYS.dt.tz_localize("UTC"),
    "polars": polars_dates,
}


def read(given):
    """One side column in memory: what it is, and its values."""
    values = as_frame(given).iloc[:, 0].reset_index(drop=True).infer_objects()
    column = described("day", 0, lambda: [values], len(values))
    return column, side_numbers(values, column)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_side_column_is_a_date_however_it_is_spelled(spelling):
    column, values = read(SPELLINGS[spelling]())
    assert column.kind == "date"
    assert np.array_equal(values, SINCE_1970)


def test_what_is_missing_among_dates_stays_missing():
    with_gaps = {
        "date": pd.Series([datetime.date(2020, 1, 2), None] * 5, dtype=object),
    }
    for given in with_gaps.values():
        column, values = read(given)
        assert column.kind == "date"
        assert column.missing
        assert values[0] == 18263
        assert np.isnan(values[1])


@pytest.mark.parametrize("held", [["2020-01-02"], [datetime.date(2020, 1, 2)], [1.0], ["a"]])
@pytest.mark.parametrize("dtype", [object, float, "string", "datetime64[ns]"])
def test_a_part_without_any_value_is_missing_whatever_its_type(held, dtype):
    parts = [pd.Series(held), pd.Series([None, None], dtype=dtype)]
    found = described("x", 0, lambda: parts, 3)
    assert np.isnan(side_numbers(parts[1], found)).all()


def test_the_time_of_day_counts():
    _, values = read(pd.Series([datetime.datetime(2020, 1, 2, 6), None] * 3))
    assert values[0] == 18263.25


@pytest.mark.parametrize(
    "spans",
    [
        pd.Series(pd.to_timedelta([36, 12] * 5, "h")),
        pd.Series([datetime.timedelta(days=1.5), datetime.timedelta(days=0.5)] * 5, dtype=object),
    ],
)
def test_a_span_of_time_is_a_number_of_days(spans):
    column, values = read(spans)
    assert column.kind == "number"
    assert values[:2].tolist() == [1.5, 0.5]


@pytest.mark.parametrize("texts", [["2019", "2020"], ["2020-01-01"], ["1.5"], ["?"]])
def test_text_is_a_category(texts):
    found = described("x", 0, lambda: [pd.Series([*texts, "b"][: len(texts)] * 4)], 4 * len(texts))
    assert found.kind == "category"


def test_zones_become_utc():
    summer = pd.Series(pd.to_datetime(["2020-07-01 01:00"])).dt.tz_localize("Europe/Berlin")
    assert plain(summer)[0] == pd.Timestamp("2020-06-30 23:00")


def test_parquet_and_dask_read_dates_as_memory_does(tmp_path):
    pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    from hetrisk.blocks import DaskBlocks, ParquetBlocks

    frame = pd.DataFrame({"a": np.arange(N) / 7, "y": np.arange(N) / 3})
    for name, values in (("moment", DAYS), ("date", DAYS.dt.date)):
        held, path = frame.assign(day=values), tmp_path / f"{name}.parquet"
        held.to_parquet(path, row_group_size=250)
        sources = [ParquetBlocks(path, "y", ["a"], aside="day")]
        if name == "moment":  # dask makes text of the days of Python
            far = dd.from_pandas(held, npartitions=3)
            sources.append(DaskBlocks(far[["a"]], far["y"], aside=far[["day"]]))
        for source in sources:
            assert source.side_columns[0].kind == "date"
            assert np.array_equal(source.collect(lambda rows: rows.aside[:, 0]), SINCE_1970)


def test_numbers_are_numbers_whatever_holds_them():
    numbers = [1.5, 2.25, 4.0, 8.5]
    held = [
        pd.Series(numbers),
        pd.Series(numbers, dtype=object),
        pd.Series([decimal.Decimal(str(v)) for v in numbers]),
        pd.Series([*numbers[:3], 8.5], dtype="Float64"),
    ]
    for values in held:
        column = described("hint", 0, lambda v=values: [v], 4)
        assert column.kind == "number"
        assert side_numbers(values, column).tolist() == numbers
