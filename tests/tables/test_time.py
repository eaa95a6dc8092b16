"""Columns of time and of environments, in every form people write them."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.tables import TableError
from hetrisk.tables.time import read_environment, read_time

JANUARY, MARCH = 18262.0, 18322.0  # 2020-01-01 and 2020-03-01 as days since 1970

DATES = {
    "ISO": ["2020-01-01", "2020-03-01"],
    "month by name": ["1 Jan 2020", "1 Mar 2020"],
    "with points": ["01.01.2020", "01.03.2020"],
    "year first": ["2020/01/01", "2020/03/01"],
    "one number": [20200101, 20200301],
    "one number as text": ["20200101", "20200301"],
    "datetime64": np.array(["2020-01-01", "2020-03-01"], dtype="datetime64[D]"),
    "pandas": pd.to_datetime(["2020-01-01", "2020-03-01"]),
    "in a zone": pd.to_datetime(["2020-01-01 09:00", "2020-03-01 09:00"]).tz_localize("Asia/Tokyo"),
    "with an offset": ["2020-01-01T09:00:00+09:00", "2020-03-01T09:00:00+09:00"],
    "days of Python": [datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)],
    "days of pandas": pd.PeriodIndex(["2020-01-01", "2020-03-01"], freq="D"),
    "polars": pl.Series([datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)]),
    "a category": pd.Categorical(["2020-01-01", "2020-03-01"]),
}


@pytest.mark.parametrize("form", DATES)
def test_dates_are_days_and_are_labelled_as_their_clock_shows_them(form):
    column = read_time(DATES[form])
    assert column.kind == "date"
    assert column.value.tolist() == [JANUARY, MARCH]
    assert [column.label(value) for value in column.value] == ["2020-01-01", "2020-03-01"]
    assert column.read(DATES[form]).tolist() == [JANUARY, MARCH]


PERIODS = {
    "quarters": (["2020Q1", "2020Q3"], [200.0, 202.0], ["2020Q1", "2020Q3"]),
    "quarters first": (["Q1 2020", "Q3 2020"], [200.0, 202.0], ["2020Q1", "2020Q3"]),
    "quarters of pandas": (
        pd.PeriodIndex(["2020Q1", "2020Q3"], freq="Q"),
        [200.0, 202.0],
        ["2020Q1", "2020Q3"],
    ),
    "months": (["2020-01", "2020-03"], [600.0, 602.0], ["2020-01", "2020-03"]),
    "months by name": (["Jan 2020", "Mar 2020"], [600.0, 602.0], ["2020-01", "2020-03"]),
    "months as numbers": ([202001, 202003], [600.0, 602.0], ["2020-01", "2020-03"]),
    "months of Eurostat": (["2020M01", "2020M3"], [600.0, 602.0], ["2020-01", "2020-03"]),
    "months of pandas": (
        pd.period_range("2020-01", periods=2, freq="M"),
        [600.0, 601.0],
        ["2020-01", "2020-02"],
    ),
    "weeks": (["2020-W53", "2021-W01"], [2661.0, 2662.0], ["2020-W53", "2021-W01"]),
}


@pytest.mark.parametrize("form", PERIODS)
def test_periods_are_counted_one_step_each(form):
    values, counts, labels = PERIODS[form]
    column = read_time(values)
    assert column.kind == "period"
    assert column.value.tolist() == counts
    assert [column.label(value) for value in counts] == labels
    assert column.read(values).tolist() == counts


@pytest.mark.parametrize(
    "values",
    [
        [1998, 1999],
        ["1998", "1999"],
        np.array([1998.0, 1999.0]),
        pd.PeriodIndex(["1998", "1999"], freq="Y"),
        pl.Series([1998, 1999]),
        pd.array([1998, 1999], dtype="Int64"),
        pd.Categorical([1998, 1999]),
    ],
)
def test_years_are_numbers(values):
    column = read_time(values)
    assert column.kind == "number"
    assert column.value.tolist() == [1998.0, 1999.0]
    assert column.label(1998.0) == "1998"
    assert column.label(2010 + 5 / 6) == "2010.83333"
    assert column.read(["2001", None, " 2002 "]).tolist()[::2] == [2001.0, 2002.0]


@pytest.mark.parametrize("frame", [pd.Series, pl.Series, list, lambda x: np.array(x, dtype=object)])
def test_missing_values_are_nan_in_every_frame(frame):
    for values in (["2020-01-01", None, "2020-03-01"], ["2020-01-01", "n/a", "2020-03-01"]):
        found = read_time(frame(values)).value
        assert found[[0, 2]].tolist() == [JANUARY, MARCH]
        assert np.isnan(found[1])
    assert np.isnan(read_time(frame([1.0, None, 2.0])).value).tolist() == [False, True, False]


def test_day_and_month_are_not_guessed():
    said = "'01/02/2020' is 1 February or 2 January: say which with dayfirst=True or dayfirst=False"
    with pytest.raises(TableError, match=re.escape(said)) as caught:
        read_time(["01/02/2020", "03/04/2020"], "sold")
    assert "'sold'" in str(caught.value)
    assert caught.value.in_flags.endswith("say which with --dayfirst or --monthfirst")
    for dayfirst, label in ((True, "2020-02-01"), (False, "2020-01-02")):
        column = read_time(["01/02/2020", "03/04/2020"], "sold", dayfirst=dayfirst)
        assert column.label(column.value[0]) == label
    proven = read_time(["01/02/2020", "31/12/2020"])
    assert proven.label(proven.value[0]) == "2020-02-01"
    with pytest.raises(TableError, match="'31/12/2020' cannot have the month first"):
        read_time(["01/02/2020", "31/12/2020"], dayfirst=False)
    dashes = read_time(["12-31-2020", "01-02-2020"])
    assert dashes.label(dashes.value[1]) == "2020-01-02"


def test_further_dates_are_read_as_the_first_ones_were():
    column = read_time(["31/12/2020", "01/01/2021"])
    assert column.label(column.read(["01/02/2021"])[0]) == "2021-02-01"
    assert column.label(column.read(pd.to_datetime(["2021-02-01"]))[0]) == "2021-02-01"
    months = read_time(["2020-01", "2020-02"])
    assert months.label(months.read(pd.to_datetime(["2020-05-17"]))[0]) == "2020-05"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["north", "south"], "must hold dates or numbers, all in one form; it holds 'north' and"),
        (["2020-01-01", "soon"], "it holds '2020-01-01' and 'soon'"),
        ([True, False], "must hold dates or numbers; it holds 'True'"),
        ([1, "a"], "must hold dates or numbers; it holds"),
        ([None, None], "has no value in any row"),
        ([], "has no value in any row"),
        ([1.0, np.inf], "row 2: 'inf' is not a finite number"),
        (np.ones((2, 2)), "must be one column; got 2 axes"),
    ],
)
def test_columns_that_are_no_time_are_refused(values, said):
    with pytest.raises(TableError, match=said) as caught:
        read_time(values, "when")
    assert "when" in str(caught.value)


def test_further_values_that_cannot_be_read_are_refused_with_their_row():
    with pytest.raises(TableError, match="'when', row 2: 'soon' is not a finite number"):
        read_time([1, 2], "when").read(["3", "soon"])
    with pytest.raises(TableError, match="row 1: '2020Q5' is not a period like those"):
        read_time(["2020Q1"], "when").read(["2020Q5"])
    with pytest.raises(TableError, match="row 1: '2021-W53' is not a period"):
        read_time(["2020-W01"], "when").read(["2021-W53"])


@given(st.lists(st.integers(-200_000, 200_000), min_size=1, max_size=20), st.randoms())
def test_labels_and_order_of_rows(days, random):
    values = np.array(days).astype("datetime64[D]")
    column = read_time(values)
    assert column.value.tolist() == days
    assert [column.label(day) for day in days] == [str(value) for value in values]
    shuffled = random.sample(days, len(days))
    assert read_time(np.array(shuffled).astype("datetime64[D]")).value.tolist() == shuffled


def test_environments_are_the_same_in_any_order_of_rows_and_in_any_frame():
    values = ["b", "a", None, "c", "a"]
    for frame in (pd.Series, pl.Series, list, pd.Categorical):
        codes, levels = read_environment(frame(values))
        assert levels == ("a", "b", "c")
        assert codes.tolist() == [1, 0, -1, 2, 0]
    codes, levels = read_environment(values[::-1])
    assert levels == ("a", "b", "c")
    assert codes.tolist() == [0, 2, -1, 0, 1]


def test_environments_that_are_numbers_or_dates_are_sorted_as_such():
    assert read_environment([10.0, 9.0, 100.0])[1] == ("9", "10", "100")
    assert read_environment(["10", "9", "100"])[1] == ("9", "10", "100")
    assert read_environment(np.array(["2021-01-01", "2020-05-01"], dtype="datetime64[D]"))[1] == (
        "2020-05-01",
        "2021-01-01",
    )
    assert read_environment([True, False])[1] == ("False", "True")
    with pytest.raises(TableError, match="does not hold single values"):
        read_environment(pd.Series([[1], [2]]), "site")
