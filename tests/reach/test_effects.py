"""Effects of the target whose mechanism differs between environments: tested, left out, priced."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.core.numerics.dependence import dependence
from hetrisk.core.numerics.families import Multinomial
from hetrisk.core.reach.effects import effect_p_values, effects_within
from hetrisk.core.reach.heterogeneity import heterogeneity
from hetrisk.core.sources.tested import _telling
from hetrisk.core.thresholds import THRESHOLDS
from hetrisk.datasets import load_task
from reach.made import cells_of

CAUSES, EFFECT = [0, 1, 2, 3], 4
FAINT = {"n_samples": 160, "spreads": (0.5, 1.2)}


def made(
    seed=0,
    n_samples=600,
    spreads=(0.5, 0.5, 0.5),
    slopes=None,
    offsets=None,
    noise=np.random.Generator.standard_normal,
):
    """Four causes whose means shift, y, and an effect with a mechanism in every environment."""
    rng = np.random.default_rng(seed)
    K = len(spreads)
    slopes, offsets = slopes or (1.0,) * K, offsets or (0.0,) * K
    codes = np.arange(n_samples) % K
    X = rng.standard_normal((n_samples, 4)) + 0.5 * codes[:, None]
    y = X @ np.array([1.0, -0.5, 0.8, 0.6]) + 0.5 * rng.standard_normal(n_samples)
    own = np.array(spreads)[codes] * noise(rng, n_samples)
    effect = np.array(offsets)[codes] + np.array(slopes)[codes] * y + own
    return np.column_stack([X, effect]), y, codes


def p_values(X, y, codes, groups=None):
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    groups = np.arange(X.shape[1]) if groups is None else groups
    cells = cells_of(scaled, (y - y.mean()) / y.std(), codes)
    return effect_p_values(cells, cells, 1, groups)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"spreads": (0.3, 0.6, 1.0)},
        {"slopes": (0.5, 1.0, 1.5)},
        {"offsets": (0.0, 0.5, 1.0)},
    ],
)
def test_a_spread_a_slope_or_a_level_that_differs_is_seen_in_the_effect_alone(mechanism):
    p = p_values(*made(**mechanism))
    assert p[EFFECT] < THRESHOLDS.sure
    assert (p[CAUSES] == 1.0).all()


@pytest.mark.parametrize(
    "noise",
    [
        np.random.Generator.standard_normal,
        lambda rng, n: rng.standard_t(3, n),
        lambda rng, n: rng.exponential(size=n) - 1.0,
    ],
)
@pytest.mark.parametrize("K", [2, 8])
def test_one_mechanism_is_left_alone_whatever_its_noise(noise, K):
    p = np.array([p_values(*made(s, 800, (0.5,) * K, noise=noise))[EFFECT] for s in range(150)])
    # The effect is recognised in most of these tables, so that its p-value is that of a test.
    assert np.mean(p < 1.0) > 0.5
    for level in (0.01, 0.05, 0.1):
        assert np.mean(p < level) <= level + 2.5 * np.sqrt(level * (1.0 - level) / len(p))


def test_in_one_environment_there_is_nothing_to_compare():
    X, y, _ = made(spreads=(0.3, 1.0, 2.0))
    assert (p_values(X, y, np.zeros(len(y), dtype=int)) == 1.0).all()


def test_the_target_itself_as_a_column_is_no_mechanism_that_differs():
    X, y, codes = made()
    X[:, EFFECT] = y
    assert (p_values(X, y, codes) == 1.0).all()


def test_columns_of_one_group_leave_together_and_the_effect_is_named():
    X, y, codes = made(spreads=(0.3, 0.6, 1.0))
    X = np.column_stack([np.random.default_rng(1).standard_normal(len(y)), X])
    groups = np.array([5, 1, 2, 3, 4, 5])
    p = p_values(X, y, codes, groups)
    assert p[5] < THRESHOLDS.sure
    assert p[0] == 1.0
    X, y, codes = made(**FAINT)
    X = np.column_stack([np.random.default_rng(2).standard_normal(len(y)), X])
    model = HRMRegressor(feature_groups=groups).fit(X, y, environments=codes)
    assert np.flatnonzero(~model.support_).tolist() == [0, 5]
    assert model.sources_[0].column == 5
    assert "x5, an effect of the target" in model.sources_[0].sentence


@pytest.mark.parametrize("seed", range(8))
def test_a_column_that_says_which_environment_it_is_is_no_effect(seed):
    """Within environments nothing is left of it but rounding, which depends on anything."""
    X, y, codes = made(seed, 3000, (0.5,) * 5)
    X = np.column_stack([X, 2000.0 + codes, 0.1 * codes])
    p = p_values(X, y, codes)
    assert (p[5:] == 1.0).all()


def test_two_readings_of_one_effect_do_not_hide_each_other():
    X, y, codes = made(n_samples=600, spreads=(0.3, 0.6, 1.0))
    X = np.column_stack([X, np.round(2.54 * X[:, EFFECT], 1)])
    p = p_values(X, y, codes)
    assert (p[[4, 5]] < THRESHOLDS.sure).all()
    assert (p[CAUSES] == 1.0).all()


def test_an_effect_that_repeats_the_target_in_one_environment_alone_shifts():
    assert p_values(*made(spreads=(0.0, 0.5, 0.5)))[EFFECT] < THRESHOLDS.sure


def test_errors_in_environments_left_out_are_those_of_the_model_that_is_handed_over():
    X, y, codes = made(n_samples=600, spreads=(0.7, 0.9, 1.15))
    model = HRMRegressor().fit(X, y, environments=codes)
    assert "an effect of the target that follows from it" in model.verdict_reason_
    for k, score in enumerate(model.leave_one_out_):
        rest, own = codes != k, codes == k
        fit = LinearRegression().fit(X[rest][:, CAUSES], y[rest])
        error = np.sqrt(np.mean((y[own] - fit.predict(X[own][:, CAUSES])) ** 2))
        assert score.error == pytest.approx(error, rel=1e-3)


def test_an_environment_that_some_folds_miss_does_not_hide_the_others():
    X, y, codes = made(n_samples=900, spreads=(0.4, 0.8))
    few = np.where(np.arange(900) % 45 == 7, 2, codes)  # twenty rows: some fold holds none
    assert p_values(X, y, few)[EFFECT] < THRESHOLDS.sure


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 50), st.permutations(range(3)), st.permutations(range(5)))
def test_names_of_environments_order_of_columns_and_units_do_not_matter(seed, names, order):
    X, y, codes = made(seed, spreads=(0.3, 0.5, 0.9))
    expected = p_values(X, y, codes)
    again = p_values(7.0 - 3.0 * X[:, order], 100.0 * y - 5.0, np.array(names)[codes])
    assert again == pytest.approx(expected[list(order)], rel=1e-6, abs=1e-12)


def test_a_change_too_faint_for_the_regression_of_y_is_acted_upon():
    X, y, codes = made(**FAINT)
    model = HRMRegressor().fit(X, y, environments=codes)
    assert model.verdict_ == "invariant"
    assert np.flatnonzero(~model.support_).tolist() == [EFFECT]
    assert "an effect of the target that follows from it in another way" in model.verdict_reason_
    count = round(model.n_resamples_ * model.stability_[EFFECT])
    assert f"in {count} of {model.n_resamples_} resamples" in model.verdict_reason_
    assert (model.stability_[CAUSES] == 0.0).all()
    assert model.break_even_ <= model.reach
    assert model.sources_[0].used
    assert "x4, an effect of the target" in model.sources_[0].sentence
    assert model.evidence_.reason[EFFECT].startswith("Left out")


def test_a_column_to_keep_stays_and_directions_do_not_ask():
    X, y, codes = made(**FAINT)
    assert HRMRegressor(keep=[EFFECT]).fit(X, y, environments=codes).support_.all()
    shrunk = HRMRegressor(form="directions").fit(X, y, environments=codes)
    assert "effect" not in shrunk.verdict_reason_ + shrunk.sources_[0].sentence


def two_hints(seed):
    """Three regions in which a slope of y differs, and two methods of measuring an effect of y."""
    rng = np.random.default_rng(seed)
    n = 240
    method, region = np.arange(n) % 2, np.arange(n) // 2 % 3
    X = rng.standard_normal((n, 4)) + 0.5 * method[:, None]
    moves = rng.standard_normal(n)
    y = X @ np.array([1.0, -0.5, 0.8, 0.6]) + np.array([0.9, 1.2, 1.5])[region] * moves
    y += 0.5 * rng.standard_normal(n)
    effect = y + np.array([0.5, 1.0])[method] * rng.standard_normal(n)
    hints = np.column_stack([np.array(list("pqr"))[region], np.array(list("cd"))[method]])
    return np.column_stack([X, effect, moves]), y, hints


@pytest.mark.parametrize("seed", [5])
def test_a_hint_along_which_effects_shift_is_heard_beside_one_whose_regressions_differ(seed):
    X, y, hints = two_hints(seed)
    alone = HRMRegressor().fit(X, y, hints=hints[:, 1])
    assert np.flatnonzero(~alone.support_).tolist() == [EFFECT]
    both = HRMRegressor().fit(X, y, hints=hints)
    assert np.array_equal(both.support_, alone.support_)
    assert "in some of 2 environments" in both.verdict_reason_
    regions, methods = both.sources_
    assert regions.used
    assert "differ beyond chance" in regions.sentence
    assert methods.used
    assert "x4, an effect of the target" in methods.sentence


def test_where_leaving_an_effect_does_not_pay_within_the_reach_it_stays():
    X, y, codes = made(**FAINT)
    left = HRMRegressor().fit(X, y, environments=codes)
    near = HRMRegressor(reach=0.9 * left.break_even_).fit(X, y, environments=codes)
    assert near.support_.all()
    assert "x4 follows from the target in another way" in near.verdict_reason_
    assert "leaving it out does not surely pay" in near.verdict_reason_
    assert near.n_resamples_ == 0


@pytest.mark.parametrize("seed", [9300, 9301, 9302])
def test_anti_causal_tables_told_their_environments_lose_their_effects(seed):
    task = load_task("anti_causal", seed=seed, n_phi=5, n_psi=5)
    model = HRMRegressor().fit(task.train.X, task.train.y, environments=task.train.environments)
    assert np.array_equal(model.support_, task.invariant)


def test_a_hint_is_asked_as_well():
    X, y, codes = made(**FAINT)
    hints = np.array(["north", "south"])[codes]
    assert np.flatnonzero(~HRMRegressor().fit(X, y, hints=hints).support_).tolist() == [EFFECT]


def test_effects_of_several_labels():
    rng = np.random.default_rng(0)
    codes = np.arange(3000) % 2
    X = rng.standard_normal((3000, 3))
    scores = X @ rng.standard_normal((3, 3)) * 2.0 + rng.gumbel(size=(3000, 3))
    y = scores.argmax(axis=1)
    effect = y + np.where(codes == 0, 0.8, 1.2) * rng.standard_normal(3000)
    X = np.column_stack([X, effect])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    cells = cells_of(scaled, y.astype(float), codes, family=Multinomial(3))
    p = effect_p_values(cells, cells, Multinomial(3).n_targets, np.arange(4))
    assert p[3] < THRESHOLDS.sure
    assert (p[:3] == 1.0).all()
    spread = X.copy()
    spread[:, 3] = y + np.where(codes == 0, 0.3, 1.5) * rng.standard_normal(3000)
    assert not HRMClassifier().fit(spread, y, environments=codes).support_[3]


def labs(seed, n_labs=20, rows=60):
    """Six causes of y, and twelve readings of it whose gains drift together from lab to lab."""
    rng = np.random.default_rng(seed)
    lab = np.arange(n_labs * rows) % n_labs
    X = rng.standard_normal((len(lab), 6))
    y = X @ np.array([0.6, -0.5, 0.4, 0.6, -0.5, 0.4]) + rng.standard_normal(len(lab))
    loading = rng.standard_normal((12, 2)) / np.sqrt(2)
    gains = (np.array([0.9, 0.1]) + rng.standard_normal((n_labs, 2)) * [0.55, 0.25]) @ loading.T
    readings = y[:, None] * gains[lab] + rng.standard_normal((len(lab), 12))
    return np.column_stack([X, readings]), y, lab


@pytest.mark.parametrize("seed", range(6))
def test_gains_that_are_shared_do_not_hide_effects_within_environments(seed):
    """Given y alone they go along with each other; given y and the environment they do not."""
    X, y, lab = labs(seed)
    found = effects_within(cells_of(X, y, lab), np.arange(18))
    assert not found[:6].any()
    assert found[6:].sum() >= 8
    X, y = X - X.mean(axis=0), y - y.mean()
    rest = X - np.outer(y, y @ X) / (y @ y)
    alone = dependence(X.T @ X / len(y), rest.T @ rest / len(y), len(y), 1, np.arange(18))
    assert alone.is_effect.sum() < found.sum()


@pytest.mark.parametrize("seed", [0, 7])
def test_effects_that_shift_leave_beside_what_regret_leaves_out(seed):
    X, y, lab = labs(seed)
    model = HRMRegressor().fit(X, y, environments=[f"lab {k}" for k in lab])
    assert model.verdict_ == "invariant"
    both = "environments differ beyond chance, and (effects|an effect) of the target that follows?"
    assert re.search(both, model.verdict_reason_)
    assert re.search("leaves? as well", model.verdict_reason_)
    assert model.support_[:6].all()
    assert (~model.support_[6:]).sum() >= 8
    assert (model.stability_[~model.support_] >= 0.5).all()


@pytest.mark.parametrize("told", ["environments", "hints"])
@pytest.mark.parametrize("seed", range(3))
def test_thin_sites_are_told_apart_by_how_effects_follow_the_target(seed, told):
    """A hundred sites of twenty rows: too few for a regression on ten columns, not for a line."""
    rng = np.random.default_rng(seed)
    site = rng.permutation(2000) % 100
    X = rng.standard_normal((2000, 6))
    y = X @ np.array([1.0, -0.8, 0.7, 0.6, 0.5, -0.6]) + rng.standard_normal(2000)
    gain = rng.normal(0.8, 0.5, 100)[site]
    readings = gain[:, None] * y[:, None] * np.array([1.0, -0.8, 0.6, 1.1])
    X = np.column_stack([X, readings + rng.standard_normal((2000, 4))])
    named = pd.Series([f"site {s}" for s in site], name="site")
    model = HRMRegressor().fit(X, y, **{told: named})
    assert np.flatnonzero(~model.support_).tolist() == [6, 7, 8, 9]
    # Kinds by the regression of y on ten columns are half as far apart.
    by_gain = np.array(
        [gain[model.environments_ == k].mean() for k in np.unique(model.environments_)]
    )
    assert np.ptp(by_gain) > 0.8


def test_of_partitions_that_surely_differ_the_one_with_the_most_regret_goes_on():
    X, y, codes = made()
    one = heterogeneity(cells_of(X, y, codes), 1)
    found = [replace(one, regret=regret) for regret in (0.1, 0.4, 0.9)]
    coarse = SimpleNamespace(merged=SimpleNamespace(fine=False))
    fine = SimpleNamespace(merged=SimpleNamespace(fine=True))
    proposals = [coarse, fine, coarse]
    assert _telling(proposals, found, np.array([1e-30, 1e-4, 0.3]), 0.01) == [1, 0]
    assert _telling(proposals, found, np.array([0.4, 0.2, 0.3]), 0.01) == [2]


def test_regret_beyond_chance_is_what_the_slopes_of_environments_explain():
    rng = np.random.default_rng(0)
    codes = np.arange(20_000) % 2
    x = rng.standard_normal(20_000)
    y = np.where(codes == 0, 1.5, 0.5) * x + 0.5 * rng.standard_normal(20_000)
    differ = heterogeneity(cells_of(x[:, None], y, codes), 1)
    # Half a unit of slope either way, of noise with variance a quarter.
    assert differ.regret == pytest.approx(1.0, rel=0.05)
    alike = heterogeneity(cells_of(x[:, None], 0.5 * x + y - y.mean(), rng.permutation(codes)), 1)
    assert abs(alike.regret) < 1e-3


def test_levels_too_thin_for_a_line_in_the_target_make_nothing_an_effect():
    """Households of two: given a line of its own nothing is left of any column."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        home = np.repeat(np.arange(300), 2)
        X = rng.standard_normal((600, 1)) + rng.standard_normal((600, 4))
        y = X.sum(axis=1) + rng.standard_normal(600)
        assert not effects_within(cells_of(X, y, home, n_folds=2), np.arange(4)).any()


def test_where_as_much_dependence_as_before_would_not_be_seen_nothing_is_an_effect():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 1)) + rng.standard_normal((120, 30))
    plain = np.cov(X.T)
    for rows, able in ((120, True), (38, False)):
        found = dependence(plain, np.diag(np.diag(plain)), rows, 1, np.arange(30))
        assert (found.ratio == 0.0).all()
        assert found.seen.all() == able
        assert found.is_effect.any() == able
