"""What features say of each other before and after the target is known."""

import numpy as np
import pytest
import statsmodels.api as sm
from hetrisk.core.paper.stability import quadratics_from_moments
from hetrisk.core.paper.thresholds import GATE_THRESHOLDS
from scipy import stats

from hetrisk.core.numerics.dependence import (
    _shared_information,
    dependence,
    effect_blocks,
    explaining_together,
    shifting_effects,
)
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import Rows


def system(seed, spreads, sizes=(1000, 300), n_causes=4):
    """Causes, a target, and one effect of it whose spread depends on the environment."""
    rng = np.random.default_rng(seed)
    blocks = []
    for spread, size in zip(spreads, sizes, strict=True):
        causes = rng.standard_normal((size, n_causes))
        y = causes.sum(axis=1) + 0.5 * rng.standard_normal(size)
        effect = 0.7 * y + spread * rng.standard_normal(size)
        blocks.append((np.column_stack([causes, effect]), y))
    return blocks


def covariances(X, y):
    X, y = X - X.mean(axis=0), y - y.mean()
    noise = X - np.outer(y, y @ X) / (y @ y)
    return X.T @ X / len(y), noise.T @ noise / len(y)


def environments(blocks):
    parts = [moments(Rows(X, y, np.ones(len(y)))) for X, y in blocks]
    stacked = (np.stack([getattr(p, f) for p in parts]) for f in ("weight", "mean", "scatter"))
    return quadratics_from_moments(Moments(*stacked))


def shifting(blocks):
    q = environments(blocks)
    d = q.right.shape[1]
    return shifting_effects(
        q.curvature, q.right, q.total, q.weight, np.arange(d), GATE_THRESHOLDS.shifting
    )


def test_p_value_before_the_target_is_known_is_that_of_the_f_test():
    X, y = system(0, (1.0,), (300,))[0]
    found = dependence(*covariances(X, y), len(y), 1, np.arange(5))
    for j in range(5):
        others = sm.add_constant(np.delete(X, j, axis=1))
        expected = sm.OLS(X[:, j], others).fit().f_pvalue
        assert found.before[j] == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_tells_causes_from_effects():
    X, y = system(2, (1.0,), (1000,))[0]
    plain, given = covariances(X, y)
    found = dependence(plain, given, len(y), 1, np.arange(5))
    assert found.is_effect.tolist() == [False] * 4 + [True]
    rest = explaining_together(plain[:4, :4], given[:4, :4], len(y), 1, np.arange(4))
    assert rest.all()


