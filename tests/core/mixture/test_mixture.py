"""The mixture of regressions: EM against brute force, and the laws it obeys."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp, softmax

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.mixture.criteria import bic, fit_of, n_parameters, select_mixture
from hetrisk.core.mixture.mixture import MixtureParameters, em, fit_mixture
from hetrisk.core.numerics import ensemble
from hetrisk.core.numerics.ensemble import Mixtures, squared
from hetrisk.core.numerics.families import Bernoulli, Gaussian, Multinomial
from hetrisk.core.numerics.linear import least_squares
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import Rows

FAMILIES = [Gaussian(), Bernoulli(), Multinomial(3)]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)


def draw_rows(family, seed=0, n=400, d=3, K=2, noise=0.3):
    """Rows of a mixture of K regressions, with the coefficients behind them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    coef = rng.normal(0, 2, size=(K, family.n_outputs, d))
    environment = rng.choice(K, size=n, p=np.arange(K, 0, -1) / (K * (K + 1) / 2))
    eta = np.einsum("nd,nod->no", X, coef[environment])
    if family == Gaussian():
        y = eta[:, 0] + noise * rng.normal(size=n)
    elif family == Bernoulli():
        y = (rng.logistic(size=n) < eta[:, 0]).astype(float)
    else:
        y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1).astype(float)
    return Rows(X, y, rng.choice([0.5, 1.0, 2.0], size=n)), coef, environment


def draw_parameters(family, seed, d=3, K=2):
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(K, family.n_outputs, d))
    intercept = rng.normal(size=(K, family.n_outputs))
    coef, intercept = (
        coef - coef.mean(axis=1, keepdims=True),
        intercept - intercept.mean(1)[:, None],
    )
    if family.n_outputs == 1:
        coef, intercept = rng.normal(size=(K, d)), rng.normal(size=K)
    variance = rng.uniform(0.5, 2, size=K) if family == Gaussian() else np.ones(K)
    return MixtureParameters(rng.dirichlet(np.ones(K)), coef, intercept, variance, family)


def in_blocks(rows, block_rows=None):
    source = ArrayBlocks(rows.X, rows.y, rows.weight)
    source.block_rows = block_rows or source.block_rows
    return source


def joint(parameters, rows):
    """log q_k + log h_k by plain formulas, (n, K)."""
    columns = []
    for k in range(parameters.n_environments):
        eta = rows.X @ parameters.coef[k].T + parameters.intercept[k]
        if parameters.family == Gaussian():
            log_h = stats.norm(eta, np.sqrt(parameters.variance[k])).logpdf(rows.y)
        elif parameters.family == Bernoulli():
            log_h = stats.bernoulli(1 / (1 + np.exp(-eta))).logpmf(rows.y)
        else:
            log_h = np.log(softmax(eta, axis=1)[np.arange(len(rows)), rows.y.astype(int)])
        columns.append(np.log(parameters.weights[k]) + log_h)
    return np.stack(columns, axis=1)


def mean_log_likelihood(parameters, rows):
    return np.average(parameters.log_density(rows.X, rows.y), weights=rows.weight)


