"""Slopes that differ between environments no feature betrays: believed only beyond the null."""

import numpy as np
import pytest

from hetrisk.core.numerics.families import Bernoulli, Gaussian
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.pooled.latent import LATENT_FEATURES, latent_slopes
from hetrisk.core.pooled.terms import Term

N = 1200


def rows_of(X, y):
    return Rows(X, (y - y.mean()) / y.std(), np.ones(len(y)))


def noises(rng, X):
    return {
        "normal": rng.normal(size=len(X)),
        "t3": rng.standard_t(3, len(X)),
        "growing": (0.3 + np.abs(X[:, 0])) * rng.normal(size=len(X)),
    }


@pytest.mark.parametrize("noise", ["normal", "t3", "growing"])
@pytest.mark.parametrize("seed", range(2))
def test_one_population_is_not_taken_for_several(noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 5))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * noises(rng, X)[noise]
    assert not latent_slopes(rows_of(X, y), Gaussian(), ()).believed


@pytest.mark.parametrize("seed", range(3))
def test_three_populations_are_believed(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 5))
    slopes = np.array([[1.0, 1, 1, 0, 0], [-1, 1, -1, 0, 0], [0, -1, 1, 1, 0]])
    y = (X * slopes[rng.integers(0, 3, 2000)]).sum(axis=1) + 0.1 * rng.normal(size=2000)
    found = latent_slopes(rows_of(X, y), Gaussian(), (), seed)
    assert found.believed
    assert found.gap.argmin() == 4
    again = latent_slopes(rows_of(X, y), Gaussian(), (), seed)
    assert (again.gain, again.score) == (found.gain, found.score)


def test_a_curve_that_the_terms_know_is_not_believed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = X[:, 0] + 2 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N)
    curve = (Term("product", (0, 1)),)
    assert not latent_slopes(rows_of(X, y), Gaussian(), curve).believed


def test_labels_of_one_logistic_model_are_not_believed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = (rng.random(N) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    assert not latent_slopes(Rows(X, y, np.ones(N)), Bernoulli(), ()).believed


@pytest.mark.parametrize(("mixed", "believed"), [(True, True), (False, False)])
def test_the_null_of_labels_is_drawn_from_their_probabilities(mixed, believed, monkeypatch):
    """With no least gain, the null alone decides: two rules behind the labels, or one."""
    monkeypatch.setattr("hetrisk.core.pooled.latent.GAIN", 0.0)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    first = (rng.random(N) < 0.5) | (not mixed)
    eta = np.where(first, 8 * X[:, 0], 8 * X[:, 1])
    y = (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
    found = latent_slopes(Rows(X, y, np.ones(N)), Bernoulli(), ())
    assert found.score != 0.0
    assert found.believed == believed


def test_wide_tables_are_looked_at_through_the_features_that_matter():
    rng = np.random.default_rng(0)
    d = LATENT_FEATURES + 6
    X = rng.normal(size=(N, d))
    slope = np.where(rng.random(N) < 0.4, -2.0, 3.0)
    y = slope * X[:, 3] + 2 * X[:, 4] + 0.2 * rng.normal(size=N)
    found = latent_slopes(rows_of(X, y), Gaussian(), ())
    assert found.gap.shape == (d,)
    assert (found.gap > 0).sum() <= LATENT_FEATURES
    assert found.believed
    assert found.gap.argmax() == 3
