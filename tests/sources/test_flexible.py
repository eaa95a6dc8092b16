"""Terms and one population: what a mean may bend by, and targets that nothing differs in."""

import numpy as np
import pytest

from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.sources.flexible import fit_population
from hetrisk.core.sources.terms import Atom, Term, choose_terms, term_values, two_valued
from hetrisk.core.thresholds import Thresholds
from sources.made import one_population, standardised

LEVEL = Thresholds().alpha


def chosen(X, y, family=None, groups=None):
    groups = np.arange(X.shape[1]) if groups is None else groups
    return choose_terms(Rows(X, y, np.ones(len(y))), family or Gaussian(), groups, LEVEL)


def test_linear_rows_choose_no_term():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((600, 5))
        assert chosen(X, X @ [1, -1, 0.5, 0, 0] + rng.standard_normal(600)) == ()


@pytest.mark.parametrize(
    "curve",
    [
        lambda X: X[:, 0] * X[:, 1] * X[:, 2],
        lambda X: X[:, 0] * X[:, 3],
        lambda X: X[:, 0] ** 2,
        lambda X: 1.5 * X[:, 0] * np.sign(X[:, 1] - 0.37),
        lambda X: 2.0 * (X[:, 0] > 0.31) * (X[:, 2] > -0.2),
        lambda X: 1.5 * np.maximum(X[:, 0], X[:, 1]),
        lambda X: np.sin(2 * X[:, 2]),
    ],
)
def test_curves_are_found(curve):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1500, 4))
    y = X @ [0.5, -1, 1, 0.2] + curve(X) + 0.4 * rng.standard_normal(1500)
    terms = chosen(X, y)
    design = np.column_stack([np.ones(1500), X, term_values(terms, X)])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert left.std() < 0.47


def test_a_step_is_moved_to_its_place():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((1500, 2))
    terms = chosen(X, 2.0 * (X[:, 0] > 0.33) + 0.3 * rng.standard_normal(1500))
    knots = [atom.knot for term in terms for atom in term.atoms if atom.kind == "step"]
    assert min(abs(knot - 0.33) for knot in knots) < 0.03


def test_columns_of_one_group_make_no_products():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((800, 3))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(800)
    terms = chosen(X, y, groups=np.array([0, 0, 1]))
    assert not any({0, 1} <= term.columns for term in terms)


def test_labels_choose_terms_too():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((2000, 3))
    y = (rng.random(2000) < 1 / (1 + np.exp(-X[:, 0] - 2 * X[:, 1] * X[:, 2]))).astype(float)
    assert any({1, 2} <= term.columns for term in chosen(X, y, Bernoulli()))


def test_terms_are_products_of_atoms():
    X = np.array([[1.0, 2.0], [-3.0, 0.5]])
    term = Term((Atom("step", (0,), 0.0), Atom("column", (1,))))
    assert term(X).tolist() == [2.0, 0.0]
    assert term.columns == {0, 1}
    assert term_values((), X).shape == (2, 0)


def test_two_valued_columns():
    assert two_valued(np.array([0.0, 1.0, 1.0]))
    assert two_valued(np.ones(3))
    assert not two_valued(np.array([0.0, 1.0, 2.0]))


def test_draws_are_the_units_in_another_order_near_rows_of_similar_mean():
    rows = standardised(*one_population(0))
    population = fit_population(rows, np.arange(4), Thresholds())
    drawn = population.draws(3, 50, np.random.default_rng(0))
    for units in drawn:
        assert np.sort(units) == pytest.approx(np.sort(population.unit))
    order = np.argsort(population.mean)
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    where = {value: i for i, value in enumerate(population.unit)}
    moved = [abs(place[where[u]] - place[i]) for i, u in enumerate(drawn[0])]
    assert max(moved) < 50
    assert population.draws(1, None, np.random.default_rng(0)).shape == (1, len(rows))


def test_a_population_standardises_any_rows_as_its_own():
    rows = standardised(*one_population(1))
    population = fit_population(rows, np.arange(4), Thresholds())
    assert population.standardised(rows.X, rows.y) == pytest.approx(population.unit)


def test_noise_that_grows_is_followed_and_noise_that_does_not_is_left_alone():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((1500, 3))
    noise = rng.standard_normal(1500)
    steady = fit_population(Rows(X, X[:, 0] + noise, np.ones(1500)), np.arange(3), Thresholds())
    growing = fit_population(
        Rows(X, X[:, 0] + (0.3 + np.abs(X[:, 1])) * noise, np.ones(1500)),
        np.arange(3),
        Thresholds(),
    )
    assert steady.scale.std() / steady.scale.mean() < 0.1
    assert np.corrcoef(growing.scale, np.abs(X[:, 1]))[0, 1] > 0.9