@every_family
@given(seed=st.integers(0, 10**6), K=st.integers(1, 4))
def test_densities_and_responsibilities_are_those_of_plain_formulas(family, seed, K):
    rows, _, _ = draw_rows(family, seed, n=20)
    parameters = draw_parameters(family, seed, K=K)
    expected = joint(parameters, rows)
    share = parameters.responsibilities(rows.X, rows.y)
    density = parameters.log_density(rows.X, rows.y)
    np.testing.assert_allclose(density, logsumexp(expected, axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(share, softmax(expected, axis=1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert parameters.n_environments == K


def test_a_distant_row_still_belongs_somewhere():
    parameters = draw_parameters(Gaussian(), 0)
    share = parameters.responsibilities(np.zeros((1, 3)), np.array([1e6]))
    assert np.isfinite(share).all()
    assert share.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("tied", [True, False])
def test_an_em_step_is_the_textbook_step(tied):
    rows, _, _ = draw_rows(Gaussian(), 1)
    start = draw_parameters(Gaussian(), 1)
    if tied:
        start = replace(start, variance=np.full(2, 0.8))
    stepped = em(in_blocks(rows), start, tied_variance=tied, max_iter=1, variance_floor=1e-12).value
    share = softmax(joint(start, rows), axis=1) * rows.weight[:, None]
    residual = []
    for k in range(2):
        design = np.column_stack([np.ones(len(rows)), rows.X])
        root = np.sqrt(share[:, k])
        beta = np.linalg.lstsq(design * root[:, None], rows.y * root, rcond=None)[0]
        np.testing.assert_allclose(stepped.intercept[k], beta[0])
        np.testing.assert_allclose(stepped.coef[k], beta[1:])
        residual.append(share[:, k] @ (rows.y - design @ beta) ** 2)
    mass = share.sum(axis=0)
    np.testing.assert_allclose(stepped.weights, mass / mass.sum())
    expected = np.full(2, sum(residual) / mass.sum()) if tied else residual / mass
    np.testing.assert_allclose(stepped.variance, expected)


@every_family
@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    K=st.integers(1, 4),
    d=st.integers(1, 4),
    n=st.integers(5, 60),
    tied=st.booleans(),
)
def test_the_likelihood_never_falls(family, seed, K, d, n, tied):
    rows, _, _ = draw_rows(family, seed, n=n, d=d)
    start = draw_parameters(family, seed, d=d, K=K)
    solution = em(
        in_blocks(rows), start, tied_variance=tied, tol=1e-12, max_iter=60, variance_floor=1e-3
    )
    assert (np.diff(solution.path) >= 0).all()
    # The path is the objective of the mixtures passed through, the last one included.
    ridge = (
        0.5 * family.ridge * ((solution.value.coef**2).sum() + (solution.value.intercept**2).sum())
    )
    assert solution.path[-1] == pytest.approx(mean_log_likelihood(solution.value, rows) - ridge)


def test_tied_variances_are_equal_whatever_the_start():
    rows, _, _ = draw_rows(Gaussian(), 1)
    start = replace(draw_parameters(Gaussian(), 1), variance=np.array([0.01, 5.0]))
    solution = em(in_blocks(rows), start, tied_variance=True)
    assert solution.value.variance[0] == solution.value.variance[1]
    assert (np.diff(solution.path) >= 0).all()


@every_family
def test_blocks_change_nothing(family):
    rows, _, _ = draw_rows(family, 2)
    start = draw_parameters(family, 2)
    whole = em(in_blocks(rows), start, max_iter=8, tol=0.0)
    parts = em(in_blocks(rows, 32), start, max_iter=8, tol=0.0)
    np.testing.assert_allclose(parts.path, whole.path, rtol=1e-9)
    np.testing.assert_allclose(parts.value.coef, whole.value.coef, rtol=1e-5, atol=1e-7)


@every_family
def test_relabelling_the_start_relabels_the_answer(family):
    rows, _, _ = draw_rows(family, 3)
    start = draw_parameters(family, 3, K=3)
    order = np.array([2, 0, 1])
    a = em(in_blocks(rows), start, max_iter=10, tol=0.0)
    b = em(in_blocks(rows), start.relabelled(order), max_iter=10, tol=0.0)
    np.testing.assert_allclose(b.path, a.path, rtol=1e-9)
    np.testing.assert_allclose(b.value.coef, a.value.coef[order], rtol=1e-5, atol=1e-7)
    share = a.value.responsibilities(rows.X, rows.y)
    np.testing.assert_allclose(b.value.responsibilities(rows.X, rows.y), share[:, order], atol=1e-6)


@every_family
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_rows_and_columns_does_not_matter(family, seed):
    rows, _, _ = draw_rows(family, seed)
    rng = np.random.default_rng(seed)
    n, d = rng.permutation(len(rows)), rng.permutation(3)
    a = fit_mixture(in_blocks(rows), 2, family, tol=1e-10)
    shuffled = Rows(rows.X[n], rows.y[n], rows.weight[n])
    b = fit_mixture(in_blocks(shuffled), 2, family, tol=1e-10)
    np.testing.assert_allclose(b.value.coef, a.value.coef, rtol=1e-3, atol=1e-4)
    c = fit_mixture(in_blocks(replace(rows, X=rows.X[:, d])), 2, family, tol=1e-10)
    assert c.path[-1] == pytest.approx(a.path[-1], abs=1e-7)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_rescaled_rows_are_the_same_mixture_rescaled(seed):
    rows, _, _ = draw_rows(Gaussian(), seed)
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(size=4), rng.uniform(0.5, 3.0, size=4)
    raw = Rows(centre[:3] + scale[:3] * rows.X, centre[3] + scale[3] * rows.y, rows.weight)
    parameters = fit_mixture(in_blocks(rows), 2, Gaussian()).value
    moved = parameters.unstandardised(centre, scale)
    np.testing.assert_allclose(
        moved.responsibilities(raw.X, raw.y), parameters.responsibilities(rows.X, rows.y), atol=1e-8
    )
    density = parameters.log_density(rows.X, rows.y) - np.log(scale[3])
    np.testing.assert_allclose(moved.log_density(raw.X, raw.y), density, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES[1:], ids=repr)
def test_rescaled_features_of_labels_are_the_same_mixture(family):
    rows, _, _ = draw_rows(family)
    parameters = draw_parameters(family, 0)
    centre, scale = np.array([1.0, -2.0, 3.0, 0.0]), np.array([2.0, 0.5, 4.0, 1.0])
    moved = parameters.unstandardised(centre, scale)
    raw = centre[:3] + scale[:3] * rows.X
    np.testing.assert_allclose(
        moved.responsibilities(raw, rows.y), parameters.responsibilities(rows.X, rows.y), atol=1e-9
    )


@every_family
def test_a_weight_of_two_is_the_row_twice(family):
    rows, _, _ = draw_rows(family, 4)
    weight = np.random.default_rng(0).integers(0, 3, size=len(rows))
    twice = np.repeat(np.arange(len(rows)), weight)
    a = fit_mixture(ArrayBlocks(rows.X, rows.y, weight.astype(float)), 2, family)
    b = fit_mixture(ArrayBlocks(rows.X[twice], rows.y[twice]), 2, family)
    assert a.path[-1] == pytest.approx(b.path[-1], abs=1e-6)
    np.testing.assert_allclose(a.value.coef, b.value.coef, rtol=0.02, atol=0.02)


def test_one_component_is_least_squares():
    rows, _, _ = draw_rows(Gaussian(), 5)
    fit = least_squares(moments(rows))
    parameters = fit_mixture(in_blocks(rows), 1, Gaussian()).value
    np.testing.assert_allclose(parameters.coef[0], fit.coef)
    assert parameters.intercept[0] == pytest.approx(fit.intercept)
    assert parameters.variance[0] == pytest.approx(fit.variance)
    np.testing.assert_array_equal(parameters.weights, [1.0])


@pytest.mark.parametrize("tied", [True, False])
def test_recovers_two_gaussian_components(tied):
    rows, coef, environment = draw_rows(Gaussian(), 6)
    parameters = fit_mixture(in_blocks(rows), 2, Gaussian(), tied_variance=tied).value
    np.testing.assert_allclose(parameters.coef, coef[:, 0], atol=0.15)
    assert parameters.weights[0] > parameters.weights[1]
    assert parameters.weights.sum() == pytest.approx(1.0)
    found = parameters.responsibilities(rows.X, rows.y).argmax(axis=1)
    assert (found == environment).mean() > 0.9


def test_free_variances_find_a_relation_that_weakens():
    rng = np.random.default_rng(0)
    x, quiet = rng.normal(size=1000), np.arange(1000) < 700
    y = x + np.where(quiet, 0.1, 1.5) * rng.normal(size=1000)
    rows = Rows(x[:, None], y, np.ones(1000))
    variance = fit_mixture(in_blocks(rows), 2, Gaussian(), tied_variance=False).value.variance
    np.testing.assert_allclose(np.sqrt(variance), [0.1, 1.5], rtol=0.2)


@every_family
def test_columns_left_out_have_zero_coefficients(family):
    rows, _, _ = draw_rows(family, 7)
    keep = np.array([False, True, True])
    wide = fit_mixture(in_blocks(rows), 2, family, columns=keep)
    alone = fit_mixture(in_blocks(replace(rows, X=rows.X[:, keep])), 2, family)
    assert wide.value.coef.shape[-1] == 3
    np.testing.assert_array_equal(wide.value.coef[..., 0], 0.0)
    np.testing.assert_allclose(wide.value.coef[..., keep], alone.value.coef)
    np.testing.assert_array_equal(wide.path, alone.path)


def test_no_columns_is_a_mixture_of_means():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(-3, 1, 300), rng.normal(3, 1, 100)])
    rows = Rows(rng.normal(size=(400, 2)), y, np.ones(400))
    parameters = fit_mixture(in_blocks(rows), 2, Gaussian(), columns=np.zeros(2, dtype=bool)).value
    np.testing.assert_allclose(parameters.intercept, [-3, 3], atol=0.3)
    np.testing.assert_array_equal(parameters.coef, np.zeros((2, 2)))


def test_a_sample_finds_the_start_and_all_rows_the_answer():
    rows, coef, _ = draw_rows(Gaussian(), 8, n=6000)
    sampled = fit_mixture(in_blocks(rows), 2, Gaussian(), sample_size=500)
    whole = fit_mixture(in_blocks(rows), 2, Gaussian(), sample_size=10**6)
    assert sampled.path[-1] == pytest.approx(whole.path[-1], abs=1e-6)
    np.testing.assert_allclose(sampled.value.coef, coef[:, 0], atol=0.05)


def test_the_same_seed_gives_the_same_answer():
    rows, _, _ = draw_rows(Gaussian(), 9)
    a, b = (fit_mixture(in_blocks(rows), 3, Gaussian(), seed=5) for _ in range(2))
    np.testing.assert_array_equal(a.value.coef, b.value.coef)


@pytest.mark.parametrize("tied", [True, False])
def test_no_component_collapses_on_a_few_rows(tied):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60)
    y[:6] = X[:6, 1]  # six rows without noise: variance zero would be infinitely likely
    rows = Rows(X, y, np.ones(60))
    solution = fit_mixture(in_blocks(rows), 2, Gaussian(), tied_variance=tied)
    floor = (1e-6 if tied else 1e-3) * least_squares(moments(rows)).variance
    assert (solution.value.variance >= floor * (1 - 1e-12)).all()
    assert np.isfinite(solution.path).all()


