"""The default search as a whole: one level for all its tests, and how few rows it refuses."""

import numpy as np
import pytest

from hetrisk import HRMRegressor
from hetrisk.core import search
from hetrisk.core.sources import tested as carried
from hetrisk.core.thresholds import THRESHOLDS


def one_population(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + rng.standard_normal(n), rng.integers(3, size=n)


@pytest.fixture
def levels(monkeypatch):
    """Level of each kind of test that a fit makes, and that at which the questions are asked."""
    seen = {}

    def counted(name):
        function = getattr(carried, name)

        def once(*arguments):
            seen[name] = THRESHOLDS.sure
            return function(*arguments)

        return once

    for name in ("heterogeneity", "effect_p_values", "one_noise"):
        monkeypatch.setattr(carried, name, counted(name))
    ask = search.search_inferred

    def asked(rows, family, groups, settings, level):
        seen["questions"] = level
        return ask(rows, family, groups, settings, level)

    monkeypatch.setattr(search, "search_inferred", asked)
    return seen


@pytest.mark.parametrize("side", ["nothing", "environments", "hints", "both"])
def test_all_tests_of_a_fit_share_one_level(levels, side):
    X, y, codes = one_population(300, 3)
    given = {
        "nothing": {},
        "environments": {"environments": codes},
        "hints": {"hints": codes},
        "both": {"environments": codes, "hints": codes},
    }[side]
    model = HRMRegressor().fit(X, y, **given)
    assert model.verdict_ == "homogeneous"
    if side == "hints":  # the noise along a hint counts only where something else differs
        del levels["one_noise"]
    # What rows carry is asked for more certainty: where nothing else is asked, some is not spent.
    spent, asked = sum(levels.values()), "environments" not in given
    assert spent == pytest.approx(THRESHOLDS.alpha if asked else 3.0 * THRESHOLDS.sure)
    assert 3.0 * THRESHOLDS.sure < THRESHOLDS.alpha


@pytest.mark.parametrize("d", [2, 15])
@pytest.mark.parametrize("named", [True, False])
def test_too_few_rows_are_refused_by_the_number_that_is_said(d, named):
    needed = THRESHOLDS.rows_needed(d)
    for n in (needed - 1, needed):
        X, y, codes = one_population(n, d)
        model = HRMRegressor().fit(X, y, environments=codes if named else None)
        assert (model.verdict_ == "unsearched") == (n < needed)
    X, y, _ = one_population(needed - 1, d)
    reason = HRMRegressor().fit(X, y).verdict_reason_
    assert f"{needed - 1} rows are too few for {d} columns; at least {needed} are needed" in reason
