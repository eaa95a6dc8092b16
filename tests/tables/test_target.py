"""The target: the task it makes, its values, and targets nobody can predict."""

import numpy as np
import pandas as pd
import pytest

from hetrisk.tables import TableError, read_target


def target(values, task="auto"):
    return read_target(pd.DataFrame({"y": values}), "y", task)


@pytest.mark.parametrize(
    ("values", "task", "reason"),
    [
        ([">50K", "<=50K"] * 10, "classification", "text with 2 different values"),
        ([0, 1] * 10, "classification", "two different values"),
        (["0.5", "1.5"] * 10, "classification", "two different values"),
        ([True, False] * 10, "classification", "two different values"),
        (["true", "false"] * 10, "classification", "text with 2 different values"),
        ([1, 2, 3, 4, 5] * 5, "regression", "counts or rates, with 5 different values"),
        (["1", "2", "x"] * 10, "classification", "text and numbers"),
        (list(range(11)) * 2, "regression", "a number with 11"),
        ([0.1, 0.2, 0.3] * 5, "regression", "a number with 3"),
    ],
)
def test_the_task_is_inferred_and_said(values, task, reason):
    found = target(values)
    assert found.task == task
    assert reason in found.reason


def test_whole_numbers_are_classes_where_the_name_says_so():
    for name in ("class", "species_code", "type", "Cluster 2", "status"):
        found = read_target(pd.DataFrame({name: [1, 2, 3] * 10}), name)
        assert found.task == "classification"
        assert "name says that its 3 different values are codes" in found.reason
    assert read_target(pd.DataFrame({"classy": [1, 2, 3] * 10}), "classy").task == "regression"


def test_the_task_can_be_given():
    assert target([1, 2, 3] * 5, "regression").values.dtype.kind == "f"
    assert target([1, 2, 3] * 5, "classification").values.tolist()[:3] == ["1", "2", "3"]
    assert target([1, 2, 3] * 5, "regression").reason == "as asked"


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([1.0, 0.0] * 10, {"0", "1"}),
        (["1.0", "0"] * 10, {"0", "1"}),
        ([True, False] * 10, {"0", "1"}),
        (["None", "mild"] * 10, {"None", "mild"}),
        ([" spaced ", "x"] * 10, {"spaced", "x"}),
    ],
)
def test_classes_are_text(values, classes):
    found = target(values)
    assert set(found.values) == classes
    assert found.values.dtype.kind == "U"


def test_rows_without_a_target_are_left_out_with_a_note():
    found = target([1.5, None, 2.5, 3.5] * 5)
    assert found.known.sum() == 15
    assert len(found.values) == 15
    assert "5 rows without a value left out" in str(found.notes[-1])


@pytest.mark.parametrize(
    ("values", "task", "match"),
    [
        ([None] * 20, "auto", "every value of the target 'y' is missing"),
        ([7] * 20, "auto", "nothing to predict"),
        (["a"] * 20, "auto", "is 'a' in every row"),
        ([7] * 20, "regression", "is 7 in every row"),
        (["a", *["b"] * 19], "auto", "only one row of the class 'a'"),
        (["a", "b", *["c"] * 19], "auto", "only one row of the classes 'a', 'b'"),
        ([f"t{i}" for i in range(60)] * 2, "auto", "60 classes, more than the 50"),
        ([*range(200), "oops"], "auto", "holds numbers but also 'oops'"),
        ([*range(20), "oops"], "regression", "row 21: 'oops' is not a finite number"),
        ([*np.arange(20.0), np.inf], "auto", "row 21: 'inf' is not a finite number"),
        ([*np.arange(20.0), 1e308], "regression", "not a finite number below 1e100"),
        ([1.5, 2.5, 3.5], "auto", "has 3 rows; at least 10 are needed"),
        ([1.5, 2.5, None] * 4, "regression", "8 rows with a value of 'y'"),
        (pd.date_range("2020", periods=20), "auto", "is a date"),
        ([[1]] * 20, "auto", "does not hold single values"),
    ],
)
def test_targets_that_cannot_be_predicted(values, task, match):
    with pytest.raises(TableError, match=match):
        target(values, task)


def test_an_unknown_target_lists_the_columns():
    with pytest.raises(TableError, match="no column 'z' to predict; the columns are 'y'"):
        read_target(pd.DataFrame({"y": [1]}), "z")