def test_an_emptied_component_stays_empty_and_harmless():
    rows, _, _ = draw_rows(Gaussian(), 10)
    start = draw_parameters(Gaussian(), 10)
    start = replace(start, weights=np.array([1.0, 0.0]))
    solution = em(in_blocks(rows), start, max_iter=50)
    np.testing.assert_allclose(solution.value.weights, [1.0, 0.0], atol=1e-12)
    assert np.isfinite(solution.value.coef).all()
    assert (np.diff(solution.path) >= 0).all()
    np.testing.assert_allclose(solution.value.coef[0], least_squares(moments(rows)).coef, rtol=1e-5)


def test_duplicated_columns_share_their_coefficients():
    rows, _, _ = draw_rows(Gaussian(), 11)
    double = replace(rows, X=rows.X[:, [0, 1, 2, 0]])
    plain = fit_mixture(in_blocks(rows), 2, Gaussian()).value
    parameters = fit_mixture(in_blocks(double), 2, Gaussian()).value
    np.testing.assert_allclose(parameters.coef[:, 0], parameters.coef[:, 3], rtol=1e-4)
    np.testing.assert_allclose(2 * parameters.coef[:, 0], plain.coef[:, 0], rtol=1e-3)


def test_squared_steps_reach_the_end_of_a_straight_path():
    """Steps that shrink by a constant factor are extrapolated to their limit."""

    def at(t):
        theta = np.full((1, 1, 1, 2), 1.0 - t)
        return Mixtures(np.ones((1, 1)), theta, np.ones((1, 1)))

    np.testing.assert_allclose(squared(at(1.0), at(0.9), at(0.81)).theta, 1.0)


