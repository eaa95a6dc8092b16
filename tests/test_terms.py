"""The flexible mean: finds the curve that is there, and none where there is none."""

import numpy as np
import pytest

from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.numerics.working import working_fit
from hetrisk.core.pooled.terms import (
    MOST_TERMS,
    Term,
    _robust_score,
    choose_terms,
    restricted,
    term_values,
)
from hetrisk.datasets import load_task

D = 6
APART = np.arange(D)
CURVES = {
    "triple": (lambda X: X[:, 0] * X[:, 2] * X[:, 3], Term("triple", (0, 2, 3))),
    "square": (lambda X: X[:, 1] ** 2, Term("square", (1,))),
    "product": (lambda X: X[:, 1] * X[:, 4], Term("product", (1, 4))),
    "difference": (lambda X: np.abs(X[:, 0] - X[:, 1]), Term("difference", (0, 1))),
    "sum": (lambda X: np.abs(X[:, 3] + X[:, 5]), Term("sum", (3, 5))),
}


def draw(curve, seed=0, n=1500, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0, 0.0] + curve(X) + noise * rng.normal(size=n)
    return Rows(X, y, np.ones(n))


@pytest.mark.parametrize("name", CURVES)
def test_a_planted_curve_is_the_first_term(name):
    curve, expected = CURVES[name]
    for seed in range(3):
        assert choose_terms(draw(curve, seed), Gaussian(), APART)[0] == expected


def test_a_planted_step_is_found_near_its_place():
    for seed in range(3):
        rows = draw(lambda X: 2.0 * (X[:, 2] > 0.3), seed)
        first = choose_terms(rows, Gaussian(), APART)[0]
        assert (first.kind, first.features) == ("step", (2,))
        assert abs(first.knot - 0.3) < 0.3


def test_a_planted_kink_is_found_near_its_place():
    first = choose_terms(draw(lambda X: np.abs(X[:, 2] + 0.6)), Gaussian(), APART)[0]
    assert (first.kind, first.features) == ("hinge", (2,))
    assert abs(first.knot + 0.6) < 0.4


def test_a_product_behind_labels_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, D))
    eta = X[:, 0] + 1.5 * X[:, 1] * X[:, 2]
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-eta))).astype(float)
    terms = choose_terms(Rows(X, y, np.ones(len(X))), Bernoulli(), APART)
    assert terms[0] == Term("product", (1, 2))


@pytest.mark.parametrize("noise", ["normal", "t3", "growing"])
def test_linear_data_stay_linear(noise):
    found = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, D))
        e = {
            "normal": rng.normal(size=600),
            "t3": rng.standard_t(3, 600),
            "growing": (0.3 + np.abs(X[:, 0])) * rng.normal(size=600),
        }[noise]
        found += bool(choose_terms(Rows(X, X[:, 0] + e, np.ones(600)), Gaussian(), APART))
    assert found <= 2


def test_columns_of_one_group_are_not_multiplied():
    rows = draw(lambda X: X[:, 1] * X[:, 4] + X[:, 0] * X[:, 1] * X[:, 4])
    groups = np.array([0, 1, 2, 3, 1, 4])
    terms = choose_terms(rows, Gaussian(), groups)
    for term in terms:
        assert len({groups[f] for f in term.features}) == len(term.features)
    together = choose_terms(rows, Gaussian(), APART)
    assert Term("product", (1, 4)) in together


def test_binary_columns_have_no_curves_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    X[:, 0] = X[:, 0] > 0
    y = 2 * X[:, 0] + X[:, 0] * X[:, 1] + rng.normal(size=1000)
    terms = choose_terms(Rows(X, y, np.ones(1000)), Gaussian(), np.arange(3))
    assert terms
    assert all(len(t.features) > 1 or t.features != (0,) for t in terms)


def test_too_few_rows_choose_nothing():
    rows = draw(lambda X: 5 * X[:, 1] ** 2, n=39)
    assert choose_terms(rows, Gaussian(), APART) == ()


def test_never_more_than_the_most():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1200, 12))
    pairs = sum(X[:, i] * X[:, j] for i in range(6) for j in range(i + 1, 6))
    terms = choose_terms(Rows(X, pairs, np.ones(1200)), Gaussian(), np.arange(12))
    assert len(terms) == MOST_TERMS
    assert len(set(terms)) == MOST_TERMS


def test_a_triple_is_found_among_many_features(monkeypatch):
    """In wide tables only features of promising smaller terms are tried three at a time."""
    monkeypatch.setattr("hetrisk.core.pooled.terms.TRIPLE_FEATURES", 6)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 16)) + 0.5
    y = X[:, 3] * X[:, 9] * X[:, 14] + 0.3 * rng.normal(size=2000)
    terms = choose_terms(Rows(X, y, np.ones(2000)), Gaussian(), np.arange(16))
    assert Term("triple", (3, 9, 14)) in terms


def test_a_product_of_three_is_not_hidden_by_the_rows_it_explains():
    """Its few large rows are in the residuals, too: against those it would seem chance."""
    found = 0
    for seed in range(10):
        task = load_task("selection_bias", seed=seed, n_samples=600, kappa=0.9, n_test=2)
        X, y, _ = task.train
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        rows = Rows(X, (y - y.mean()) / y.std(), np.ones(len(y)))
        found += Term("triple", (0, 1, 2)) in choose_terms(rows, Gaussian(), np.arange(10))
    assert found == 10


def test_the_robust_score_is_that_of_the_fit_with_the_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 0.5, 0.0] + 0.3 * X[:, 0] ** 2 + rng.standard_t(3, 200) * (1 + X[:, 0] ** 2)
    rows = Rows(X, y, rng.uniform(0.5, 2.0, 200))
    fit = working_fit(rows, Gaussian(), np.empty((200, 0)))
    added = fit.residualised(np.column_stack([X[:, 0] ** 2, X[:, 1] * X[:, 2]]))
    size, total = (fit.curvature[:, None] * added**2).sum(axis=0), added.T @ fit.residual
    expected = [abs(fit.extended(column[:, None]).z[-1]) for column in added.T]
    np.testing.assert_allclose(_robust_score(fit, added, size, total), expected, rtol=1e-8)


def test_values_are_clipped_products_and_plain_kinks():
    X = np.array([[10.0, 2.0, 3.0], [-1.0, 0.5, 1.0]])
    terms = (
        Term("triple", (0, 1, 2)),
        Term("product", (0, 1)),
        Term("square", (0,)),
        Term("cube", (0,)),
        Term("hinge", (0,), 1.0),
        Term("step", (0,), 0.0),
        Term("difference", (0, 1)),
        Term("sum", (0, 1)),
    )
    expected = [[24, 8, 16, 64, 9, 1, 8, 12], [-0.5, -0.5, 1, -1, 2, 0, 1.5, 0.5]]
    np.testing.assert_allclose(term_values(terms, X), expected)
    assert term_values((), X).shape == (2, 0)


def test_restricted_renames_columns_and_drops_what_is_lost():
    terms = (Term("product", (1, 4)), Term("hinge", (2,), 0.5), Term("square", (0,)))
    kept = restricted(terms, np.array([1, 2, 4]))
    assert kept == (Term("product", (0, 2)), Term("hinge", (1,), 0.5))
    X = np.random.default_rng(0).normal(size=(5, 6))
    np.testing.assert_array_equal(term_values(kept, X[:, [1, 2, 4]]), term_values(terms[:2], X))
