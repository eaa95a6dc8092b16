"""The test of one mechanism: against brute force, level, power, and the same in any home."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Held, Rows
from hetrisk.core.pooled.evidence import consequences
from hetrisk.core.pooled.mechanism import false_discovery, mechanism_p_values, weighted_chi_squared

EFFECTS = np.array([False, False, False, True, True])
GROUPS = np.arange(5)


def even(X, y, hidden):
    return np.ones(len(y))


def causal(n=2000, seed=0, spread=even, labels=False, causes=np.asarray, noise="normal"):
    """Three causes of y, then two effects of y whose noise may be spread unevenly."""
    rng = np.random.default_rng(seed)
    X = causes(rng.normal(size=(n, 5)))
    y = X[:, :3] @ [1.0, -1.0, 0.8] + 0.7 * rng.normal(size=n)
    if labels:
        y = (y + rng.logistic(size=n) > 0).astype(float)
    hidden = rng.random(n) < 0.3
    draws = {"normal": rng.normal, "exponential": rng.exponential}
    drawn = rng.standard_t(3, size=(n, 2)) if noise == "t3" else draws[noise](size=(n, 2))
    X[:, 3:] = y[:, None] + spread(X, y, hidden)[:, None] * drawn
    y = y if labels else (y - y.mean()) / y.std()
    return Rows((X - X.mean(axis=0)) / X.std(axis=0), y, np.ones(n))


def p_value(rows, family=None, effects=EFFECTS, groups=GROUPS, j=3):
    family = Gaussian() if family is None else family
    columns = np.flatnonzero(effects)
    p = mechanism_p_values(Held(rows), family, groups, columns)
    return float(p[columns == j][0])


def test_the_statistic_by_hand():
    """Residuals by statsmodels, weights by scipy, the null distribution by drawing from it."""
    rows = causal(800, seed=1, spread=lambda X, y, hidden: 1 + 0.25 * (X[:, 0] > 0))
    y = rows.y
    known = sm.add_constant(
        np.column_stack([y, np.clip(y, -4, 4) ** 2, np.clip(y, -4, 4) ** 3, abs(y)])
    )

    def left(v):
        return np.asarray(sm.OLS(v, known).fit().resid)

    def spread(v):
        return left(np.minimum(abs(left(v)) / np.sqrt(np.mean(left(v) ** 2)), 3) ** 1.5)

    others = [rows.X[:, i] for i in (0, 1, 2, 4)]
    columns = [left(x) for x in others] + [left(np.minimum(abs(x), 3) ** 2) for x in others]
    heard = np.array([1 + min(stats.jarque_bera(x).statistic / 4, 4) for x in others])
    weight = np.concatenate([heard, heard / 2, [4.0]])
    scores = np.column_stack([*columns, spread(rows.X[:, 4])]) * spread(rows.X[:, 3])[:, None]
    z = scores.sum(axis=0) / np.sqrt((scores**2).sum(axis=0))
    unit = scores / np.sqrt((scores**2).sum(axis=0))
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(9), unit.T @ unit, 400_000)
    expected = np.mean((draws**2) @ weight > weight @ z**2)
    assert 0.001 < expected < 0.2
    assert p_value(rows) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("even", {}),
        ("follows y", {"spread": lambda X, y, hidden: 0.3 + np.abs(y)}),
        ("heavy tails", {"noise": "t3"}),
        ("skewed", {"noise": "exponential"}),
        ("a target of heavy tails", {"causes": np.exp}),
        ("labels", {"labels": True}),
    ],
)
def test_it_keeps_its_level(name, changes):
    family = Bernoulli() if changes.get("labels") else Gaussian()
    p = np.array([p_value(causal(n=800, seed=seed, **changes), family) for seed in range(200)])
    assert stats.binom.sf((p < 0.05).sum() - 1, len(p), 0.05) > 1e-3
    assert stats.binom.sf((p < 0.2).sum() - 1, len(p), 0.2) > 1e-3
    assert stats.binom.cdf((p < 0.2).sum(), len(p), 0.2) > 1e-4  # nor is it asleep


@pytest.mark.parametrize(
    "spread",
    [
        lambda X, y, hidden: np.where(X[:, 0] > 0, 1.5, 0.5),
        lambda X, y, hidden: np.where(np.abs(X[:, 0]) > 1, 1.5, 0.5),
        lambda X, y, hidden: np.where(hidden, 1.5, 0.3),
    ],
    ids=["with a cause", "with the size of a cause", "with the other effect"],
)
@pytest.mark.parametrize("labels", [False, True])
def test_it_has_power(spread, labels):
    family = Bernoulli() if labels else Gaussian()
    for seed in range(5):
        assert p_value(causal(n=1500, seed=seed, spread=spread, labels=labels), family) < 1e-4


def test_a_feature_that_environments_shift_is_listened_to():
    """A few rows of another environment, where one of many causes is lower and noise is wider."""
    low = {False: 0, True: 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, d = 1200, 12
        elsewhere = rng.random(n) < 0.08
        X = rng.normal(size=(n, d + 1))
        X[:, 0] -= 2.0 * elsewhere
        y = X[:, :d].sum(axis=1) + rng.normal(size=n)
        X[:, d] = y + np.where(elsewhere, 2.0, 1.0) * X[:, d]
        rows = Rows(X / X.std(axis=0), (y - y.mean()) / y.std(), np.ones(n))
        for shifted in (False, True):
            told = rows if shifted else replace(rows, X=_normal_scores(rows.X))
            effects = np.arange(d + 1) == d
            low[shifted] += p_value(told, None, effects, np.arange(d + 1), d) < 0.05
    assert low[True] >= 27
    assert low[True] > low[False]


def _normal_scores(X):
    ranks = stats.rankdata(X[:, :-1], axis=0) / (len(X) + 1)
    return np.column_stack([stats.norm.ppf(ranks), X[:, -1]])


def test_an_environment_that_only_shows_in_the_spread_of_another_effect():
    rows = causal(4000, spread=lambda X, y, hidden: np.where(hidden, 3.0, 0.5))
    assert p_value(rows) < 1e-6
    alone = replace(rows, X=rows.X[:, :4])
    assert p_value(alone, effects=EFFECTS[:4], groups=GROUPS[:4]) > 1e-3


def test_columns_of_its_own_group_are_no_evidence():
    rng = np.random.default_rng(0)
    rows = causal(n=1500)
    twin = rows.X[:, 3] * np.sign(rng.normal(size=1500) + 0.2)  # its spread is that of column 3
    wide = Rows(np.column_stack([rows.X, np.abs(rows.X[:, 3]), twin]), rows.y, rows.weight)
    for groups, low in ((np.array([0, 1, 2, 3, 4, 3, 3]), False), (np.arange(7), True)):
        effects = consequences(wide, Gaussian(), groups).is_effect
        assert (p_value(wide, effects=effects, groups=groups) < 1e-3) == low


def test_blocks_and_weights():
    rows = causal(6000, 2, lambda X, y, hidden: 1 + 0.05 * (X[:, 0] > 0))
    blocks = ArrayBlocks(rows.X, rows.y)
    blocks.block_rows = 700
    got = mechanism_p_values(blocks, Gaussian(), GROUPS, np.array([3, 4]))
    assert got[0] == pytest.approx(p_value(rows), rel=1e-6)
    assert got[1] == pytest.approx(p_value(rows, j=4), rel=1e-6)
    assert mechanism_p_values(blocks, Gaussian(), GROUPS, np.empty(0, int)).shape == (0,)
    some = np.arange(6000) < 4000
    weighted = replace(rows, weight=some.astype(float))
    fewer = Rows(rows.X[some], rows.y[some], rows.weight[some])
    assert p_value(weighted) == pytest.approx(p_value(fewer), rel=1e-6)


def test_of_many_features_those_far_from_normal_are_heard():
    """Spreads that follow one skewed feature among two hundred normal ones."""
    rng = np.random.default_rng(0)
    n = 1500
    X = rng.normal(size=(n, 202))
    X[:, 150] = rng.exponential(size=n) - 1.0
    y = X[:, 100:200].sum(axis=1) / 10 + rng.normal(size=n)
    X[:, 200:] = y[:, None] + np.exp(0.3 * X[:, [150]]) * X[:, 200:]
    rows = Rows(X / X.std(axis=0), (y - y.mean()) / y.std(), np.ones(n))
    assert p_value(rows, effects=np.arange(202) >= 200, groups=np.arange(202), j=200) < 1e-3


def test_columns_that_say_nothing_are_harmless():
    rows = causal(1500)
    wide = replace(rows, X=np.column_stack([rows.X, np.zeros(1500), rows.X[:, 0]]))
    p = p_value(wide, effects=np.append(EFFECTS, [False, False]), groups=np.arange(7))
    assert 0.0 <= p <= 1.0
    alone = replace(rows, X=rows.X[:, 3:4])
    assert p_value(alone, effects=np.ones(1, dtype=bool), groups=np.zeros(1, int), j=0) == 1.0


@given(st.integers(1, 30), st.floats(0.01, 200))
def test_equal_weights_are_the_chi_squared_test(m, q):
    expected = stats.chi2.sf(q, m)
    assert weighted_chi_squared(3 * q, np.full(m, 3.0)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("weights", [[5, 1, 1, 1], [3, 2, 1, 0.5, 0.1], [1, 0, 0]])
def test_unequal_weights_against_draws(weights):
    weights = np.array(weights, dtype=float)
    drawn = np.random.default_rng(0).chisquare(1, size=(1_000_000, len(weights))) @ weights
    for level in (0.5, 0.1, 0.05, 0.01, 0.001):
        p = weighted_chi_squared(float(np.quantile(drawn, 1 - level)), weights)
        assert p == pytest.approx(level, rel=0.1)
    assert weighted_chi_squared(0.0, np.zeros(3)) == 1.0


def by_hand(p_values, rate):
    """Benjamini and Hochberg with the share of true hypotheses of Storey, one by one."""
    m = len(p_values)
    true = min(1.0, (1 + sum(p > 0.5 for p in p_values)) / (0.5 * m))
    best = 0
    for k, p in enumerate(sorted(p_values), start=1):
        if p <= 0.5 and p * true * m <= rate * k:
            best = k
    cut = sorted(p_values)[best - 1] if best else -1.0
    return [bool(p <= cut) for p in p_values]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80), st.sampled_from([0.05, 0.1, 0.2]))
def test_false_discovery_by_hand(p_values, rate):
    assert false_discovery(np.array(p_values), rate).tolist() == by_hand(p_values, rate)


def test_false_discovery_is_plain_benjamini_hochberg_where_half_or_more_are_large():
    p = np.array([0.001, 0.02, 0.03, 0.7, 0.8, 0.9])
    expected = stats.false_discovery_control(p) <= 0.1
    np.testing.assert_array_equal(false_discovery(p, 0.1), expected)
    assert false_discovery(np.empty(0), 0.1).shape == (0,)


def test_false_discovery_gives_the_last_no_benefit_of_the_doubt():
    p = np.array([1e-8, 1e-6, 1e-5, 1e-4, 0.2])
    assert false_discovery(p, 0.1).all()
    assert not (stats.false_discovery_control(p) <= 0.1).all()


def test_false_discovery_never_rejects_what_counts_as_true():
    p = np.append(np.full(60, 1e-6), 0.9)
    np.testing.assert_array_equal(false_discovery(p, 0.1), p < 0.5)
