"""What is measured about each feature, against brute force, and calibrated under the null."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.linear_model import LinearRegression

from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.numerics.working import working_fit
from hetrisk.core.pooled.evidence import (
    Change,
    consequences,
    explained_share,
    forks,
    leaving_out_cost,
    mean_log_likelihood,
    one_against_rest,
    redundancy,
    slope_change,
    squared_correlation,
    two_sided,
)
from hetrisk.core.pooled.probes import fit_probes
from hetrisk.core.pooled.terms import Term


def none(rows):
    return np.empty((len(rows), 0))


def two_sloped(n=400, seed=0, weighted=True):
    """Slopes of the second feature, and levels, that change with a soft partition."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 0.4
    second = np.clip(rng.random(n) * 0.7 + 0.3 * (X[:, 0] > 0), 0, 1)
    y = X @ [1.0, 1.0, 0.0] + second * (1 + 2 * X[:, 1]) + rng.normal(size=n)
    weight = rng.integers(1, 3, n).astype(float) if weighted else np.ones(n)
    return Rows(X, y, weight), second


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_slope_change_is_an_interaction_regression(others, weighted):
    rows, second = two_sloped(weighted=weighted)
    fit = working_fit(rows, Gaussian(), none(rows))
    features = np.array([2, 1, 0])
    partitions = np.column_stack([second, second, 1 - second])
    change = slope_change(fit, rows, features, partitions, others=others)
    for i, j in enumerate(features):
        r = partitions[:, i]
        share = np.average(r, weights=rows.weight)
        centred = (r - share)[:, None]
        added = centred * (rows.X if others else rows.X[:, [j]])
        design = np.column_stack([np.ones(len(r)), rows.X, centred, added])
        place = 5 + (j if others else 0)
        model = sm.WLS(rows.y, design, weights=rows.weight).fit(cov_type="HC3")
        gap, error = model.params[place], model.bse[place]
        mean = model.params[1 + j] + gap * (0.5 - share)
        size = np.hypot(mean, error)
        index = 0.5 * np.sqrt(max(gap**2 - error**2, 0.0)) / size
        assert change.z[i] == pytest.approx(gap / error, rel=1e-4)
        assert change.index[i] == pytest.approx(index, rel=1e-4, abs=1e-8)
        expected_error = 0.5 * error / size * np.sqrt(1 + index**2)
        assert change.error[i] == pytest.approx(expected_error, rel=1e-4)


def test_slope_change_in_hard_environments_is_two_fits():
    rows, second = two_sloped(n=800, weighted=False)
    second = (second > 0.5).astype(float)
    fit = working_fit(rows, Gaussian(), none(rows))
    change = slope_change(fit, rows, np.array([1]), second[:, None], others=True)
    slopes = [
        LinearRegression().fit(rows.X[second == k], rows.y[second == k]).coef_[1] for k in (0, 1)
    ]
    expected = 0.5 * abs(slopes[1] - slopes[0]) / abs(np.mean(slopes))
    assert change.index[0] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("others", [False, True])
def test_environments_too_small_say_nothing(others):
    rows, _ = two_sloped()
    fit = working_fit(rows, Gaussian(), none(rows))
    few = (np.arange(len(rows)) < 12).astype(float)[:, None]
    nobody = np.zeros((len(rows), 1))
    for second in (few, 1 - few, nobody):
        change = slope_change(fit, rows, np.array([1]), second, others=others)
        assert change.z[0] == change.index[0] == change.error[0] == 0.0


def test_no_feature_no_change():
    rows, _ = two_sloped()
    fit = working_fit(rows, Gaussian(), none(rows))
    for others in (False, True):
        change = slope_change(fit, rows, np.arange(0), np.empty((len(rows), 0)), others=others)
        assert change.index.shape == change.z.shape == (0,)


def test_changes_spread_over_and_update():
    part = Change(np.array([1.0, 2.0]), np.array([0.1, 0.2]), np.array([5.0, -6.0]))
    whole = part.spread_over(np.array([3, 1]), 4)
    np.testing.assert_array_equal(whole.index, [0, 2, 0, 1])
    np.testing.assert_array_equal(whole.error, [0, 0.2, 0, 0.1])
    np.testing.assert_array_equal(whole.z, [0, -6, 0, 5])
    other = Change(*(np.full(4, value) for value in (7.0, 8.0, 9.0)))
    mixed = whole.updated(other, np.array([True, False, False, True]))
    np.testing.assert_array_equal(mixed.index, [7, 2, 0, 7])
    np.testing.assert_array_equal(mixed.error, [8, 0.2, 0, 8])
    np.testing.assert_array_equal(mixed.z, [9, -6, 0, 9])