def test_squared_steps_save_iterations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = np.where(rng.random(2000) < 0.6, 0.5, -0.2) * X[:, 0] + rng.normal(size=2000)
    rows = Rows(X, y, np.ones(2000))
    start = draw_parameters(Gaussian(), 0, d=1)
    solution = em(in_blocks(rows), start, tol=1e-9, max_iter=150)
    assert solution.converged  # plain EM needs more than a thousand


def test_the_criterion_is_its_formula():
    rows, _, _ = draw_rows(Gaussian(), 12)
    parameters = draw_parameters(Gaussian(), 12)
    fit = fit_of(rows, parameters)
    n, likelihood = rows.weight.sum(), rows.weight @ parameters.log_density(rows.X, rows.y)
    size = n_parameters(parameters, 3, tied_variance=True)
    assert size == 1 + 2 * 4 + 1
    assert n_parameters(parameters, 3, tied_variance=False) == size + 1
    assert n_parameters(draw_parameters(Bernoulli(), 0), 3, True) == 1 + 2 * 4
    assert n_parameters(draw_parameters(Multinomial(3), 0), 3, True) == 1 + 2 * 2 * 4
    assert bic(fit, size) == pytest.approx(-2 * likelihood + size * np.log(n))


@pytest.mark.parametrize("K", [1, 3])
def test_the_criterion_counts_and_stops_early(K):
    rows, _, _ = draw_rows(Gaussian(), 13, n=1500, d=2, K=K)
    source, asked = in_blocks(rows), []

    def fit(k):
        asked.append(k)
        return fit_mixture(source, k, Gaussian())

    options = {"n_features": 2, "tied_variance": True, "max_environments": 8}
    selection = select_mixture(source, fit, **options)
    assert selection.solution.value.n_environments == K
    assert asked == list(range(1, K + 2))
    assert selection.values.argmin() == K - 1


