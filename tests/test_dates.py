"""Dates as hints and as environments: one reader, whatever library or file they come from."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hetrisk.estimators.side_information import read_side

from hetrisk import HRMRegressor
from hetrisk.blocks.aside import described, side_numbers
from hetrisk.columns.dates import DATE_FORMATS, forms_of, plain, text_days
from hetrisk.tables.cells import TextCells
from hetrisk.tables.inference import understand

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
    "text": lambda: DAYS.dt.strftime("%Y-%m-%d"),
    "text as category": lambda: DAYS.dt.strftime("%d.%m.%Y").astype("category"),
    "American text": lambda: DAYS.dt.strftime("%m/%d/%Y"),
    "compact text": lambda: DAYS.dt.strftime("%Y%m%d"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_hint_is_a_date_however_it_is_spelled(spelling):
    side = read_side(None, SPELLINGS[spelling](), N)
    assert side.hints[0].kind == "date"
    assert np.array_equal(side.values[:, 0], SINCE_1970)


def test_what_is_missing_among_dates_stays_missing():
    with_gaps = {
        "date": pd.Series([datetime.date(2020, 1, 2), None] * 5, dtype=object),
        "text": pd.Series(["2020-01-02", None] * 5),
        "words": pd.Series(["2020-01-02", "?"] * 5),
    }
    for hint in with_gaps.values():
        side = read_side(None, hint, 10)
        assert side.hints[0].kind == "date"
        assert side.hints[0].missing
        assert side.values[0, 0] == 18263
        assert np.isnan(side.values[1, 0])


@pytest.mark.parametrize("held", [["2020-01-02"], [datetime.date(2020, 1, 2)], [1.0], ["a"]])
@pytest.mark.parametrize("dtype", [object, float, "string", "datetime64[ns]"])
def test_a_part_without_any_value_is_missing_whatever_its_type(held, dtype):
    parts = [pd.Series(held), pd.Series([None, None], dtype=dtype)]
    found = described("x", 0, lambda: parts, 3)
    assert np.isnan(side_numbers(parts[1], found)).all()


def test_the_time_of_day_counts():
    side = read_side(None, pd.Series([datetime.datetime(2020, 1, 2, 6), None] * 3), 6)
    assert side.values[0, 0] == 18263.25


@pytest.mark.parametrize(
    "spans",
    [
        pd.Series(pd.to_timedelta([36, 12] * 5, "h")),
        pd.Series([datetime.timedelta(days=1.5), datetime.timedelta(days=0.5)] * 5, dtype=object),
    ],
)
def test_a_span_of_time_is_a_number_of_days(spans):
    side = read_side(None, spans, 10)
    assert side.hints[0].kind == "number"
    assert side.values[:2, 0].tolist() == [1.5, 0.5]


@pytest.mark.parametrize("form", DATE_FORMATS)
def test_text_is_a_date_for_estimators_where_it_is_one_for_the_command_line(form):
    spelled = "%Y-%m-%d" if form == "ISO8601" else form
    texts = [day.strftime(spelled) for day in DAYS]
    column, _ = understand(TextCells("day", texts), use=True)
    if column.kind == "number":  # 10.2014 is one
        return
    hint = described("day", 0, lambda: [pd.Series(texts)], N)
    assert (column.kind, column.form) == (hint.kind, hint.form)
    days = column.encode(TextCells("day", texts))[0][:, 0]
    assert np.array_equal(side_numbers(pd.Series(texts), hint), days)


@pytest.mark.parametrize(
    "texts", [["2019", "2020"], ["a", "2020-01-01"], ["site 2020"], ["2020-Q1"], ["1.5"], ["?"]]
)
def test_other_text_is_no_date(texts):
    found = described("x", 0, lambda: [pd.Series([*texts, "b"][: len(texts)] * 4)], 4 * len(texts))
    assert found.kind == "category"


def test_the_format_is_that_of_all_parts():
    """The first part alone may be month/day as well as day/month."""
    parts = [pd.Series(["01/02/2020", "03/02/2020"]), pd.Series(["31/01/2020", None])]
    found = described("day", 0, lambda: parts, 4)
    assert found.form == "%d/%m/%Y"
    assert (
        side_numbers(parts[0], found).tolist()
        == text_days(["2020-02-01", "2020-02-03"], "ISO8601").tolist()
    )
    mixed = [*parts, pd.Series(["yesterday"])]
    assert described("day", 0, lambda: mixed, 5).kind == "category"
    assert forms_of(["2020-01-01"], ("%m/%d/%Y",)) == ()


def test_zones_become_utc():
    summer = pd.Series(pd.to_datetime(["2020-07-01 01:00"])).dt.tz_localize("Europe/Berlin")
    assert plain(summer)[0] == pd.Timestamp("2020-06-30 23:00")


YEARS = pd.Series(pd.to_datetime(["2010-01-01", "2000-01-01", "1990-01-01"] * 200))
NAMES = ("1990-01-01", "2000-01-01", "2010-01-01")
DATED = {
    "datetime64": lambda: YEARS,
    "index": lambda: pd.DatetimeIndex(YEARS),
    "array": lambda: YEARS.to_numpy(),
    "date": lambda: YEARS.dt.date,
    "period": lambda: YEARS.dt.to_period("Y"),
    "date32": lambda: YEARS.dt.date.astype(arrow("date32")),
    "polars": lambda: pytest.importorskip("polars").Series("day", YEARS.dt.date.tolist()),
    "text": lambda: YEARS.dt.strftime("%d.%m.%Y"),
}


def table(seed=0):
    """The slope of the last column turns round in the year 2000."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    turned = (pd.Timestamp("2000-01-01") == YEARS).to_numpy()
    y = X[:, 0] + np.where(turned, -2.0, 2.0) * X[:, 2] + 0.3 * rng.standard_normal(N)
    return X, y


