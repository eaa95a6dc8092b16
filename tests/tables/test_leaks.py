"""Columns that give the target away, and columns that repeat each other."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk.tables import TableEncoder, find_leaks, read_target
from hetrisk.tables.encoding import cells_in, places_of

RNG = np.random.default_rng(0)
WAGE = np.exp(RNG.normal(2.0, 0.6, 300)).round(4)
NOISE = RNG.normal(size=300)


def leaks_of(frame, target="y", task="auto"):
    wanted = read_target(frame, target, task)
    rows = frame.drop(columns=target).loc[wanted.known]
    columns = [c for c in TableEncoder().fit(rows).columns_ if c.kind != "date"]
    features = [c.observed(cells_in(rows, places_of(rows), c)) for c in columns]
    return list(find_leaks([c.name for c in columns], features, wanted.values, target))


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (WAGE, "copy", "is a copy of the target 'wage': drop it?"),
        (np.log(WAGE), "log", "'x' is the logarithm of the target: drop it?"),
        (np.log10(WAGE).round(5), "log", "is the logarithm of the target"),
        (np.exp(WAGE / 10), "determines", "alone tells the target"),
        (1 - WAGE, "line", "is one minus the target"),
        (WAGE * 1.0936, "line", "is the target in another unit (times 1.0936)"),
        (WAGE * 1.8 + 32, "line", "(times 1.8, plus 32)"),
        (WAGE**2, "determines", "alone tells the target"),
        (1 / WAGE, "determines", "alone tells the target"),
        ((WAGE * 1.0936).round(2), "line", "in another unit"),
        (np.where(NOISE > 1.5, np.nan, np.log(WAGE)), "log", "is the logarithm"),
    ],
)
def test_functions_of_the_target_are_named(column, kind, words):
    leaks = leaks_of(pd.DataFrame({"x": column, "noise": NOISE, "wage": WAGE}), "wage")
    assert [(leak.column, leak.kind) for leak in leaks] == [("x", kind)]
    assert words in str(leaks[0])


def test_what_nearly_determines_the_target_is_named():
    steps = np.repeat(RNG.normal(size=30), 10) * 5
    frame = pd.DataFrame({"x": np.repeat(RNG.permutation(30), 10) + 0.5, "noise": NOISE})
    frame["y"] = steps + 0.1 * NOISE
    (leak,) = leaks_of(frame)
    assert (leak.column, leak.kind) == ("x", "determines")
    assert "alone tells the target 'y' almost exactly (R2 = 0.99" in str(leak)


def test_parts_that_add_up_to_the_target_are_named():
    a, b = RNG.poisson(20, 300), RNG.poisson(50, 300)
    frame = pd.DataFrame({"casual": a, "registered": b, "noise": NOISE, "count": a + b})
    (leak,) = leaks_of(frame, "count")
    assert leak.kind == "parts"
    assert "'casual' and 'registered' together make up the target 'count' exactly" in str(leak)


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (lambda y: np.where(y == "yes", "ja", "nein"), "copy", "says the same as the target"),
        (lambda y: np.where(y == "yes", 3.0, 7.0), "copy", "in every row"),
        (
            lambda y: np.where(y == "yes", 5, -5) + NOISE,
            "determines",
            "alone tells the target 'y' in 99.",
        ),
        (
            lambda y: np.where(y == "yes", RNG.choice(["a", "b"], 300), "c"),
            "determines",
            "alone tells the target 'y'",
        ),
    ],
)
def test_classes_given_away_are_named(column, kind, words):
    y = np.where(RNG.random(300) < 0.4, "yes", "no")
    frame = pd.DataFrame({"x": column(y), "noise": NOISE, "y": y})
    (leak,) = leaks_of(frame)
    assert (leak.column, leak.kind) == ("x", kind)
    assert words in str(leak)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.3, 3.0), st.booleans())
def test_honest_predictors_are_no_leaks(seed, noise, classes):
    """Law: a column that explains up to nine tenths of the target is not called a leak."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 0.5, 0.0] + noise * rng.normal(size=200)
    y = np.where(y > 0, "a", "b") if classes else y
    assert find_leaks(list("abc"), np.split(X, 3, axis=1), y, "y") == ()


