"""Probes: planted mixtures come back, and the target's noise is never looked at."""

import numpy as np
import pytest

from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.numerics.working import working_fit
from hetrisk.core.pooled.probes import TOL, _mixtures, fit_probes
from hetrisk.core.pooled.terms import Term, term_values

N = 2000


def planted(kind, seed=0, n=N):
    """Three causes, and a fourth feature that follows what they say: in two ways."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    s = X[:, :3] @ [1.0, -1.0, 0.5]
    second = rng.random(n) < 0.3
    if kind == "slopes":
        X[:, 3] = np.where(second, -1.0, 1.0) * s + 0.3 * rng.normal(size=n)
    else:
        X[:, 3] = s + np.where(second, 2.0, 0.2) * rng.normal(size=n)
    y = s + 0.3 * rng.normal(size=n)
    return Rows(X, y, np.ones(n)), second


def probe_of(rows, feature, tied, terms=(), groups=None):
    fit = working_fit(rows, Gaussian(), term_values(terms, rows.X))
    groups = np.arange(rows.X.shape[1]) if groups is None else groups
    return fit_probes(rows, fit, terms, groups, np.array([feature]), tied)[0]


def test_two_slopes_come_back():
    rows, second = planted("slopes")
    probe = probe_of(rows, 3, tied=True)
    order = np.argsort(-probe.weights)
    np.testing.assert_allclose(probe.slope[order], [1.0, -1.0], atol=0.06)
    np.testing.assert_allclose(probe.weights[order], [0.7, 0.3], atol=0.05)
    assert probe.variance[0] == probe.variance[1]
    np.testing.assert_allclose(np.sqrt(probe.variance), 0.3, atol=0.03)
    found = probe.responsibilities(rows.X, rows.y)[:, order[1]]
    clear = np.abs(rows.X[:, :3] @ [1.0, -1.0, 0.5]) > 1.0
    assert np.mean((found > 0.5)[clear] == second[clear]) > 0.98


def test_two_spreads_come_back():
    rows, _ = planted("spreads")
    probe = probe_of(rows, 3, tied=False)
    order = np.argsort(probe.variance)
    np.testing.assert_allclose(np.sqrt(probe.variance[order]), [0.2, 2.0], rtol=0.1)
    np.testing.assert_allclose(probe.weights[order], [0.7, 0.3], atol=0.06)


@pytest.mark.parametrize("tied", [True, False])
def test_responsibilities_are_probabilities_of_the_features_alone(tied):
    rows, _ = planted("slopes", seed=1)
    probe = probe_of(rows, 3, tied)
    far = np.vstack([rows.X, 1e6 * rows.X[:5]])
    r = probe.responsibilities(far, np.zeros(len(far)))
    assert probe.n_environments == r.shape[1] == 2
    assert ((r >= 0) & (r <= 1)).all()
    np.testing.assert_allclose(r.sum(axis=1), 1.0)
    np.testing.assert_array_equal(r, probe.responsibilities(far, np.full(len(far), np.nan)))


def test_the_prediction_leaves_the_feature_its_group_and_its_terms_out():
    rows, _ = planted("slopes")
    terms = (Term("product", (0, 1)), Term("product", (2, 3)), Term("square", (1,)))
    groups = np.array([0, 1, 2, 2])
    probe = probe_of(rows, 3, True, terms, groups)
    np.testing.assert_array_equal(probe.prediction[[3, 4, 6]], 0.0)  # x2, x3 and their product
    rest = np.column_stack([rows.X[:, :2], rows.X[:, 0] * rows.X[:, 1], rows.X[:, 1] ** 2])
    design = np.column_stack([np.ones(N), rest])
    expected = np.linalg.lstsq(design, rows.y, rcond=None)[0]
    np.testing.assert_allclose(probe.prediction[[0, 1, 2, 5, 7]], expected, atol=1e-6)


@pytest.mark.parametrize(("tied", "ratio"), [(True, -1.0), (True, 0.0), (False, 1.0)])
def test_the_likelihood_does_not_fall(tied, ratio, monkeypatch):
    rng = np.random.default_rng(0)
    s = rng.normal(size=(5, 400))
    x = s * rng.choice([-1, 1, 2], size=(5, 400)) + rng.normal(size=(5, 400))
    weight = rng.random(400)
    path = []
    for steps in range(1, 30):
        monkeypatch.setattr("hetrisk.core.pooled.probes.ITERATIONS", steps)
        path.append(_mixtures(x, s, weight, tied, ratio)[0])
    assert (np.diff(path, axis=0) > -1e-9).all()
    assert (np.diff(path, axis=0)[-1] < 10 * TOL).all()


def test_the_likelihood_is_that_of_the_mixture():
    """Up to a constant, against the density written out, where the iterations have settled."""
    rng = np.random.default_rng(3)
    s = rng.normal(size=(1, 500))
    x = s * rng.choice([-1, 1], size=(1, 500)) + 0.3 * rng.normal(size=(1, 500))
    likelihood, q, a, b, v = _mixtures(x, s, np.ones(500), True, -1.0)
    density = sum(
        q[k] / np.sqrt(v[k]) * np.exp(-0.5 * (x[0] - a[k] - b[k] * s[0]) ** 2 / v[k])
        for k in (0, 1)
    )
    np.testing.assert_allclose(likelihood, np.log(density).mean(), atol=2 * TOL)


def test_weights_count_as_rows():
    rows, _ = planted("slopes", n=600)
    twice = Rows(*(np.concatenate([part[:200], part]) for part in (rows.X, rows.y, rows.weight)))
    weighted = Rows(rows.X, rows.y, np.where(np.arange(600) < 200, 2.0, 1.0))
    a, b = probe_of(twice, 3, True), probe_of(weighted, 3, True)
    for name in ("prediction", "weights", "intercept", "slope", "variance"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-6)


def test_no_features_no_probes():
    rows, _ = planted("slopes")
    fit = working_fit(rows, Gaussian(), np.empty((N, 0)))
    assert fit_probes(rows, fit, (), np.arange(4), np.arange(0), True) == []


def test_features_side_by_side_are_as_each_alone():
    """Only the moment the iterations stop depends on the company."""
    rows, _ = planted("slopes")
    fit = working_fit(rows, Gaussian(), np.empty((N, 0)))
    every = fit_probes(rows, fit, (), np.arange(4), np.arange(4), True)
    alone = probe_of(rows, 3, True)
    assert [probe.feature for probe in every] == [0, 1, 2, 3]
    np.testing.assert_allclose(every[3].slope, alone.slope, atol=0.02)