def test_the_search_ends_at_the_largest_number_allowed():
    rows, _, _ = draw_rows(Gaussian(), 13, n=1500, d=2, K=3)
    source = in_blocks(rows)
    selection = select_mixture(
        source,
        lambda k: fit_mixture(source, k, Gaussian()),
        n_features=2,
        tied_variance=True,
        max_environments=2,
    )
    assert selection.solution.value.n_environments == 2


@pytest.mark.parametrize("seed", range(6))
def test_extrapolated_variances_stay_above_the_floor(seed):
    """Rows that lie on a plane tempt a component to collapse on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    noisy = X[:, 1] + 1e-3 * rng.normal(size=60)
    y = 2 * X[:, 0] + 1 + np.where(rng.random(60) < 0.3, 0.0, noisy)
    design = np.column_stack([np.ones(60), X])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    found = fit_mixture(
        ArrayBlocks(X, y),
        2,
        Gaussian(),
        tied_variance=False,
        n_init=12,
        seed=seed,
        max_iter=10,
    )
    assert found.value.variance.min() >= 1e-3 * np.mean(residual**2) * (1 - 1e-9)


def test_a_step_past_all_numbers_is_given_up_and_ends_no_fit():
    """One of two mixtures is stretched beyond the largest number; the other climbs on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    rows = Rows(X, X[:, 0] + 0.3 * rng.normal(size=80), np.ones(80))
    family = Gaussian()
    design = family.design(rows)
    rules = ensemble.Rules(family, variance_floor=1e-3)

    def evaluate(mixtures):
        return ensemble.expectation(design, mixtures, family, np.ones((1, 80)))

    theta = rng.normal(size=(2, 2, 1, 3))
    start = ensemble.Mixtures(np.full((2, 2), 0.5), theta, np.ones((2, 2)))
    state = ensemble.begin(evaluate, start, rules)
    far = theta.copy()
    far[1] = 1e308
    before = ensemble.Mixtures(start.weights, far, start.variance)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(3):
            state = ensemble.climb(evaluate, replace(state, before=before), rules)
            assert np.isfinite(state.mixtures.theta).all()
    assert (state.objective >= ensemble.begin(evaluate, start, rules).objective).all()