def test_causes_that_follow_each_other_are_causes():
    """Ancestors go along with each other all along, but not with those of another cause."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal((2000, 2))
    causes = 0.9 * first + 0.4 * rng.standard_normal((2000, 2))
    y = causes.sum(axis=1) + rng.standard_normal(2000)
    X = np.column_stack([first, causes])
    assert explaining_together(*covariances(X, y), 2000, 1, np.arange(4)).all()
    half = explaining_together(*covariances(X[:, [0, 2]], y), 2000, 1, np.arange(2))
    assert not half.any()


def test_causes_too_weak_for_each_other_are_told_by_all_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6))
    y = 0.4 * X.sum(axis=1) + rng.standard_normal(2000)
    assert not explaining_together(*covariances(X[:, :2], y), 2000, 1, np.arange(2)).any()
    assert explaining_together(*covariances(X, y), 2000, 1, np.arange(6)).all()


def test_what_makes_an_effect_with_the_target_is_no_cause():
    rng = np.random.default_rng(1)
    y, other = rng.standard_normal((2, 2000))
    X = np.column_stack([y + other + 0.5 * rng.standard_normal(2000), other])
    plain, given = covariances(X, y)
    before, after = plain[0, 1] / np.sqrt(plain[0, 0]), given[0, 1] / np.sqrt(given[0, 0])
    assert after > 1.2 * before  # the two go along more once the target is known
    assert not explaining_together(plain, given, 2000, 1, np.arange(2)).any()


@pytest.mark.parametrize("n", [1000, 100_000])
def test_a_cause_that_all_but_determines_the_target_is_no_effect(n):
    rng = np.random.default_rng(0)
    causes = rng.standard_normal((n, 4))
    y = causes @ [10.0, 0.3, 0.2, -0.2] + 0.3 * rng.standard_normal(n)
    effects = 0.5 * y[:, None] + rng.standard_normal((n, 3))
    X = np.column_stack([causes, effects])
    plain, given = covariances(X, y)
    found = dependence(plain, given, n, 1, np.arange(7))
    assert given[0, 0] < 0.02 * plain[0, 0]  # little of its variance is left to explain
    assert found.is_effect.tolist() == [False] * 4 + [True] * 3


def test_columns_of_one_group_are_not_asked_about_each_other():
    rng = np.random.default_rng(3)
    first = rng.standard_normal(500)
    X = np.column_stack([first, first + 0.1 * rng.standard_normal(500), rng.standard_normal(500)])
    plain, given = covariances(X, rng.standard_normal(500))
    apart = dependence(plain, given, 500, 1, np.array([0, 1, 2]))
    together = dependence(plain, given, 500, 1, np.array([0, 0, 1]))
    assert apart.before[0] < 1e-6 < together.before[0]


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_effect_whose_spread_shifts(seed):
    assert shifting(system(seed, (0.4, 1.2))).tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("seed", range(5))
def test_leaves_an_effect_with_one_mechanism_alone(seed):
    assert not shifting(system(seed, (0.8, 0.8))).any()


def test_spread_of_causes_may_differ():
    rng = np.random.default_rng(4)
    blocks = []
    for scale in (1.0, 3.0):
        X = scale * rng.standard_normal((500, 3))
        blocks.append((X, X.sum(axis=1) + rng.standard_normal(500)))
    assert not shifting(blocks).any()


def test_variances_are_compared_as_bartlett_does():
    """With no slope on y to speak of, the statistic is that of scipy up to a degree of freedom."""
    rng = np.random.default_rng(5)
    samples = [rng.standard_normal(400), 1.25 * rng.standard_normal(400)]
    strong = [rng.standard_normal(400), 2.0 * rng.standard_normal(400)]
    assert stats.bartlett(*samples).pvalue < 1e-3
    blocks = system(6, (1.0, 1.0), (400, 400))
    for (X, y), noise in zip(blocks, samples, strict=True):
        X[:, 4] = 0.7 * y + noise
    assert shifting(blocks)[4]
    for (X, y), noise in zip(blocks, strong, strict=True):
        X[:, 4] = 0.7 * y + noise[::-1]
    assert shifting(blocks)[4]


def test_one_environment_or_few_rows_say_nothing():
    assert not shifting(system(7, (0.4,), (1000,))).any()
    assert not shifting(system(7, (0.4, 1.2), (8, 6))).any()


def blocks(seed, factor, n=2000, n_causes=4):
    """Blocks among causes of y and two effects that share a factor of this size."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((n, n_causes))
    y = causes.sum(axis=1) + rng.standard_normal(n)
    noise = factor * rng.standard_normal((n, 1)) + rng.standard_normal((n, 2))
    X = np.column_stack([causes, y[:, None] * [1.0, 0.5] + noise])
    return effect_blocks(*covariances(X, y), n, 1, np.arange(X.shape[1]))


def test_effects_that_share_more_than_the_target_are_a_block_and_causes_are_none():
    found = blocks(0, factor=1.0)
    assert found[:4].tolist() == [-1] * 4
    assert found[4] == found[5] >= 0


def test_effects_that_share_the_target_alone_are_no_block():
    assert (blocks(0, factor=0.0) == -1).all()


