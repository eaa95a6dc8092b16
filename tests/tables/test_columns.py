"""What columns are taken for, how they are encoded, and what is said about it."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.columns.dates import MISSING
from hetrisk.tables import LeftOut, TableEncoder, TableError
from hetrisk.tables.category import CategoryColumn
from hetrisk.tables.cells import NumberCells, TextCells, canonical, cells_of
from hetrisk.tables.columns import (
    BooleanColumn,
    DateColumn,
    NumberColumn,
)
from hetrisk.tables.errors import figure
from hetrisk.tables.inference import understand


def text(*values, name="x"):
    return TextCells(name, list(values))


def decide(*values, name="x", **options):
    return understand(text(*values, name=name), **options)


def noted(notes):
    return " | ".join(note.text for note in notes)


def test_numbers_with_gaps_get_the_median():
    column, notes = decide("1", "2", "10", "", "NA")
    assert column == NumberColumn("x", fill=2.0)
    assert "2 missing values (40.0%) replaced by 2" in noted(notes)
    values, said = column.encode(text("5", "?"))
    assert values.tolist() == [[5.0], [2.0]]
    assert "1 missing value replaced by 2" in noted(said)


def test_few_missing_values_of_many_are_not_none():
    _, notes = decide("", *(str(i % 7) for i in range(2500)))
    assert "1 missing value (under 0.1%) replaced by" in noted(notes)


def test_a_few_words_among_many_numbers_are_missing():
    values = [str(i) for i in range(100)] + ["broken"]
    column, notes = decide(*values)
    assert isinstance(column, NumberColumn)
    assert column.excused == ("broken",)
    assert "1 cell not a usable number ('broken') treated as missing" in noted(notes)
    assert column.encode(text("broken"))[0].tolist() == [[column.fill]]


def test_many_words_among_numbers_make_a_category():
    column, _ = decide(*(["1", "2", "low"] * 10))
    assert isinstance(column, CategoryColumn)


def test_text_in_a_number_column_is_an_error_with_its_row():
    column, _ = decide("1", "2", "3")
    with pytest.raises(TableError, match="column 'x', row 2: 'abc' is not a number"):
        column.encode(text("4", "abc"))


@pytest.mark.parametrize("huge", ["1e308", "-1e200", "inf", "Infinity", "1e999"])
def test_numbers_too_large_to_compute_with_are_missing(huge):
    column, notes = decide("1", "2", "3", huge)
    assert isinstance(column, NumberColumn)
    assert column.fill == 2.0
    assert "treated as missing" in noted(notes)
    assert column.encode(text(huge))[0].tolist() == [[2.0]]


def test_only_huge_numbers_are_left_out():
    out, _ = decide("1e308", "1e307", "inf")
    assert out == LeftOut("x", "no value is a finite number below 1e100")


def test_numbers_that_vary_only_among_unusable_ones_are_left_out():
    out, _ = decide("5", "5", "1e308", "5")
    assert isinstance(out, LeftOut)
    assert "constant: 5 wherever it is a number" in out.reason


def test_decimal_commas_are_understood_and_noted():
    column, notes = decide("1,5", "2", "3,25")
    assert isinstance(column, NumberColumn)
    assert column.fill == 2.0
    assert "commas read as decimal points ('1,5' is 1.5)" in noted(notes)


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        *(("yes", "no"), ("True", "False"), ("T", "f"), ("Y", "N"), ("on", "off"), ("Ja", "nein")),
        *(
            ("oui", "non"),
            ("sí", "no"),
            ("Sim", "Não"),
            ("tak", "nie"),
            ("да", "нет"),
            ("是", "否"),
        ),
    ],
)
def test_words_for_true_and_false(yes, no):
    column, notes = decide(yes, no, no, "")
    assert column == BooleanColumn("x", fill=0.0, words=(yes.lower(), no.lower()))
    assert f"'{yes}' read as 1 and '{no}' as 0" in noted(notes)
    assert column.encode(text(yes, no, "?"))[0].ravel().tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(TableError, match=f"row 1: 'maybe' is not '{yes.lower()}' or"):
        column.encode(text("maybe"))


def test_words_of_two_languages_are_a_category():
    assert isinstance(decide(*["ja", "no"] * 10)[0], CategoryColumn)


def test_booleans_of_a_data_frame_are_truths():
    cells = cells_of("x", pd.Series([True, False, None], dtype="boolean"))
    column, _ = understand(cells)
    assert isinstance(column, BooleanColumn)
    assert column.encode(cells)[0].ravel().tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["2014-10-13", "1969-12-31"], "ISO8601"),
        (["20141013T000000", "19691231T000000"], "ISO8601"),
        (["2014-10-13T00:00:00Z", "1969-12-31T00:00:00+00:00"], "ISO8601"),
        (["20141013", "19691231"], "%Y%m%d"),
        (["10/13/2014", "12/31/1969"], "%m/%d/%Y"),
        (["13/10/2014", "31/12/1969"], "%d/%m/%Y"),
        (["13.10.2014", "31.12.1969"], "%d.%m.%Y"),
        (["13 Oct 2014", "31 Dec 1969"], "%d %b %Y"),
        (["10/13/14", "12/31/69"], "%m/%d/%y"),
        (["13.10.14", "31.12.69"], "%d.%m.%y"),
        (["13-Oct-14", "31-Dec-69"], "%d-%b-%y"),
        (["October 13, 2014", "December 31, 1969"], "%B %d, %Y"),
    ],
)
def test_dates_become_days_with_a_note(values, form):
    column, notes = decide(*values, "")
    assert isinstance(column, DateColumn)
    assert column.form == form
    assert "turned into days since 1970-01-01" in noted(notes)
    assert column.encode(text(*values))[0].ravel().tolist() == [16356.0, -1.0]
    with pytest.raises(TableError, match="is not a date in the same format"):
        column.encode(text("soon"))


def test_dates_of_parquet_and_text_agree():
    moments = pd.Series(pd.to_datetime(["2014-10-13 12:00", None, "2020-01-01 00:00"]))
    column, _ = understand(cells_of("x", moments))
    assert isinstance(column, DateColumn)
    typed = column.encode(cells_of("x", moments))[0]
    written = column.encode(text("2014-10-13T12:00", "", "2020-01-01"))[0]
    np.testing.assert_array_equal(typed, written)
    assert typed[0, 0] == 16356.5


def test_time_zones_are_taken_to_utc():
    local = pd.Series(
        pd.to_datetime(["2020-01-01 02:00+02:00", "2020-06-01 00:00+02:00"], utc=True)
    )
    berlin = local.dt.tz_convert("Europe/Berlin")
    np.testing.assert_array_equal(
        cells_of("x", berlin).days("ISO8601"), cells_of("x", local).days("ISO8601")
    )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", [str(7 * i % 101) for i in range(100)]),
        ("house_id", [str(i // 1.2) for i in range(0, 1000, 9)]),
        ("customerId", [f"c{i}" for i in range(40)]),
        ("anything", [str(i) for i in range(1, 50)]),
        ("down", [str(100 - 2 * i) for i in range(40)]),
        ("Unnamed: 0", [str(i * i) for i in range(40)]),
        ("notes", [f"free text number {i}" for i in range(60)]),
    ],
)
def test_identifiers_are_left_out(name, values):
    if name == "house_id":
        values = [str(int(float(value))) for value in values]
    out, _ = decide(*values, name=name)
    assert isinstance(out, LeftOut)
    assert "identifier" in out.reason


@pytest.mark.parametrize("name", ["id", "route_id", "personId"])
def test_an_identifier_with_several_rows_each_is_one(name):
    out, _ = decide(*[str(1000 + i // 4) for i in range(400)], name=name)
    assert out == LeftOut(name, "an identifier, by its name (100 different values in 400 rows)")
    few, _ = decide(*[str(i % 3) for i in range(400)], name=name)
    assert isinstance(few, NumberColumn)


def test_names_of_rows_in_any_order_are_an_identifier():
    out, _ = decide(*[str(7 * i % 101) for i in range(100)], name="rownames")
    assert isinstance(out, LeftOut)


def test_millions_are_written_out():
    _, notes = decide(*map(str, range(4_800_000, 4_800_009, 2)), "")
    assert notes[0].text == "1 missing value (16.7%) replaced by 4,800,004"
    assert figure(0.00001234567) == "1.23457e-05"
    assert figure(-2.5e6) == "-2,500,000"
    assert figure(123.456789) == "123.457"


@pytest.mark.parametrize("name", ["width", "idea", "paid", "video"])
def test_names_that_only_contain_id_are_not_identifiers(name):
    values = [str(7 * i % 101) for i in range(100)]
    column, _ = decide(*values, name=name)
    assert isinstance(column, NumberColumn)


def test_constant_and_empty_columns_are_left_out():
    assert decide("", "NA", "?")[0] == LeftOut("x", "every value is missing")
    assert decide("a", "a", "a")[0] == LeftOut("x", "constant: 'a' in every row")
    assert "where there is a value" in decide("1", "1.0", "")[0].reason


def test_codes_with_leading_zeros_are_categories():
    column, notes = decide(*(["01", "02", "30"] * 10))
    assert isinstance(column, CategoryColumn)
    assert "because of leading zeros" in noted(notes)


def test_numbers_named_codes_are_categories():
    column, notes = decide(*(["98001.0", "98002.0"] * 10), name="zipcode")
    assert isinstance(column, CategoryColumn)
    assert column.levels == ("98001", "98002")
    assert "because of its name" in noted(notes)


def test_a_category_on_request():
    column, _ = decide(*(["1", "2", "3"] * 10), category=True)
    assert isinstance(column, CategoryColumn)


def test_categories_are_one_hot_and_a_new_level_is_the_mean_of_all():
    column, _ = decide(*(["b"] * 10 + ["a"] * 6 + ["c"] * 4 + ["d"] * 5))
    assert column.levels == ("a", "b", "d")
    assert column.feature_names == ["x=a", "x=b", "x=d", "x=(other)"]
    values, notes = column.encode(text("a", "c", "new", ""))
    mean = [0.24, 0.4, 0.2, 0.16]
    assert values.tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], mean, mean]
    assert "1 row with a category the model never saw ('new') taken as the mean" in noted(notes)
    assert "1 missing value taken as the mean of all categories" in noted(notes)


def test_of_two_levels_one_column_says_all():
    column, _ = decide(*(["b"] * 10 + ["a"] * 6))
    assert column.feature_names == ["x=a"]
    assert column.encode(text("a", "b", "new"))[0].ravel().tolist() == [1, 0, 6 / 16]


def test_rare_levels_share_a_feature_and_missing_has_its_own():
    values = ["a"] * 30 + ["b"] * 20 + ["r1", "r2"] + [""] * 6
    column, notes = decide(*values)
    assert column.feature_names == ["x=a", "x=b", "x=(other)", "x=(missing)"]
    assert "2 rare categories counted as one" in noted(notes)
    assert "6 missing values (10.3%) kept as a category of their own" in noted(notes)
    encoded, said = column.encode(text("r1", "r2", "", "a"))
    assert encoded.tolist() == [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert said == []
    assert "r1" not in str(column)


def test_fifty_one_states_are_fifty_one():
    values = [f"state{i}" for i in range(51) for _ in range(7)]
    column, _ = decide(*values)
    assert len(column.levels) == 51
    assert not column.other


def test_text_with_no_repeated_value_teaches_nothing():
    out, _ = decide("a", "b", "c", "d")
    assert out.reason == "no value in 5 rows or more: nothing to learn from"
    out, _ = decide(*(f"t{i}" for i in range(150) for _ in range(4)))
    assert out.reason == "no value in 5 rows or more: nothing to learn from"


def test_days_and_months_that_may_be_either_are_asked_for():
    values = [f"0{1 + i % 9}/0{1 + i % 7}/2020" for i in range(60)]
    out, _ = decide(*values)
    assert str(out).endswith("say which with dayfirst=True or dayfirst=False")
    assert out.in_flags.endswith("say which with --dayfirst or --monthfirst")
    column, _ = decide(*values, dayfirst=True)
    assert column.form == "%d/%m/%Y"


def test_numbers_on_request():
    column, _ = decide(*(["1", "2", "x", "y"] * 10), number=True)
    assert isinstance(column, NumberColumn)
    assert column.excused == ("x", "y")
    assert column.gaps
    with pytest.raises(TableError, match="'x' cannot be taken as numbers: 'a' is none"):
        decide("a", "b", number=True)


def test_a_column_asked_for_by_name_is_used():
    counts = [str(i) for i in range(1, 50)]
    column, _ = decide(*counts, name="TIME", use=True)
    assert isinstance(column, NumberColumn)
    assert isinstance(decide(*counts, name="TIME")[0], LeftOut)
    words = ["a"] * 6 + ["b"] * 6 + [f"w{i}" for i in range(40)]
    assert isinstance(decide(*words, use=True)[0], CategoryColumn)
    frame = pd.DataFrame({"id": counts, "x": counts[::-1]})
    assert list(
        TableEncoder(use=("id",), number=("id", "x")).fit(frame).get_feature_names_out()
    ) == ["id", "x"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("28.0", "28"), ("28.00", "28"), ("-3.0", "-3"), ("28.5", "28.5"), ("007", "007"), ("a", "a")],
)
def test_one_spelling_of_a_level(raw, expected):
    assert canonical(raw) == expected


def test_a_category_reads_the_same_from_text_and_from_numbers():
    column, _ = decide(*(["28.0", "3.0"] * 10), category=True)
    numbers = NumberCells("x", np.array([28.0, 3.0, np.nan]))
    np.testing.assert_array_equal(
        column.encode(numbers)[0], column.encode(text("28", "3.0", ""))[0]
    )


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (pd.Series([1, 2, None], dtype="Int64"), NumberCells),
        (pd.Series([1.5, None]), NumberCells),
        (pd.Series([decimal.Decimal("1.5"), None], dtype=object), NumberCells),
        (pd.Series([1, 2.5, None], dtype=object), NumberCells),
        (pd.Series([True, None], dtype=object), NumberCells),
        (pd.Series(pd.to_timedelta([1, 2], unit="D")), NumberCells),
        (pd.Series(["a", None]), TextCells),
        (pd.Series(["a", 1, None], dtype=object), TextCells),
        (pd.Series(["a", None], dtype="category"), TextCells),
    ],
)
def test_series_of_every_type(series, kind):
    cells = cells_of("x", series)
    assert isinstance(cells, kind)
    assert cells.missing.tolist() == series.isna().tolist()


def test_dates_as_objects_are_dates():
    cells = cells_of("x", pd.Series([datetime.date(1970, 1, 3), None], dtype=object))
    assert cells.days("ISO8601")[0] == 2.0
    assert cells.levels()[1] == ["1970-01-03"]
    assert np.isnan(cells.numbers()).all()


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([[1], [2]]),
        pd.Series([{"a": 1}, None]),
        pd.Series([b"x", b"y"]),
        pd.Series([1j, 2j]),
    ],
)
def test_what_is_not_a_single_value_has_no_cells(series):
    assert cells_of("x", series) is None


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(60),
            "size": rng.normal(size=60),
            "kind": rng.choice(["p", "q", "r"], 60),
            "flag": rng.choice(["yes", "no"], 60),
            "when": pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d"),
            "same": "s",
            "things": [[1]] * 60,
        }
    )


def test_the_encoder_leaves_out_what_teaches_nothing(table):
    encoder = TableEncoder().fit(table)
    assert [out.name for out in encoder.left_out_] == ["id", "same", "things"]
    assert encoder.get_feature_names_out()[0] == "size"
    assert encoder.transform(table).shape == (60, 6)
    assert not np.isnan(encoder.transform(table)).any()


def test_levels_of_a_category_are_one_group(table):
    encoder = TableEncoder().fit(table)
    assert encoder.feature_groups_.tolist() == ["size", *["kind"] * 3, "flag", "when"]


def test_column_order_and_extra_columns_do_not_matter(table):
    encoder = TableEncoder().fit(table)
    shuffled = table[table.columns[::-1]].assign(extra=1)
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(table))


def test_missing_columns_are_named(table):
    encoder = TableEncoder().fit(table)
    with pytest.raises(TableError, match="lacks the columns 'size', 'kind' the model"):
        encoder.transform(table.drop(columns=["size", "kind"]))


def test_a_column_that_turned_into_lists_is_named(table):
    encoder = TableEncoder().fit(table)
    with pytest.raises(TableError, match="column 'size' does not hold single values"):
        encoder.transform(table.assign(size=table["things"]))


def test_duplicate_names_are_refused(table):
    twice = pd.concat([table[["size"]], table[["size"]]], axis=1)
    with pytest.raises(TableError, match="column names must differ; 'size'"):
        TableEncoder().fit(twice)


def test_nothing_to_learn_from_is_said_with_reasons(table):
    with pytest.raises(TableError, match=r"left to learn from in 60 samples \('same': constant"):
        TableEncoder().fit(table[["same"]])


def test_too_wide_a_table_is_refused(monkeypatch):
    monkeypatch.setattr("hetrisk.tables.encoder.MOST_FEATURES", 4)
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 5)))
    with pytest.raises(TableError, match=r"more than 4 features, .* \(5 columns\)"):
        TableEncoder().fit(wide)


def test_categories_on_request_must_exist(table):
    with pytest.raises(TableError, match="category names columns that the table has not: 'nope'"):
        TableEncoder(category=("nope",)).fit(table)


def test_feature_names_stay_unique():
    frame = pd.DataFrame({"a": ["x", "y", "y"] * 10, "a=x": np.arange(30) % 7})
    names = TableEncoder().fit(frame).get_feature_names_out()
    assert list(names) == ["a=x", "a=x (2)"]


def test_output_as_a_data_frame_keeps_the_names(table):
    encoder = TableEncoder().fit(table).set_output(transform="pandas")
    assert list(encoder.transform(table).columns) == list(encoder.get_feature_names_out())


cells = st.one_of(
    st.none(),
    st.sampled_from(sorted(MISSING)),
    st.integers(-5, 5).map(str),
    st.floats().map(str),
    st.sampled_from(["yes", "no", "2020-01-01", "a", "b", "0x1f", "1_0", "1e400", "٣"]),
    st.text(max_size=5),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(cells, min_size=1, max_size=40), st.text(max_size=8))
def test_any_column_is_understood_and_encodes_itself(values, name):
    """Law: what is understood encodes its own cells, finitely, and so it does twice over."""
    column = TextCells(name, values)
    decision, _ = understand(column)
    if isinstance(decision, LeftOut):
        return
    encoded, _ = decision.encode(column)
    assert encoded.shape == (len(values), len(decision.feature_names))
    assert np.isfinite(encoded).all()
    assert np.ptp(encoded, axis=0).max() > 0
    np.testing.assert_array_equal(decision.encode(column)[0], encoded)


@settings(max_examples=80, deadline=None)
@given(st.lists(cells, min_size=2, max_size=30), st.randoms())
def test_the_order_of_rows_decides_nothing(values, random):
    """Law: permuting rows permutes the encoding, unless the column merely counted the rows."""
    order = list(range(len(values)))
    random.shuffle(order)
    first, _ = understand(TextCells("x", values))
    second, _ = understand(TextCells("x", [values[i] for i in order]))
    if isinstance(first, LeftOut) or isinstance(second, LeftOut):
        assert (first == second) or "counts the rows" in str((first, second))
        return
    assert first == second


@pytest.mark.parametrize("cells", [("10/2014", "01/1970"), ("Oct 2014", "Jan 1970")])
def test_months_are_dates(cells):
    column, notes = decide(*cells)
    assert isinstance(column, DateColumn)
    assert column.encode(text(*cells))[0].ravel().tolist() == [16344.0, 0.0]
    assert "turned into days" in noted(notes)


def test_a_year_with_one_row_each_is_the_time_and_no_identifier():
    years = [str(year) for year in range(1950, 2010)]
    assert isinstance(decide(*years, name="YEAR")[0], NumberColumn)
    assert decide(*years, name="case")[0].reason == "an identifier: it counts the rows"


def test_names_of_rows_are_identifiers_in_a_table_of_a_dozen():
    rows = [str(i) for i in range(1, 13)]
    for name in ("rownames", "id", "Unnamed: 0"):
        assert decide(*rows, name=name)[0].reason.startswith("an identifier, by its name")
    assert isinstance(decide(*rows, name="index")[0], NumberColumn)
