"""What is said of merged environments must hold in the levels they were merged from."""

import warnings

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core.numerics.floors import ROUNDING
from hetrisk.core.sources.levels import each_by_itself
from hetrisk.estimators.base import UnstableWarning

from .made import cells_of


def moving(seed, d=25, n=2000, count=5):
    """Every slope moves between five labels, which are merged to two or three environments."""
    rng = np.random.default_rng(seed)
    codes, slopes = rng.integers(0, count, n), 0.2 * rng.standard_normal((count, d))
    X = rng.standard_normal((n, d))
    mean = rng.uniform(0.3, 1.2, d)
    return X, X @ mean + (X * slopes[codes]).sum(axis=1) + rng.standard_normal(n), codes


@pytest.mark.parametrize("seed", [0, 1, 4, 5, 7, 8])
def test_where_every_slope_moves_merged_labels_blame_no_column(seed):
    X, y, codes = moving(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)
        model = HRMRegressor().fit(X, y, environments=codes)
    assert model.sources_[0].used
    assert model.sources_[0].n_environments < 5
    assert model.support_.all()


@pytest.mark.parametrize("seed", [3, 7, 12, 28])
def test_what_two_or_three_merged_labels_say_the_labels_must_say(seed):
    """Half of the columns are of no use, and a few of the others differ most between these."""
    rng = np.random.default_rng(seed)
    codes, slopes = rng.integers(0, 5, 2000), 0.2 * rng.standard_normal((5, 25))
    X = rng.standard_normal((2000, 25))
    y = X[:, :12].sum(axis=1) + (X * slopes[codes]).sum(axis=1) + rng.standard_normal(2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableWarning)
        model = HRMRegressor().fit(X, y, environments=codes)
    assert model.sources_[0].used
    assert model.support_.all()


def test_what_surely_holds_in_the_levels_is_still_said():
    X, y, codes = moving(0)
    rng = np.random.default_rng(1)
    y = X.sum(axis=1) + rng.standard_normal(len(y))
    X[:, 3] = np.array([1.0, 0.9, 0.5, 0.1, -0.3])[codes] * y + rng.standard_normal(len(y))
    model = HRMRegressor().fit(X, y, environments=np.array([f"ward {code}" for code in codes]))
    assert model.sources_[0].n_environments < 5
    assert np.flatnonzero(~model.support_).tolist() == [3]


@pytest.mark.parametrize(
    ("sizes", "held"),
    [
        ((200, 100, 100), [200, 100, 100]),
        ((200, 100, 5, 6, 4), [200, 100, 15]),
        ((200, 100, 3, 2), [200, 100]),
        ((200, 4), None),
        ((20,) * 61, None),
    ],
)
def test_levels_stand_by_themselves_but_for_the_thin_ones(sizes, held):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).standard_normal((len(codes), 3))
    found = each_by_itself(cells_of(X, X[:, 0], codes))
    if held is None:
        assert found is None
    else:
        assert np.allclose(found.effective_rows, held, rtol=ROUNDING)