@pytest.mark.parametrize("seed", [0, 2, 4, 5])
def test_a_block_is_found_though_some_column_of_it_says_too_little_by_itself(seed):
    """Twelve readings of y with gains that drift together from lab to lab, some of them faint."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((2000, 6))
    y = 0.4 * causes.sum(axis=1) + rng.standard_normal(2000)
    drift = rng.standard_normal((20, 2)) * [0.5, 0.3] + [0.9, 0.1]
    gains = (0.7 * drift @ rng.standard_normal((2, 12)))[np.arange(2000) % 20]
    X = np.column_stack([causes, y[:, None] * gains + rng.standard_normal((2000, 12))])
    plain, given = covariances(X, y)
    found = effect_blocks(plain, given, 2000, 1, np.arange(18))
    own = found >= 0
    assert not own[:6].any()
    assert own[6:].sum() >= 8
    alone = dependence(plain, given, 2000, 1, np.where(own, 20, np.arange(18)))
    assert not alone.is_effect[own].all()


@pytest.mark.parametrize("seed", range(20))
def test_causes_in_two_groups_are_no_block_whatever_they_share(seed):
    """Causes with factors of their own, linked or not: no side of them is one of effects."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((2000, 2))
    X = np.repeat(factors, 3, axis=1) + rng.standard_normal((2000, 6))
    y = X @ rng.uniform(0.3, 1.0, 6) * rng.choice([-1.0, 1.0]) + rng.standard_normal(2000)
    X = np.column_stack([X, rng.standard_normal((2000, 3))])
    assert (effect_blocks(*covariances(X, y), 2000, 1, np.arange(9)) == -1).all()


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 4)])
def test_what_two_sets_of_columns_say_of_each_other_has_the_law_of_chi_square(shape):
    rng = np.random.default_rng(0)
    a, b = shape
    some = np.arange(a + b) < a
    p = []
    for _ in range(400):
        X = rng.standard_normal((60, a + b)) @ np.diag(rng.uniform(0.1, 9.0, a + b))
        X -= X.mean(axis=0)
        statistic, df = _shared_information(X.T @ X / 60, some, ~some, 60)
        assert df == a * b
        p.append(stats.chi2.sf(statistic, df))
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_what_one_column_says_of_others_is_the_logarithm_of_what_they_leave_of_it():
    X, _ = system(2, (1.0,), (300,))[0]
    X = X - X.mean(axis=0)
    one = np.arange(5) == 4
    statistic, df = _shared_information(X.T @ X / 300, one, ~one, 300)
    left = 1.0 - sm.OLS(X[:, 4], X[:, :4]).fit().rsquared
    assert df == 4
    assert statistic == pytest.approx(-(300 - 4) * np.log(left), rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_bent_causes_are_no_block_beside_an_effect_and_what_makes_it(seed):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((3000, 3))
    second = np.tanh(first @ rng.normal(0, 0.8, (3, 2))) + 0.5 * rng.standard_normal((3000, 2))
    y = second @ [1.2, -0.9] + 0.4 * first[:, 0] + 0.6 * (rng.exponential(1.0, 3000) - 1)
    other = rng.standard_normal(3000)
    effect = 0.7 * y + other + 0.5 * rng.standard_normal(3000)
    X = np.column_stack([first, second, other, effect])
    found = effect_blocks(*covariances(X, y), 3000, 1, np.arange(7))
    assert (found[:5] == -1).all()


def test_without_causes_that_explain_the_target_together_nobody_is_an_effect():
    assert (blocks(0, factor=1.0, n_causes=1) == -1).all()


@pytest.mark.parametrize("seed", range(3))
def test_causes_in_one_component_have_their_effects_beside_them(seed):
    """Six readings in one factor, two of them faintly, so that these two are linked to no other."""
    rng = np.random.default_rng(seed)
    causes, factor = rng.standard_normal((2000, 4)), rng.standard_normal((2000, 1))
    y = causes @ [0.6, -0.6, 0.6, 0.6] + rng.standard_normal(2000)
    readings = 0.6 * y[:, None] + factor * [1.0, 1.0, 1.0, 1.0, 0.05, 0.05]
    X = np.column_stack([causes, readings + rng.standard_normal((2000, 6))])
    found = effect_blocks(*covariances(X, y), 2000, 1, np.arange(10))
    assert (found[4:8] >= 0).all()
    assert (found[:4] == -1).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_follows_the_causes_past_the_target_is_no_block_of_effects(seed):
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((2000, 6))
    y = 0.6 * causes.sum(axis=1) + rng.standard_normal(2000)
    f, g = rng.standard_normal((2, 2000, 1))
    beside = 0.12 * causes.sum(axis=1, keepdims=True) + f + rng.standard_normal((2000, 3))
    readings = 0.6 * y[:, None] + g + rng.standard_normal((2000, 2))
    X = np.column_stack([causes, beside, readings])
    found = effect_blocks(*covariances(X, y), 2000, 1, np.arange(11))
    assert (found[9:] >= 0).all()
    assert (found[:9] == -1).all()