@pytest.mark.parametrize("spelling", DATED)
def test_environments_that_are_dates_are_shown_as_dates_in_their_order(spelling):
    X, y = table()
    model = HRMRegressor().fit(X, y, environments=DATED[spelling]())
    assert model.environment_labels_ == NAMES
    assert [score.label for score in model.leave_one_out_] == list(NAMES)
    side = read_side(DATED[spelling](), None, N)
    assert side.labels.ordered
    if spelling != "text":  # listed as it was written
        assert [name for name, _ in side.named] == list(NAMES)


def test_a_time_of_day_is_shown_where_there_is_one():
    hours = pd.to_datetime(["2020-01-01 00:00", "2020-01-01 06:30"] * 5)
    assert read_side(hours, None, 10).labels.names == ("2020-01-01", "2020-01-01 06:30:00")


def test_labels_that_say_nothing_are_named_as_dates():
    with pytest.raises(ValueError, match="different labels; got one, '2020-01-01'"):
        read_side(pd.DatetimeIndex(["2020-01-01"] * 9), None, 9)


def test_labels_that_would_become_one_date_stay_apart():
    labels = np.array(["2020-01-01", "2020-01-01 00:00", "2020-01-02"] * 5)
    assert len(read_side(labels, None, 15).labels.names) == 3


def test_parquet_and_dask_show_and_read_dates_as_memory_does(tmp_path):
    pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    from hetrisk.blocks import ParquetBlocks

    X, y = table()
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y, day=YEARS)
    spelled = {"moment": YEARS, "date": YEARS.dt.date, "text": YEARS.dt.strftime("%m/%d/%Y")}
    for name, values in spelled.items():
        held, path = frame.assign(day=values), tmp_path / f"{name}.parquet"
        held.to_parquet(path, row_group_size=250)
        far = dd.from_pandas(held, npartitions=3)
        fits = [
            HRMRegressor().fit(ParquetBlocks(path, "y", environments="day")),
            HRMRegressor().fit(far[list("abc")], far["y"], environments=far["day"]),
            HRMRegressor().fit(far[list("abc")], far["y"], environments=far[["day"]]),
        ]
        for fit in fits:
            assert fit.environment_labels_ == NAMES
        hinted = [
            ParquetBlocks(path, "y", aside="day").side_columns,
            read_side(None, values.rename("day"), N).hints,
        ]
        assert all(column.kind == "date" for (column,) in hinted)
        spread = HRMRegressor().fit(far[list("abc")], far["y"], hints=far[["day"]])
        held_fit = HRMRegressor().fit(X, y, hints=values.rename("day"))
        assert [s.sentence for s in spread.sources_] == [
            s.sentence.replace("x2", "c") for s in held_fit.sources_
        ]


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
