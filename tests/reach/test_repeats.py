"""Columns that repeat each other share one decision, whatever rounding makes of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core.reach import rules
from hetrisk.core.reach.choice import repeats_together
from hetrisk.core.reach.heterogeneity import environments_of
from hetrisk.core.result import SearchSettings

from .made import cells_of


def table(seed, n_copies, sign=1.0):
    rng = np.random.default_rng(seed)
    shop = np.sort(rng.integers(0, 3, 900))
    X = rng.normal(size=(900, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=900)
    effect = np.array([2.0, 0.75, -0.5])[shop] * y + rng.normal(size=900)
    return np.column_stack([X, effect, *[sign * effect + 1.0] * n_copies]), y, shop


@pytest.mark.parametrize("sign", [1.0, -2.0])
@pytest.mark.parametrize("seed", [1, 5])
def test_copies_leave_together_and_change_nothing_else(seed, sign):
    one, two = (
        HRMRegressor().fit(X, y, environments=shop)
        for X, y, shop in (table(seed, 0), table(seed, 2, sign))
    )
    assert two.support_.tolist() == [True, True, True, False, False, False]
    said = [model.verdict_reason_.partition(": ")[2].split(".")[0] for model in (one, two)]
    assert said == ["3 environments differ beyond chance"] * 2
    assert "did not pay" not in two.verdict_reason_
    errors = [[score.error for score in model.leave_one_out_] for model in (one, two)]
    np.testing.assert_allclose(*errors, rtol=1e-6)
    np.testing.assert_allclose(two.coef_[:3], one.coef_[:3], rtol=1e-8)


def test_a_copy_of_a_column_to_be_kept_stays_with_it():
    X, y, shop = table(1, 1)
    model = HRMRegressor(keep=[3]).fit(X, y, environments=shop)
    assert model.support_[[3, 4]].all()


def test_groups_are_joined_by_what_repeats():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    X[:, 4] = 3.0 - 2.0 * X[:, 0]
    environments = environments_of(cells_of(X, X[:, 0], np.arange(200) % 2), 1)
    groups = repeats_together(environments, np.array([0, 1, 1, 2, 3]))
    assert groups[0] == groups[4]
    assert groups[1] == groups[2]
    assert len(np.unique(groups)) == 3


@pytest.mark.parametrize("seed", range(20))
def test_a_column_that_never_varies_in_an_environment_is_like_no_other(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 5))
    X[:, 4] = rng.normal()
    environments = environments_of(cells_of(X, X[:, 0], np.arange(300) % 3), 1)
    assert len(np.unique(repeats_together(environments, np.arange(5)))) == 5


def test_columns_that_are_merely_alike_stay_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[:, 2] = X[:, 0] + 0.01 * rng.normal(size=2000)
    environments = environments_of(cells_of(X, X[:, 0], np.arange(2000) % 2), 1)
    assert len(np.unique(repeats_together(environments, np.arange(3)))) == 3


@pytest.mark.parametrize("seed", range(4))
def test_a_flag_of_rows_in_no_environment_changes_nothing(seed):
    X, y, shop = table(seed, 0)
    site = np.array([f"s{k}" for k in shop], dtype=object)
    site[:3] = "new"
    flag = (site == "new") * 1.0
    model = HRMRegressor().fit(np.column_stack([X, flag]), y, environments=site)
    assert model.support_[:4].tolist() == [True, True, True, False]


def test_effects_that_repeat_each_other_leave_together():
    """Told by their mechanism, where regret alone is not sure; and priced as one."""
    rng = np.random.default_rng(3)
    shop = np.repeat([0, 1, 2], [1000, 100, 100])
    X = rng.normal(size=(1200, 9))
    y = X @ rng.uniform(0.3, 1.0, 9) + 0.5 * rng.normal(size=1200)
    effect = y + np.array([0.3, 1.5, 2.5])[shop] * rng.normal(size=1200)
    one = HRMRegressor().fit(np.column_stack([X, effect]), y, environments=shop)
    two = HRMRegressor().fit(np.column_stack([X, effect, -effect]), y, environments=shop)
    assert one.support_.tolist() == [True] * 9 + [False]
    assert two.support_.tolist() == [True] * 9 + [False] * 2
    margins = two.evidence_.margin[9:]
    assert margins[0] == pytest.approx(margins[1], rel=1e-6)
    assert margins[0] == pytest.approx(one.evidence_.margin[9], rel=0.15)


def test_an_effect_that_shifts_takes_what_repeats_it_along():
    """Whether or not the copy was seen to be an effect itself."""
    choice = SimpleNamespace(groups=np.array([0, 1, 1]), keep=np.zeros(3, dtype=bool))
    tests = rules.Tests(np.ones(3), np.array([1.0, 1e-9, 1.0]), None, 1.0)
    facts = rules.Facts(choice, tests, None, np.arange(3), SearchSettings())
    assert facts.shifting.tolist() == [False, True, True]


def test_what_a_copy_that_stays_is_worth_is_what_both_are():
    """Without one of them alone nothing would be lost, and nobody asks that."""
    X, y, shop = table(0, 0)
    model = HRMRegressor().fit(np.column_stack([X, X[:, 1]]), y, environments=shop)
    assert model.support_.tolist() == [True, True, True, False, True]
    margin, price = model.evidence_.margin, model.evidence_.price
    assert margin[1] == pytest.approx(margin[4], rel=1e-6)
    assert price[1] == pytest.approx(price[4], rel=1e-6)
    assert price[1] > 0.5
