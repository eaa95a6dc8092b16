"""How columns write their numbers, and what is not guessed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.tables import LeftOut, TableEncoder, TableError, read_target
from hetrisk.tables.category import CategoryColumn
from hetrisk.tables.cells import TextCells
from hetrisk.tables.columns import ClockColumn, NumberColumn
from hetrisk.tables.inference import understand
from hetrisk.tables.notation import Notation, clock, notation_of


def numbers(*texts):
    found = notation_of(texts)
    assert not found.trouble
    return [found.notation.read(text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["7,700", "656"], [7700, 656]),
        (["7.700", "656"], [7700, 656]),
        (["7,7", "656"], [7.7, 656]),
        (["7,700", "3,14"], [7.7, 3.14]),
        (["0,123", "7,700"], [0.123, 7.7]),
        (["1,234.50", "17"], [1234.5, 17]),
        (["1.234,50", "17"], [1234.5, 17]),
        (["1,234,567", "1,234"], [1234567, 1234]),
        (["1 234,5", "0"], [1234.5, 0]),
        (["1\u202f234", "1\u00a0234\u00a0567"], [1234, 1234567]),
        (["1'234.50", "1’000.00"], [1234.5, 1000]),
        (["12,34,567", "99"], [1234567, 99]),
        (["1.333", "1", "1.667"], [1.333, 1, 1.667]),
        (["1.234", "2.567"], [1.234, 2.567]),
        (["12,5%", "3 %", "0"], [12.5, 3, 0]),
        (["$1,234.56", "-$5", "$-5", "7"], [1234.56, -5, -5, 7]),
        (["1.234,50 EUR", "3 EUR"], [1234.5, 3]),
        (["€ 1.000.000", "€ 5"], [1e6, 5]),
        (["(1,500)", "250"], [-1500, 250]),
        (["\u22125", "3"], [-5, 3]),
        (["1,5e3", "2,25"], [1500, 2.25]),
    ],
)
def test_what_a_column_means(texts, values):
    assert numbers(*texts) == values


@pytest.mark.parametrize(
    ("texts", "trouble"),
    [
        (["1,234", "5,678"], "cannot be told whether '1,234' is 1234 or 1.234: say which with"),
        (["1,333", "2", "1,667"], "cannot be told whether '1,333' is 1333 or 1.333"),
        (["7,700", "1500"], "cannot be told"),
        (["7,700", "7.700"], "cannot be told"),
        (["1,234.5", "1.234,5"], "more than one way ('1,234.5' and '1.234,5')"),
        (["1,234,567", "3,14"], "more than one way"),
        (["$5", "€3"], "different units ('$' and '€')"),
        (["12%", "0.12"], "some values are in percent and some are not ('0.12')"),
    ],
)
def test_what_is_not_guessed(texts, trouble):
    assert trouble in notation_of(texts).trouble
    out, _ = understand(TextCells("x", texts * 10))
    assert isinstance(out, LeftOut)
    assert trouble in out.reason
    frame = pd.DataFrame({"y": texts * 10})
    if len(texts) > 2 or "cannot" in trouble:
        with pytest.raises(TableError, match="the target 'y': "):
            read_target(frame, "y", "regression")


def text_frame(**columns):
    return pd.DataFrame(columns, dtype=object)


def test_the_user_or_the_rest_of_the_table_decides():
    frame = text_frame(pay=["1,234", "5,678", "2,500"] * 10)
    assert TableEncoder(decimal=".").fit(frame).transform(frame)[0, 0] == 1234
    assert TableEncoder(decimal=",").fit(frame).transform(frame)[0, 0] == 1.234
    with pytest.raises(TableError, match=r"say which with decimal='.' or decimal=','"):
        TableEncoder().fit(frame)
    for other, value in (("3.14", 1234), ("3,14", 1.234)):
        table = text_frame(pay=frame["pay"], other=[other, "2", "1"] * 10)
        assert TableEncoder().fit(table).transform(table)[0, 0] == value
    # A column that shows its own mark is not overruled.
    shown = text_frame(a=["3,14", "2,5", "1"] * 10)
    assert TableEncoder(decimal=".").fit(shown).transform(shown)[0, 0] == 3.14


def test_what_was_done_is_said():
    encoder = TableEncoder().fit(
        text_frame(
            a=["7,700", "656", "12"] * 10,
            b=["3,14", "2", "1"] * 10,
            c=["12,5%", "3%", "4%"] * 10,
            d=["$5", "$6", "$7"] * 10,
        )
    )
    said = {str(note) for note in encoder.notes_}
    assert "'a': commas read as thousands separators ('7,700' is 7700)" in said
    assert "'b': commas read as decimal points ('3,14' is 3.14)" in said
    assert "'c': percent: 12.5% read as 12.5" in said
    assert "'d': amounts in $ read as numbers" in said


def test_a_target_with_separators_is_a_number():
    amounts = [f"{1000 + 37 * i:,}.50" for i in range(100)]
    found = read_target(pd.DataFrame({"y": amounts}), "y")
    assert found.task == "regression"
    assert found.values[1] == 1037.5
    assert "thousands separators" in str(found.notes[0])


def test_new_rows_are_read_as_the_training_rows_were():
    column, _ = understand(TextCells("x", ["7,700", "656", "1,200"]))
    assert column.encode(TextCells("x", ["1,234"]))[0].tolist() == [[1234.0]]
    assert column.encode(TextCells("x", ["1,234.5"]))[0].tolist() == [[1234.5]]
    comma, _ = understand(TextCells("x", ["7,7", "656"]))
    assert comma.encode(TextCells("x", ["1,234"]))[0].tolist() == [[1.234]]
    assert comma.encode(TextCells("x", ["1.234,5"]))[0].tolist() == [[1234.5]]
    for strange in ("3.14", "1.234"):
        with pytest.raises(TableError, match=r"row 1: '.*' is not a number written like '1234,5'"):
            comma.encode(TextCells("x", [strange]))
    plain, _ = understand(TextCells("x", ["7.5", "656"]))
    with pytest.raises(TableError, match="row 1: '1,234' is not a number"):
        plain.encode(TextCells("x", ["1,234"]))


def test_the_encoder_keeps_the_notation():
    rng = np.random.default_rng(0)
    pay = rng.integers(200, 9000, 80)
    frame = pd.DataFrame(
        {
            "pay": [f"{value:,}" for value in pay],
            "at": [f"{hour}:30" for hour in rng.integers(0, 24, 80)],
            "paid": rng.choice(["ja", "nein"], 80),
        },
        dtype=object,
    )
    encoder = TableEncoder().fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame)[:, 0], pay)


def test_texts_with_a_few_numbers_stay_categories():
    column, _ = understand(TextCells("x", ["1,5", "low", "high"] * 10))
    assert isinstance(column, CategoryColumn)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("14:30", 14.5),
        ("2:30 pm", 14.5),
        ("12:00 AM", 0),
        ("12:15 p.m.", 12.25),
        ("06:00:36", 6.01),
    ],
)
def test_times_of_day(text, hours):
    assert clock(text) == pytest.approx(hours)


@pytest.mark.parametrize("text", ["14:60", "1430", "13:00 pm", "a:bc", "0:30am", ""])
def test_what_is_no_time(text):
    assert np.isnan(clock(text))


def test_times_are_hours_since_midnight():
    column, notes = understand(TextCells("x", ["14:30", "06:00", "", "07:00"]))
    assert isinstance(column, ClockColumn)
    assert "times of day turned into hours since midnight" in str(notes[0])
    encoded, _ = column.encode(TextCells("x", ["12:30", ""]))
    assert encoded.tolist() == [[12.5], [7.0]]
    with pytest.raises(TableError, match="'noon' is not a time of day"):
        column.encode(TextCells("x", ["noon"]))


def test_times_of_a_data_frame_are_times():
    import datetime

    frame = pd.DataFrame({"at": [datetime.time(14, 30), datetime.time(6, 0), None] * 10})
    assert TableEncoder().fit(frame).transform(frame)[:3, 0].tolist() == [14.5, 6.0, 10.25]


spellings = st.tuples(
    st.sampled_from([(".", ","), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'")]),
    st.sampled_from(["", "%", "$", " EUR"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=3, max_size=20, unique=True), spellings)
def test_every_notation_is_read_back(cents, spelling):
    """Law: amounts written with two decimals in any notation are read back to the last digit."""
    (decimal, thousands), unit = spelling
    values = [cent / 100 for cent in cents]
    marks = str.maketrans({",": thousands, ".": decimal})
    texts = [f"{value:,.2f}".translate(marks) + unit for value in values]
    found = notation_of(texts)
    assert [found.notation.read(text) for text in texts] == values


@settings(max_examples=100, deadline=None)
@given(st.text("0123456789.,' -+$%()eE", max_size=12))
def test_any_text_is_read_or_not_without_an_error(text):
    """Law: a text spells a finite number, an infinity or NaN, and nothing fails."""
    for notation in (
        Notation(),
        Notation(",", "."),
        Notation(".", ",", "$"),
        Notation(",", "", "%"),
    ):
        assert isinstance(notation.read(text), float)
    notation_of([text, "1"])


@pytest.mark.parametrize(
    ("name", "values", "flagged"),
    [
        ("mode", [1, 2, 3, 4], True),
        ("marital_status", [1, 2, 3], True),
        ("children", [0, 1, 2, 3, 4], False),
        ("rating", [1, 2, 3, 4, 5], False),
        ("answer", [1, 2, 3, 99], True),
        ("age", list(range(18, 100)), False),
        ("model", [0.5, 1.5, 2.5], False),
    ],
)
def test_codes_are_pointed_out_and_stay_numbers(name, values, flagged):
    column, notes = understand(TextCells(name, [str(v) for v in values] * 6))
    assert isinstance(column, NumberColumn)
    said = f"'{name}': looks like a code: --category {name}" in [note.in_flags for note in notes]
    assert said == flagged
