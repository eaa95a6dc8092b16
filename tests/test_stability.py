"""Evidence on stability: fits without the rows, scale freedom, groups, and what is informative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.environment_fits import cochran_q
from hetrisk.core.numerics.families import Bernoulli, Multinomial
from hetrisk.core.numerics.glm import fit_glms
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.paper.stability import (
    Quadratics,
    _log_prior,
    informative,
    log_likelihood_ratio,
    quadratics_from_fits,
    quadratics_from_moments,
    screen,
    wald,
)
from hetrisk.core.paper.thresholds import GATE_THRESHOLDS


def world(seed=0, n=1500, slopes=(0.2, 1.0, 1.8)):
    """Five columns: three stable, one with a slope of its own in each environment, one noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    environment = rng.integers(3, size=n)
    beta = np.array([1.0, -1.0, 2.0, 0.0, 0.0])
    y = X @ beta + np.asarray(slopes)[environment] * X[:, 3] + rng.normal(size=n)
    return X, y, np.eye(3)[environment]


def quadratics(X, y, shares):
    return quadratics_from_moments(moments(Rows(X, y, np.ones(len(y))), shares))


def test_fits_on_some_columns_are_least_squares_there():
    X, y, shares = world()
    keep = np.array([True, False, True, True, False])
    coef, variance, residual = quadratics(X, y, shares).fits(keep)
    for k, share in enumerate(shares.T):
        A = np.column_stack([np.ones(int(share.sum())), X[share > 0][:, keep]])
        b, rss, _, _ = np.linalg.lstsq(A, y[share > 0], rcond=None)
        s2 = rss[0] / (len(A) - 4)
        np.testing.assert_allclose(coef[k], b[1:])
        np.testing.assert_allclose(variance[k], s2 * np.diag(np.linalg.inv(A.T @ A))[1:])
        assert residual[k] == pytest.approx(s2)


def test_label_fits_on_some_columns_are_close_to_refits():
    X, y, shares = world(n=6000)
    rows = ArrayBlocks(X, (y > 0).astype(float), None, shares)
    keep = np.array([True, True, True, True, False])

    def weigh(block):
        return block.environments

    q = quadratics_from_fits(fit_glms(rows, Bernoulli(), weigh), Bernoulli())
    coef, _, _ = q.fits(keep)
    refits = fit_glms(rows, Bernoulli(), weigh, columns=keep)
    for k, refit in enumerate(refits):
        np.testing.assert_allclose(coef[k], refit.coef[0, keep], rtol=0.02, atol=0.02)


def test_the_ratio_tells_stable_from_unstable_and_says_nothing_when_errors_swamp_both():
    coef = np.array([[1.0, 1.0, 0.1], [1.02, 0.2, -0.1], [0.98, -0.5, 0.2]])
    precise = np.full((3, 3), 1e-4)
    ratio = log_likelihood_ratio(coef, precise)
    assert ratio[0] < -1.0
    assert ratio[1] > 5.0
    assert np.abs(log_likelihood_ratio(coef, np.full((3, 3), 100.0))).max() < 0.05


@given(st.floats(1e-3, 1e3), st.booleans())
def test_the_ratio_is_free_of_scale_and_sign(scale, negate):
    coef = np.array([[1.0, 0.5], [0.8, 0.1], [0.7, -0.2]])
    variance = np.full((3, 2), 0.01)
    factor = -scale if negate else scale
    np.testing.assert_allclose(
        log_likelihood_ratio(factor * coef, factor**2 * variance),
        log_likelihood_ratio(coef, variance),
        atol=1e-6,
    )


def test_the_ratio_does_not_depend_on_the_order_of_environments():
    coef = np.random.default_rng(0).normal(size=(4, 3))
    variance = np.full((4, 3), 0.05)
    np.testing.assert_allclose(
        log_likelihood_ratio(coef[::-1], variance), log_likelihood_ratio(coef, variance)
    )


def test_screening_leaves_out_the_unstable_feature():
    X, y, shares = world()
    stable, ratio = screen(quadratics(X, y, shares), np.arange(5))
    assert stable[:3].all()
    assert not stable[3]
    assert ratio[3] > GATE_THRESHOLDS.unstable_ratio > ratio[:3].max()


def test_a_group_shares_one_decision():
    X, y, shares = world()
    stable, _ = screen(quadratics(X, y, shares), np.array([0, 1, 2, 3, 3]))
    assert stable.tolist() == [True, True, True, False]


def test_a_step_that_is_not_affordable_is_not_taken():
    X, y, shares = world()
    stable, _ = screen(quadratics(X, y, shares), np.arange(5), lambda before, after: after[3])
    assert stable[3]


def test_informative_keeps_what_predicts_and_drops_noise():
    X, y, shares = world(slopes=(0.0, 0.0, 0.0))
    q = quadratics(X, y, shares)
    kept = informative(q, np.arange(5), np.ones(5, dtype=bool))
    assert kept.tolist() == [True, True, True, False, False]


def test_one_weak_feature_among_strong_ones_stays_and_several_go():
    """The same Wald statistic, 1.5 errors from zero, is judged by its company."""
    for n_strong, n_weak, n_kept in ((8, 1, 9), (5, 4, 5)):
        q = orthogonal(np.repeat([100.0, 1.5], [n_strong, n_weak]))
        assert informative(q, np.arange(9), np.ones(9, dtype=bool)).sum() == n_kept


