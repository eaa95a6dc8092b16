"""What is said of the rows: weights of columns, what differs, and what may hurt later."""

from dataclasses import replace

import numpy as np
import pytest

from hetrisk.report.horizons import ahead
from hetrisk.report.learned import (
    Sample,
    cautions,
    column_lines,
    column_weights,
    differences,
    quality,
)
from hetrisk.tables.time import TimeColumn

COEF = np.array([2.0, 0.5, 0.0])


def sample(n=400, seed=0, coef=COEF, **changes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X @ COEF + 0.3 * rng.normal(size=n)
    made = Sample(
        X=X,
        observed=X,
        names=("size", "age", "idle"),
        groups=("size", "age", "idle"),
        y=y[:, None],
        predicted=(X @ coef)[:, None],
        predict=lambda Z, rows: (Z @ coef)[:, None],
    )
    return replace(made, **changes)


def test_weights_say_what_moves_predictions():
    weights = column_weights(sample())
    assert weights["size"] > 3 * weights["age"] > 0
    assert weights["idle"] == 0
    assert [line.name for line in column_lines(sample())] == ["size", "age", "idle"]


def test_weights_do_not_depend_on_the_order_of_rows():
    s = sample()
    order = np.random.default_rng(1).permutation(len(s.X))
    parts = ("X", "observed", "y", "predicted")
    shuffled = replace(s, **{name: getattr(s, name)[order] for name in parts})
    assert column_weights(shuffled) == pytest.approx(column_weights(s))


def test_what_differs_in_an_environment_is_named():
    s = sample(600)
    place = np.repeat(["north", "south", "west"], 200)
    X, y = s.X.copy(), s.y.copy()
    X[:200, 1] += 3
    y[200:400] += 4
    y[400:] = (X[400:] @ [-2.0, 0.5, 0])[:, None]
    s = replace(s, X=X, observed=X, y=y, predicted=(X @ COEF)[:, None], environment=place)
    found = {d.environment: " ".join(d.sentences) for d in differences(s, "price", column_lines(s))}
    assert "mean age 3.0" in found["north"]
    assert "mean price" in found["south"]
    assert "a unit of size is worth" in found["west"]
    assert "less than on average" in found["west"]


def test_nothing_differs_where_nothing_does():
    place = np.repeat(["a", "b"], 200)
    s = sample(environment=place)
    assert differences(s, "y", column_lines(s)) == ()


def test_a_column_all_but_constant_with_a_large_weight_is_said():
    """As in a table of states of which one row had a value, whose weight wrecked the future."""
    X = np.column_stack([np.random.default_rng(0).normal(size=(816, 2)), np.zeros(816)])
    X[7, 2] = 1.0
    coef = np.array([1.0, 0.0, 3.0])
    y = X @ coef
    s = sample(
        X=X,
        observed=X,
        names=("a", "b", "gdl"),
        groups=("a", "b", "gdl"),
        y=y[:, None],
        predicted=y[:, None],
        predict=lambda Z, rows: (Z @ coef)[:, None],
    )
    (said,) = cautions(s, column_lines(s))
    assert said.startswith("gdl is 0 in all but 1 row, yet moves predictions by 3.0 standard")


def test_a_column_that_leaves_its_range_is_said():
    s = sample()
    time = np.arange(400.0)
    X = s.X.copy()
    X[:, 0] += time / 40
    s = replace(s, X=X, observed=X, time=time)
    (said,) = cautions(s, column_lines(s))
    assert said.startswith("size leaves its range: ")


def test_outcomes_are_grouped_by_prediction():
    numbers = quality(sample())
    assert len(numbers.predicted) == 10
    assert sum(numbers.count) == 400
    assert np.allclose(numbers.predicted, numbers.observed, atol=0.2)
    assert quality(sample(n=12)) is None
    share = np.random.default_rng(0).random(400)
    happened = (share > np.random.default_rng(1).random(400)).astype(float)
    both = np.column_stack([1 - happened, happened]), np.column_stack([1 - share, share])
    labels = quality(sample(y=both[0], predicted=both[1], classes=("no", "yes")))
    assert labels.outcome == "yes"
    inside = [
        a <= p <= b for a, p, b in zip(labels.low, labels.predicted, labels.high, strict=True)
    ]
    assert sum(inside) >= 8


@pytest.mark.parametrize(
    ("span", "kind", "unit", "name", "words"),
    [
        (3.0, "number", "", "year", "3 years ahead"),
        (1.0, "number", "", "Year", "1 year ahead"),
        (2.5, "number", "", "wave", "2.5 waves ahead"),
        (4.0, "number", "", "t", ""),
        (10.0, "date", "", "when", "10 days ahead"),
        (45.0, "date", "", "when", "6 weeks ahead"),
        (200.0, "date", "", "when", "7 months ahead"),
        (1500.0, "date", "", "when", "4 years ahead"),
        (6.0, "period", "M", "when", "6 months ahead"),
        (4.0, "period", "Q", "when", "12 months ahead"),
    ],
)
def test_horizons_are_in_the_words_of_time(span, kind, unit, name, words):
    assert ahead(span, TimeColumn(np.empty(0), name, kind, unit=unit)) == words
