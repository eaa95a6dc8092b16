"""Labels, numbers, scales and elements: the small parts the page is made of."""

import math
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.report.curves import _crossing, _stretched
from hetrisk.report.labels import (
    brief,
    fixed,
    number,
    percent,
    precise,
    probability,
    readable,
    shortened,
    tick,
    unique_labels,
)
from hetrisk.report.svg import Scale, element
from report_models import HOSTILE

texts = st.one_of(st.text(alphabet=st.characters()), st.sampled_from(HOSTILE))
finite = st.floats(-1e12, 1e12)


@given(texts)
def test_readable_text_can_be_written_and_acts_on_nothing(text):
    shown = readable(text)
    assert shown
    shown.encode("utf-8")
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200f")


def test_readable_keeps_what_is_harmless():
    assert readable("naïve 👩🏽‍🔬 ميزة") == "naïve 👩🏽‍🔬 ميزة"
    assert readable("a\x00\u202e") == r"a\x00\u202e"
    assert readable("") == "(no name)"


@given(st.text(), st.integers(4, 60))
def test_shortened_text_is_short_and_keeps_both_ends(text, longest):
    short = shortened(text, longest)
    assert len(short) <= longest
    if len(text) > longest:
        assert text.startswith(short.partition("…")[0] if "…" not in text else "")
        assert short[-1] == text[-1]


@given(st.text(max_size=200) | texts, st.text(max_size=20), st.integers(4, 60), st.integers(0, 99))
def test_a_brief_text_is_a_readable_one_shortened(text, other, longest, times):
    """However long: times many repeats push the text past the length at which ends are read."""
    whole = text + times * other + text
    assert brief(whole, longest) == shortened(readable(whole), longest)


@given(st.lists(texts, max_size=12))
def test_labels_are_unique(names):
    labels = unique_labels(names)
    assert len(set(labels)) == len(names)


def test_a_numbered_label_makes_room_for_a_column_of_that_name():
    assert len(set(unique_labels(["a", "a", "a [1]"]))) == 3


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (-3.14159, "−3.14"),
        (999.96, "1,000"),
        (1234567.0, "1,234,567"),
        (1.5e9, "1.50e9"),
        (2.5e-7, "2.50e−7"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


@given(finite.filter(lambda v: v == 0 or abs(v) > 1e-300))
def test_a_number_can_be_read_back(value):
    read = float(number(value, 4).replace("−", "-").replace(",", ""))
    assert read == pytest.approx(value, rel=6e-4)


@pytest.mark.parametrize(
    ("value", "options", "shown"),
    [
        (0.123, {}, "12\u00a0%"),
        (0.0123, {}, "1.2\u00a0%"),
        (0.0996, {}, "10\u00a0%"),
        (-0.05, {"signed": True}, "−5.0\u00a0%"),
        (0.05, {"signed": True}, "+5.0\u00a0%"),
        (-0.0001, {"signed": True}, "0.0\u00a0%"),
        (9.0, {"decimals": 1}, "900.0\u00a0%"),
        (12.0, {"decimals": 1}, "> 999\u00a0%"),
        (-12.0, {"signed": True}, "< −999\u00a0%"),
        (math.nan, {}, "–"),
    ],
)
def test_percentages(value, options, shown):
    assert percent(value, **options) == shown


def test_columns_line_up():
    assert [fixed(v) for v in (4.1, 0.08, -0.001, math.inf)] == ["4.10", "0.08", "0.00", "∞"]


def test_probabilities_are_never_zero():
    assert probability(0.0) == "< 0.0001"
    assert probability(0.0312) == "0.031"
    assert probability(math.nan) == "–"


def test_ticks_are_short():
    assert [tick(v) for v in (0.1, 2.0, -2.5, 20000, 3e-9)] == [
        "0.1",
        "2",
        "−2.5",
        "20,000",
        "3e−09",
    ]


@given(
    st.floats(-1e6, 1e6),
    st.floats(0.01, 1e6),
    st.sampled_from([None, 0.02, 0.2]),
    st.integers(3, 9),
)
def test_a_scale_maps_its_ticks_in_order_into_the_picture(low, width, linear, count):
    low = min(low, 0.0) if linear else low
    scale = Scale(low, low + width, linear)
    assert scale(scale.low) == 0
    assert scale(scale.high) == 1
    assert scale(scale.low - 1) == 0
    ticks = scale.ticks(count)
    assert len(ticks) <= 2.5 * count + 3
    places = [scale(t) for t in ticks]
    assert places == sorted(places)
    assert all(scale.low - 1e-6 * width <= t <= scale.high + 1e-6 * width for t in ticks)


def test_a_scale_of_one_value_puts_it_in_the_middle():
    assert Scale(3.0, 3.0)(3.0) == 0.5
    assert Scale(3.0, 3.0).ticks() == (3.0,)
    assert Scale(-1e308, 1e308)(0.0) == 0.5
    assert Scale(-1e308, 1e308).ticks() == (-1e308,)
    assert Scale(0.0, 5e-324).ticks() == (0.0,)


def test_ticks_are_round():
    assert Scale(0, 1).ticks(5) == (0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert Scale(0, 30, 0.2).ticks(6) == (0, 0.2, 1, 2, 5, 10, 20)


@given(texts, texts)
def test_elements_escape_children_and_attributes(child, value):
    written = element("text", child, aria_label=value, x=1.5, y=None)
    inside = written.removeprefix("<text").removesuffix("</text>")
    assert not set(inside.partition(">")[2]) & set("<>\"'")
    attributes = inside.partition(">")[0]
    assert "<" not in attributes
    assert attributes.count('"') == 4
    assert 'x="1.5"' in attributes
    assert " y=" not in attributes


@pytest.mark.parametrize(
    ("value", "spread", "shown"),
    [
        (-122.213, 0.1, "−122.21"),
        (1937.6, 18.0, "1,938"),
        (0.5, 0.5, "0.50"),
        (11088.2, 30000.0, "11,088"),
        (3.14159, 0.0, "3.14"),
        (math.nan, 1.0, "–"),
    ],
)
def test_means_are_as_precise_as_their_spread(value, spread, shown):
    assert precise(value, spread) == shown


def test_a_band_is_cut_off_where_it_leaves_the_picture():
    reach = np.array([0.0, 1.0, 2.0, 4.0])
    flat, steep = np.full(4, 0.5), np.array([0.5, 1.0, 2.0, 30.0])
    drawn = str(_stretched(reach, flat, flat, steep, Scale(0.0, 4.0), Scale(0.0, 4.0), "hrm"))
    points = re.search('points="([^"]*)"', drawn)[1].split()
    top = [float(p.split(",")[0]) for p in points if float(p.split(",")[1]) == 0.0]
    # From 2 at reach 2 to 30 at reach 4: past 4 a seventh of the way from reach 2, at 2 + 1/7.
    assert min(top) == pytest.approx(25.0 * (2.0 + 1.0 / 7.0), abs=0.01)


def test_values_that_are_not_finite_cross_nothing():
    found = _crossing(np.arange(3.0), np.array([0.0, np.nan, np.inf]), 1.0)
    assert len(found) == 0