@pytest.mark.parametrize("seed", range(5))
def test_a_table_of_noise_has_no_informative_feature(seed):
    z = np.random.default_rng(seed).normal(size=12)
    kept = informative(orthogonal(z), np.arange(12), np.ones(12, dtype=bool))
    assert kept.sum() <= 1


def test_the_last_feature_stays_if_it_is_significant_on_its_own():
    """Doubts about each of several weak features must not add up to nothing."""
    z = np.sqrt([5.4, 12.1, 1.0, 10.7, 1.2, 0.0, 0.0, 0.2])
    kept = informative(orthogonal(z), np.arange(8), np.ones(8, dtype=bool))
    assert kept.any()
    assert kept[np.argmax(z)]


def test_the_prior_is_a_probability_however_many_features():
    for n in (1, 5, 3000):
        k = np.arange(n + 1)
        chances = _log_prior(n, k) + gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        assert np.exp(chances).sum() == pytest.approx(1.0)
        assert np.exp(chances[0]) == pytest.approx(0.99 + 0.01 / (n + 1))


def test_features_that_repeat_each_other_are_not_all_dropped():
    X, y, _ = world(slopes=(0.0, 0.0, 0.0))
    rng = np.random.default_rng(1)
    X = np.column_stack([X, X[:, 0] + 1e-3 * rng.normal(size=len(X)), rng.normal(size=len(X))])
    q = quadratics(X, y, np.ones((len(y), 1)))
    kept = informative(q, np.arange(7), np.ones(7, dtype=bool))
    assert kept[0] | kept[5]
    assert kept[1:3].all()
    assert not kept[[3, 4, 6]].any()


def orthogonal(z, n=10_000):
    """One environment of orthogonal columns whose coefficients are z errors from zero."""
    return Quadratics(
        np.eye(len(z))[None],
        np.asarray(z)[None],
        np.array([z @ z + n]),
        np.array([n]),
        np.arange(len(z)),
    )


def test_wald_matches_a_t_test_of_one_environment():
    X, y, _ = world(n=400)
    statistic, rank = wald(quadratics(X, y, np.ones((400, 1))), np.arange(5), np.ones(5, bool))
    A = np.column_stack([np.ones(400), X])
    b, rss, _, _ = np.linalg.lstsq(A, y, rcond=None)
    t = b / np.sqrt(rss[0] / (400 - 6) * np.diag(np.linalg.inv(A.T @ A)))
    np.testing.assert_allclose(statistic, t[1:] ** 2, rtol=1e-6)
    assert rank.tolist() == [1.0] * 5


def test_wald_of_three_classes_counts_the_free_contrasts():
    X, y, shares = world(n=3000)
    codes = np.digitize(y, [-1, 1]).astype(float)
    rows = ArrayBlocks(X, codes, None, shares)
    fits = fit_glms(rows, Multinomial(3), lambda block: block.environments)
    q = quadratics_from_fits(fits, Multinomial(3))
    statistic, rank = wald(q, np.arange(5), np.ones(5, dtype=bool))
    assert rank.tolist() == [2.0] * 5
    assert (statistic[:3] > 50).all()
    assert statistic[4] < 20


def test_a_weak_feature_whose_coefficients_differ_by_chance_is_not_unstable():
    """One tenth with errors of a tenth: undecided between stable and unstable, and kept."""
    coef = np.array([[1.0, 0.1], [1.02, 0.25], [0.98, -0.02]])
    curvature = np.tile(np.eye(2) * 100.0, (3, 1, 1))
    total = 100.0 * (coef**2).sum(axis=1) + 97.0  # so that the residual variance is one
    q = Quadratics(curvature, 100.0 * coef, total, np.full(3, 100.0), np.arange(2))
    fitted, variance, _ = q.fits(np.ones(2, dtype=bool))
    assert log_likelihood_ratio(fitted, variance)[1] > GATE_THRESHOLDS.unstable_ratio
    np.testing.assert_allclose(cochran_q(fitted, variance)[1], 100 * np.var(coef[:, 1]) * 3)
    assert screen(q, np.arange(2))[0].all()


def test_a_strong_feature_has_to_show_that_it_is_stable():
    """Precise in one environment, anything in the other: no real difference, yet left out."""
    coef, error = np.array([[0.5], [-0.05]]), np.array([[0.02], [0.3]])
    assert cochran_q(coef, error**2)[0] < 3.84  # the 5 % point
    assert log_likelihood_ratio(coef, error**2)[0] > GATE_THRESHOLDS.unstable_ratio
    precision = error**-2
    q = Quadratics(
        precision[..., None],
        precision * coef,
        (precision * coef**2)[:, 0] + 98.0,
        np.full(2, 100.0),
        np.arange(1),
    )
    assert not screen(q, np.arange(1))[0].any()


def test_an_exact_fit_has_finite_errors():
    X, y, _ = world(n=12)
    shares = np.eye(3)[np.arange(12) % 3]
    coef, variance, residual = quadratics(X, y, shares).fits(np.ones(5, dtype=bool))
    assert np.isfinite(coef).all()
    assert (variance > 0).all()
    assert (residual > 0).all()
