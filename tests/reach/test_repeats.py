"""Columns that repeat each other share one decision, whatever rounding makes of them."""

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core.reach.choice import repeats_together
from hetrisk.core.reach.heterogeneity import environments_of

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