def test_a_date_is_no_leak_however_smooth_the_target():
    when = pd.date_range("2000-01-01", periods=300)
    frame = pd.DataFrame({"when": when, "noise": NOISE, "y": np.arange(300) ** 1.5})
    assert leaks_of(frame) == []


def test_parts_are_found_beside_columns_with_many_gaps():
    rng = np.random.default_rng(0)
    before, after, death = rng.normal(size=(3, 400))
    death[rng.random(400) < 0.8] = np.nan
    before[:3] = np.nan
    columns = [before[:, None], death[:, None], after[:, None]]
    known = np.where(np.isnan(before), 0.5, after - before)
    (leak,) = find_leaks(["before", "death", "after"], columns, known, "gain")
    assert leak.kind == "parts"
    assert leak.column == "before + after"


def test_too_few_rows_or_values_tell_nothing():
    assert find_leaks(["x"], [np.arange(10.0)[:, None]], np.arange(10.0), "y") == ()
    rating = np.arange(60) % 3 + 1.0
    assert find_leaks(["x"], [rating[:, None]], rating, "y") == ()


@pytest.mark.parametrize("unit", [1e-290, 1e-200, 1e200, 1e290])
@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_leaks_are_found_in_any_unit(unit, scale):
    """Squares of such numbers are none: nothing overflows, and nothing is taken for noise."""
    rng = np.random.default_rng(0)
    base = np.abs(rng.normal(size=200))
    columns = {"unit": base * scale, "noise": rng.normal(size=200) * scale, "root": base**0.5}
    features = [values[:, None] for values in columns.values()]
    leaks = find_leaks(list(columns), features, base * unit, "y")
    kinds = [(leak.column, leak.kind) for leak in leaks]
    assert kinds == [("unit", "line"), ("root", "determines")]


def test_a_column_that_cuts_the_target_into_ranges_is_named():
    rng = np.random.default_rng(0)
    weight = rng.normal(7, 1.5, 400).round(2)
    weight[:2] = 5.5
    low = np.where((weight < 5.5) | (np.arange(400) == 0), "low", "not low")
    (leak,) = leaks_of(
        pd.DataFrame({"low": low, "other": rng.choice(["p", "q"], 400), "y": weight})
    )
    assert leak.kind == "range"
    assert leak.sentence == "'low' says in which range the target 'y' lies: drop it?"
    gift = np.maximum(rng.normal(size=400), 0)
    answered = pd.DataFrame({"answered": gift > 0, "a": rng.normal(size=400), "y": gift})
    assert [leak.column for leak in leaks_of(answered)] == ["answered"]


def test_a_column_beside_a_target_that_is_mostly_zero_cuts_nothing():
    rng = np.random.default_rng(0)
    drinks = np.where(rng.random(600) < 0.02, rng.integers(1, 9, 600), 0)
    rare = (rng.random(600) < 0.05) & (drinks == 0)  # all of them at zero, as most rows are
    assert not leaks_of(pd.DataFrame({"rare": rare, "a": rng.normal(size=600), "y": drinks}))


def test_a_column_that_rises_with_the_rows_of_a_series_is_no_leak():
    rng = np.random.default_rng(0)
    months = np.arange(500)
    jobless = 100 + 10 * np.sin(months / 40) + 0.1 * rng.normal(size=500)
    people = 2e5 + 200 * months + 20 * rng.normal(size=500)
    series = pd.DataFrame({"people": people, "a": rng.normal(size=500), "y": jobless})
    assert not leaks_of(series)
    shuffled = series.sample(frac=1, random_state=0)
    assert [leak.column for leak in leaks_of(shuffled)] == ["people"]