def bent(seed, n=3000):
    """The fourth feature follows x0^2 (a linear model leans on it); the others act themselves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = X[:, 0] ** 2 - 1 + rng.normal(size=n)
    y = X[:, 0] + X[:, 1] + X[:, 0] ** 2 + 0.5 * rng.normal(size=n)
    return Rows(X, y, np.ones(n))


def test_a_stand_in_is_told_from_what_the_curve_needs():
    rows = bent(0)
    found = redundancy(rows, Gaussian(), (Term("square", (0,)),))
    assert found.stand_in.tolist() == [False, False, False, True]
    assert found.needed[:2].all()
    linear = redundancy(rows, Gaussian(), ())
    assert not linear.stand_in.any()
    assert linear.flexible is linear.linear


def test_a_chance_curve_of_its_own_does_not_save_a_stand_in():
    rows, square = bent(1), Term("square", (0,))
    found = redundancy(rows, Gaussian(), (square, Term("product", (2, 3))))
    assert found.stand_in.tolist() == [False, False, False, True]
    own = replace(rows, y=rows.y + 2 * rows.X[:, 2] * rows.X[:, 3])  # now the curve is its own
    found = redundancy(own, Gaussian(), (square, Term("product", (2, 3))))
    assert not found.stand_in.any()


def test_a_coefficient_that_turns_round_is_not_kept():
    rng = np.random.default_rng(0)
    n = 4000
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 0] ** 2 - 1 + rng.normal(size=n)
    y = X[:, 1] + X[:, 0] ** 2 - 0.15 * X[:, 2] + 0.5 * rng.normal(size=n)
    found = redundancy(Rows(X, y, np.ones(n)), Gaussian(), (Term("square", (0,)),))
    assert found.lean[2] > 5
    assert found.flexible.z[3] < -5
    assert found.stand_in.tolist() == [False, False, True]


def crossed(n, seed, share):
    """A third feature that follows the first two in a share of the rows, and runs against them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    s = X[:, 0] + X[:, 1]
    X[:, 2] = 0.7 * np.where(rng.random(n) < share, s, -s) + rng.exponential(size=n)
    rows = Rows(X, s + rng.normal(size=n), rng.uniform(0.5, 2.0, n))
    fit = working_fit(rows, Gaussian(), none(rows))
    return rows, fit, fit_probes(rows, fit, (), np.arange(3), np.array([2]), True)


def test_two_slopes_that_cross_are_seen_where_the_pooled_slope_is_nothing():
    rows, fit, probes = crossed(2000, 0, 0.5)
    z = forks(rows, fit, probes)
    assert z[2] > 8
    assert np.isnan(z[:2]).all()  # not probed
    rows.X[:, 2] = rows.X[:, 2] > 0
    assert np.isnan(forks(rows, fit, probes)).all()


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_one_slope_does_not_fork_whatever_the_noise(share):
    z = np.array([forks(*crossed(500, seed, share))[2] for seed in range(100)])
    assert stats.kstest(z, "norm").pvalue > 1e-3


