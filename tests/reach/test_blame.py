"""Are a few columns to blame, or does every relation move? What says so, and what follows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk import HRMRegressor
from hetrisk.core.reach.blame import evenly_left, left_by_all
from hetrisk.core.reach.columns import choose_columns
from hetrisk.core.reach.heterogeneity import heterogeneity
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.thresholds import THRESHOLDS
from reach.made import cells_of


@given(st.integers(1, 60), st.integers(1, 30))
def test_what_stays_falls_from_all_to_nothing_and_each_column_takes_less_than_the_last(
    u, contrasts
):
    left = evenly_left(u, contrasts)
    assert left.shape == (u + 1,)
    assert left[0] == pytest.approx(1.0)
    assert left[-1] == pytest.approx(0.0, abs=1e-12)
    taken = -np.diff(left)
    assert (taken > 0.0).all()
    assert (np.diff(taken) <= 1e-12).all()


@pytest.mark.parametrize(("u", "contrasts"), [(10, 1), (10, 4), (30, 2)])
def test_what_stays_is_that_of_drawn_shares(u, contrasts):
    drawn = np.sort(np.random.default_rng(0).chisquare(contrasts, (4000, u)), axis=1)[:, ::-1]
    stays = 1.0 - (np.cumsum(drawn, axis=1) / drawn.sum(axis=1, keepdims=True)).mean(axis=0)
    assert np.allclose(evenly_left(u, contrasts)[1:], stays, atol=0.04)


def test_between_more_environments_each_column_takes_less():
    assert (evenly_left(8, 6)[1:-1] > evenly_left(8, 1)[1:-1]).all()


def test_no_column_leaves_nothing_to_ask():
    assert evenly_left(0, 3) == pytest.approx(1.0)


def moving(columns, seed=0, n=1200, d=8, K=3, size=1.0):
    """The slopes of some columns differ between environments."""
    rng = np.random.default_rng(seed)
    X, codes = rng.standard_normal((n, d)), rng.integers(0, K, n)
    slopes = np.zeros((K, d))
    slopes[:, columns] = size * rng.standard_normal((K, len(columns)))
    y = X @ np.ones(d) + (X * slopes[codes]).sum(axis=1) + rng.standard_normal(n)
    return X, y, codes


def test_groups_count_as_one_and_what_never_varies_not_at_all():
    X, y, codes = moving([0])
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    groups = np.array([0, 0, 1, 2, 3, 4, 5, 6])
    sets = np.ones((2, 8), dtype=bool)
    sets[1, :2] = False
    assert left_by_all(environments, sets, groups) == pytest.approx(evenly_left(7, 2)[:2])
    X[:, 7] = 0.0
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    assert left_by_all(environments, sets, groups) == pytest.approx(evenly_left(6, 2)[:2])


@pytest.mark.parametrize("columns", [[0], [2, 5]])
def test_columns_that_move_among_others_that_do_not_are_to_blame(columns):
    X, y, codes = moving(columns)
    model = HRMRegressor().fit(X, y, environments=codes)
    assert model.verdict_ == "invariant"
    assert np.array_equal(np.flatnonzero(~model.support_), columns)


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_where_every_relation_moves_no_column_is_to_blame(seed):
    X, y, codes = moving(list(range(8)), seed=seed, size=0.4, n=3000)
    model = HRMRegressor(reach=3.0).fit(X, y, environments=codes)
    assert model.verdict_ == "homogeneous"
    assert model.support_.all()
    # Not for want of a set that would pay by its own account.
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    chosen = choose_columns(environments, 3.0, np.arange(8), np.zeros(8, dtype=bool))
    assert not chosen.support.all()
    assert "other relations move as well" in model.verdict_reason_


def test_what_pays_where_nothing_is_extrapolated_needs_nobody_to_blame():
    # Sets of all columns, and of some: nothing is gained at 1, something is, too little is gone.
    costs = Costs(
        risk=np.array([1.0, 1.5, 1.5, 1.5]),
        noise_gap=np.zeros(4),
        worst=np.array([1.0, 0.6, 0.2, 0.2]),
        mean=np.array([1.0, 0.2, 0.2, 0.5]),
    )
    assert costs.trusted(0, np.full(4, 0.1)).tolist() == [True, False, True, False]
    assert costs.trusted(0, np.full(4, 0.9)).tolist() == [True, True, True, False]


def test_a_difference_that_is_not_known_to_a_third_of_itself_is_not_multiplied():
    # The slope of one column differs by less than three standard errors, all tests counted.
    rng = np.random.default_rng(3)
    X, codes = rng.standard_normal((800, 4)), np.arange(800) % 2
    noise = rng.standard_normal(800)
    side = np.where(codes == 0, 1.0, -1.0)[:, None]
    design = np.hstack([X, side * X])
    noise -= design @ np.linalg.lstsq(design, noise, rcond=None)[0]
    y = X.sum(axis=1) + 0.15 * side[:, 0] * X[:, 0] + noise
    model = HRMRegressor(reach=10.0).fit(X, y, environments=codes)
    p_value = model.sources_[0].p_value
    assert THRESHOLDS.sure < p_value < THRESHOLDS.alpha
    assert model.verdict_ == "homogeneous"
    assert model.support_.all()
    assert "differs by less than three standard errors" in model.verdict_reason_
    hinted = HRMRegressor(reach=10.0).fit(X, y, hints=codes.astype(str))
    sentence = hinted.sources_[0].sentence
    assert "something may change, by less than three standard errors" in sentence
    assert "it has no effect" in sentence
    # Directions look at the noise of a difference themselves.
    shrunk = HRMRegressor(reach=10.0, form="directions").fit(X, y, environments=codes)
    assert shrunk.sources_[0].used
    assert not model.sources_[0].used
