"""The whole decision: which columns leave, from moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetrisk.core.stable.decision import (
    MOVED,
    NO_DIFFERENCE,
    PAYS,
    STAYS,
    decide,
    stable_columns,
)
from hetrisk.core.stable.evidence import MomentEvidence, RowEvidence
from hetrisk.core.stable.regressions import (
    Regressions,
    mean_and_worst,
    risk_at,
    standard_sums,
)
from hetrisk.datasets import load_task

from .made import drifting_cause, homogeneous, of, shifting_effect

ALL = [True] * 4
CAUSES = [True, True, True, False]


def decided(X, y, e, reach=1.0, keep=None, groups=None):
    d = X.shape[1]
    sums = standard_sums(of(X, y, e))
    evidence = RowEvidence(X, y[:, None], e, np.ones(len(y)))
    keep = np.zeros(d, dtype=bool) if keep is None else np.asarray(keep)
    groups = np.arange(d) if groups is None else np.asarray(groups)
    return decide(sums, evidence, reach, groups, keep)


def with_repeats(seed, n=600, d=24, repeated=10, K=3):
    """Columns that go along with each other, some in a second unit; effects that move."""
    rng = np.random.default_rng(seed)
    e = np.arange(n) % K
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    y = X[:, :3].sum(axis=1) + rng.normal(size=n)
    X[:, 5:] += 0.3 * rng.normal(size=(K, d - 5))[e] * y[:, None]
    of_which = rng.permutation(d)[:repeated]
    return np.column_stack([X, 2.5 * X[:, of_which] + 7.0]), y, e, of_which


@pytest.mark.parametrize("seed", range(12))
def test_columns_that_repeat_others_are_decided_with_them(seed):
    """No rounding tells which of them leaves."""
    X, y, e, of_which = with_repeats(seed)
    found, d = decided(X, y, e), X.shape[1]
    again = np.arange(d - len(of_which), d)
    np.testing.assert_array_equal(found.support[again], found.support[of_which])
    order = np.random.default_rng(seed).permutation(d)
    changed = decided(1e3 * X[:, order] - 3.0, y, e)
    np.testing.assert_array_equal(changed.support, found.support[order])
    np.testing.assert_array_equal(changed.proposed, found.proposed[order])


@pytest.mark.parametrize("seed", range(3))
def test_an_effect_whose_mechanism_moved_leaves(seed):
    X, y, e = shifting_effect(seed)
    found = decided(X, y, e, reach=4.0)
    assert found.support.tolist() == CAUSES
    assert found.why in (PAYS, MOVED)
    assert stable_columns(of(X, y, e), 4.0).tolist() == CAUSES


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reach", [1.0, 4.0])
@pytest.mark.parametrize("slopes", [(1.5, -0.5), (1.2, 0.5, -0.2), (1, 0.8, 0.4, 0.1, 0, -0.3)])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_a_cause_whose_slope_moves_stays(seed, reach, slopes, shift):
    X, y, e = drifting_cause(seed, slopes, shift=shift)
    found = decided(X, y, e, reach)
    assert found.support.all()
    assert found.why == STAYS
    assert found.p_slopes < 1e-6


def test_a_cause_that_flips_in_a_few_rows_leaves_where_that_lowers_the_loss():
    rng = np.random.default_rng(0)
    e = (np.arange(2000) >= 1700).astype(int)
    X = rng.standard_normal((2000, 4))
    slope = np.where(e == 0, 1.5, -1.5)
    y = X[:, :3].sum(axis=1) + slope * X[:, 3] + 0.5 * rng.standard_normal(2000)
    found = decided(X, y, e)
    assert found.why == PAYS
    assert found.support.tolist() == CAUSES
    assert found.risk < found.risk_plain


@pytest.mark.parametrize("seed", range(5))
def test_nothing_leaves_where_nothing_differs(seed):
    X, y, e = homogeneous(seed)
    found = decided(X, y, e, reach=4.0)
    assert found.why == NO_DIFFERENCE
    assert found.support.tolist() == ALL


def test_what_is_to_be_kept_never_leaves():
    X, y, e = shifting_effect()
    assert decided(X, y, e, 4.0, keep=[False, False, False, True]).support.tolist() == ALL
    assert decided(X, y, e, 4.0, keep=[True] * 4).support.tolist() == ALL
    assert stable_columns(of(X, y, e), 4.0, np.ones(4, dtype=bool)).tolist() == ALL


def test_columns_of_a_group_leave_together():
    X, y, e = shifting_effect()
    wide = np.column_stack([X, np.random.default_rng(0).standard_normal(len(y))])
    found = decided(wide, y, e, 4.0, groups=[0, 1, 2, 3, 3])
    assert found.support.tolist() == [True, True, True, False, False]


def test_one_column_alone():
    X, y, e = shifting_effect()
    assert stable_columns(of(X[:, 3:], y, e), 1.0).shape == (1,)
    assert stable_columns(of(X[:, 3:], y, 0 * e), 1.0).tolist() == [True]


def test_exact_and_constant_targets_are_no_fault():
    X, y, e = homogeneous()
    assert stable_columns(of(X, X[:, 0], e), 1.0).shape == (4,)
    assert stable_columns(of(X, np.ones(len(y)), e), 1.0).tolist() == ALL
    X[:, 1] = 3.0
    X[:, 2] = X[:, 0]
    assert stable_columns(of(X, y, e), 1.0).shape == (4,)


@given(seed=st.integers(0, 50), reach=st.sampled_from([0.0, 1.0, 4.0]))
def test_order_and_names_do_not_decide(seed, reach):
    rng = np.random.default_rng(seed)
    made = (shifting_effect, drifting_cause, homogeneous)[seed % 3]
    X, y, e = made(seed)
    support = stable_columns(of(X, y, e), reach)
    columns, names, rows = (rng.permutation(k) for k in (X.shape[1], e.max() + 1, len(y)))
    other = stable_columns(of(X[rows][:, columns], y[rows], names[e][rows]), reach)
    assert other.tolist() == support[columns].tolist()
    unit = np.exp(rng.uniform(-3, 3, X.shape[1]))
    assert stable_columns(of(X * unit + 5.0, -7.0 * y, e), reach).tolist() == support.tolist()


@given(seed=st.integers(0, 100), K=st.integers(1, 40))
def test_worst_of_environments(seed, K):
    losses = np.random.default_rng(seed).uniform(0.5, 2.0, K)
    mean, worst = mean_and_worst(losses)
    assert mean == pytest.approx(losses.mean())
    assert mean - 1e-12 <= worst <= losses.max() + 1e-12
    assert risk_at(losses, 0.0) == pytest.approx(mean)
    assert risk_at(losses, 1.0) == pytest.approx(worst)
    if K <= 10:
        assert worst == pytest.approx(losses.max())
    else:
        # Every environment twice: a tenth of twice as many is the same mean.
        assert mean_and_worst(np.repeat(losses, 2))[1] == pytest.approx(worst)


@given(seed=st.integers(0, 100), d=st.integers(1, 5), t=st.integers(1, 2))
def test_leaving_columns_out_is_fitting_without_them(seed, d, t):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(120), rng.standard_normal((120, d + t))])
    sums = np.stack([Z[k::3].T @ Z[k::3] for k in range(3)])
    full = Regressions.on(sums, np.ones(d, dtype=bool))
    at = np.array([0])
    support = np.arange(d) > 0
    step, fresh = full.without(at), Regressions.on(sums, support)
    np.testing.assert_allclose(step.coef, fresh.coef, atol=1e-9)
    np.testing.assert_allclose(step.rss, fresh.rss, atol=1e-8)
    several = full.losses_without([np.array([j]) for j in range(d)])
    np.testing.assert_allclose(several.pooled[0], fresh.losses().pooled, rtol=1e-9)
    np.testing.assert_allclose(several.own[0], fresh.losses().own, rtol=1e-9)


def test_losses_are_those_of_the_fit_to_all_rows():
    X, y, e = homogeneous(n=3000)
    sums = standard_sums(of(X, y, e))
    Z = np.column_stack([np.ones(len(y)), X])
    residual = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    losses = Regressions.on(sums, np.ones(4, dtype=bool)).losses()
    by_hand = np.array([(residual[e == k] ** 2).mean() for k in range(3)]) / y.var()
    np.testing.assert_allclose(losses.pooled, by_hand, rtol=0.01)
    assert losses.regret < 0.01


def test_moments_and_rows_are_much_the_same_witnesses():
    for made in (shifting_effect, drifting_cause, homogeneous):
        X, y, e = made(1)
        every = np.ones(4, dtype=bool)
        rows = RowEvidence(X, y[:, None], e, np.ones(len(y)))
        sums = MomentEvidence(standard_sums(of(X, y, e)), 1)
        assert (rows.slopes(every) < 0.01) == (sums.slopes(every) < 0.01)
        assert (rows.noise() < 0.01) == (sums.noise() < 0.01)
        without = np.array([True, True, True, False])
        assert (rows.column(3, without) < 0.01) == (sums.column(3, without) < 0.01)


def test_slopes_that_go_on_moving():
    X, y, e = drifting_cause(shift=0.5)
    sums = standard_sums(of(X, y, e))
    full = Regressions.on(sums, np.ones(4, dtype=bool))
    losses = full.losses()
    seen = mean_and_worst(losses.pooled - losses.own)[1]
    assert full.loss_if_slopes(full, 1.0) == pytest.approx(seen, rel=0.05)
    # Of the mean slope the loss grows with the square of the reach.
    even = Regressions.on(sums / sums[:, :1, :1], np.ones(4, dtype=bool))
    once, thrice = (even.loss_if_slopes(even, reach) for reach in (1.0, 3.0))
    assert thrice > 5.0 * once


@pytest.mark.parametrize("seed", [881, 886])
def test_the_set_of_least_loss_is_proposed(seed):
    task = load_task("spreading_effects", seed, spreads=(0.5, 0.8, 1.0))
    e = np.unique(task.train.environments, return_inverse=True)[1]
    found = decided(task.train.X, task.train.y, e, reach=4.0)
    assert found.support.tolist() == [True] * 6 + [False] * 3