def causal(n=2000, seed=0, spread=None, labels=False, effects=2):
    """Three causes of y, then effects of y whose noise may be spread unevenly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3 + effects))
    y = X[:, :3] @ [1.0, -1.0, 0.8] + 0.7 * rng.normal(size=n)
    if labels:
        y = (y + rng.logistic(size=n) > 0).astype(float)
    hidden = rng.random(n) < 0.3
    width = np.ones(n) if spread is None else spread(X, y, hidden)
    X[:, 3:] = y[:, None] + width[:, None] * X[:, 3:]
    if not labels:
        y = (y - y.mean()) / y.std()
    return Rows((X - X.mean(axis=0)) / X.std(axis=0), y, np.ones(n))


@pytest.mark.parametrize("labels", [False, True])
def test_causes_and_effects_of_a_planted_system(labels):
    family = Bernoulli() if labels else Gaussian()
    rows = causal(n=4000, labels=labels)
    found = consequences(rows, family, np.arange(5))
    assert found.is_effect.tolist() == [False, False, False, True, True]
    assert found.is_cause.tolist() == [True, True, True, False, False]
    assert (found.mechanism[:3] == 1).all()
    assert (found.mechanism[3:] > 1e-3).all()  # one mechanism


@pytest.mark.parametrize("seed", range(5))
def test_correlated_features_of_a_homogeneous_table_are_no_effects(seed):
    rng = np.random.default_rng(seed)
    X = np.sqrt(0.6) * rng.normal(size=(2000, 1)) + np.sqrt(0.4) * rng.normal(size=(2000, 5))
    y = X @ [1.0, -0.5, 0.8, 0.0, 0.0] + rng.normal(size=2000)
    found = consequences(Rows(X, y / y.std(), np.ones(2000)), Gaussian(), np.arange(5))
    assert not found.is_effect.any()


def test_a_group_does_not_count_as_its_own_company():
    """Columns of one category always depend on each other: that alone makes no effect of them."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 3000)
    X = np.column_stack([np.eye(3)[code], rng.normal(size=3000)])
    y = X[:, 3] + 0.5 * (code == 1) + rng.normal(size=3000)
    rows = Rows(X - X.mean(axis=0), (y - y.mean()) / y.std(), np.ones(3000))
    found = consequences(rows, Gaussian(), np.array([0, 0, 0, 1]))
    assert not found.is_effect.any()
    alone = consequences(
        Rows(rows.X[:, :1], rows.y, rows.weight), Gaussian(), np.zeros(1, dtype=int)
    )
    assert not alone.is_effect.any()
    assert not alone.is_cause.any()


def test_two_sided_p_values():
    z = np.array([-1.96, 0.0, 3.0])
    np.testing.assert_allclose(two_sided(z), 2 * stats.norm.sf(np.abs(z)))


@pytest.mark.parametrize("weighted", [False, True])
def test_leaving_out_cost_is_the_refit(weighted):
    rows, _ = two_sloped(weighted=weighted)
    fit = working_fit(rows, Gaussian(), none(rows))

    def rmse(columns):
        X = rows.X[:, columns]
        model = LinearRegression().fit(X, rows.y, sample_weight=rows.weight)
        return np.sqrt(np.average((rows.y - model.predict(X)) ** 2, weights=rows.weight))

    expected = rmse([2]) / rmse([0, 1, 2]) - 1
    cost = leaving_out_cost(fit, rows, Gaussian(), np.array([0, 1]))
    assert cost == pytest.approx(expected, rel=1e-6)


def test_leaving_out_cost_of_a_label_is_near_the_refit():
    rows = causal(n=3000, labels=True)
    fit = working_fit(rows, Bernoulli(), none(rows))
    cost = leaving_out_cost(fit, rows, Bernoulli(), np.array([2]))
    design = sm.add_constant(rows.X)
    full = sm.Logit(rows.y, design).fit(disp=0)
    less = sm.Logit(rows.y, np.delete(design, 3, axis=1)).fit(disp=0)
    assert cost == pytest.approx(less.llf / full.llf - 1, rel=0.15)


@pytest.mark.parametrize("labels", [False, True])
def test_explained_share_of_the_log_likelihood(labels):
    family = Bernoulli() if labels else Gaussian()
    rows = causal(n=1000, labels=labels)
    model = sm.Logit if labels else sm.OLS
    some = np.array([True, True, False, False, False])

    def likelihood(columns):
        design = np.column_stack([np.ones(1000), rows.X[:, columns]])
        return model(rows.y, design).fit(**({"disp": 0} if labels else {})).llf

    null, part, every = likelihood([]), likelihood([0, 1]), likelihood([0, 1, 2, 3, 4])
    expected = (part - null) / (every - null)
    assert explained_share(rows, family, some) == pytest.approx(expected, rel=1e-2)
    assert explained_share(rows, family, np.ones(5, dtype=bool)) == pytest.approx(1.0)
    fit = working_fit(rows, family, none(rows))
    assert mean_log_likelihood(fit, rows, family) == pytest.approx(every / 1000, rel=1e-3)


def test_squared_correlation_with_weights():
    rows, _ = two_sloped()
    repeated = np.repeat(np.arange(len(rows)), rows.weight.astype(int))
    expected = [np.corrcoef(rows.X[repeated, j], rows.y[repeated])[0, 1] ** 2 for j in range(3)]
    np.testing.assert_allclose(squared_correlation(rows), expected)


def test_one_against_rest():
    rows = Rows(np.zeros((4, 1)), np.array([0.0, 2.0, 1.0, 2.0]), np.ones(4))
    targets = one_against_rest(rows)
    assert [list(t.y) for t, _ in targets] == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]]
    assert all(family.name == "bernoulli" for _, family in targets)
