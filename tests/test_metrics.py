"""Errors by environment, and distances between environments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk import metrics
from hetrisk.datasets import load_task
from hetrisk.metrics import distances, environment_distance, environment_errors, task2vec


def two_worlds(n=400, d=3, K=2, classes=0, seed=0):
    """Rows of K environments with different slopes; labels where classes > 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    labels = np.arange(n) % K
    slopes = rng.standard_normal((K, max(classes, 1), d))
    scores = np.einsum("nd,ncd->nc", X, slopes[labels])
    if classes:
        y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    else:
        y = scores[:, 0] + 0.3 * rng.standard_normal(n)
    return X, y, labels


def test_errors_are_what_they_say():
    task = load_task("selection_bias", seed=0, n_samples=300, n_test=200)
    model = LinearRegression().fit(task.train.X, task.train.y)
    errors = environment_errors(model, task)
    assert list(errors) == list(task.test)
    X, y = task.test["r=2.3"]
    gap = model.predict(X) - y
    assert errors["r=2.3"] == pytest.approx(np.sqrt(np.mean(gap**2)))
    assert environment_errors(model, task, "mse")["r=2.3"] == pytest.approx(np.mean(gap**2))
    assert environment_errors(model, task, "mae")["r=2.3"] == pytest.approx(np.abs(gap).mean())
    largest = environment_errors(model, task, lambda m, X, y: np.abs(m.predict(X) - y).max())
    assert largest["r=2.3"] == pytest.approx(np.abs(gap).max())
    values = np.array(list(errors.values()))
    assert metrics.mean_error(errors) == pytest.approx(values.mean())
    assert metrics.std_error(errors) == pytest.approx(np.std(values, ddof=1))
    assert metrics.max_error(values) == values.max()


def test_errors_of_a_classifier():
    task = load_task("cats_and_dogs", seed=0, noise=0.2, n_samples=400, n_test=300)
    model = LogisticRegression().fit(task.train.X, task.train.y)
    errors = environment_errors(model, task)
    X, y = task.test["e4"]
    assert errors["e4"] == pytest.approx(1 - model.score(X, y))
    p = model.predict_proba(X)[np.arange(len(y)), y]
    logs = environment_errors(model, task, "log_loss")
    assert logs["e4"] == pytest.approx(-np.log(p).mean())


def test_error_messages():
    task = load_task("cats_and_dogs", seed=0, n_samples=20, n_test=10)
    with pytest.raises(ValueError, match="loss must be 'auto', a function, or one of 'rmse'"):
        environment_errors(None, task, "accuracy")
    with pytest.raises(ValueError, match=r"errors must be one number .* got shape \(0,\)"):
        metrics.mean_error({})
    with pytest.raises(ValueError, match=r"errors must be one number .* got shape \(2, 2\)"):
        metrics.max_error(np.ones((2, 2)))
    assert np.isnan(metrics.std_error([0.5]))


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_distance_laws(classes):
    X, y, labels = two_worlds(K=3, classes=classes)
    D = environment_distance(labels, X, y)
    assert D.shape == (3, 3)
    np.testing.assert_allclose(D, D.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(D), 0, atol=1e-12)
    assert (D[~np.eye(3, dtype=bool)] > 0).all()
    names = np.array(["b", "c", "a"])[labels]  # sorted names: a = 2, b = 0, c = 1
    np.testing.assert_allclose(
        environment_distance(names, X, y), D[np.ix_([2, 0, 1], [2, 0, 1])], atol=1e-9
    )
    shares = np.eye(3)[labels]
    np.testing.assert_allclose(environment_distance(shares, X, y), D, atol=1e-12)


@pytest.mark.parametrize("classes", [0, 2])
@given(seed=st.integers(0, 1000), scale=st.floats(0.01, 100), shift=st.floats(-50, 50))
@settings(max_examples=10, deadline=None)
def test_distance_does_not_depend_on_units_or_order(classes, seed, scale, shift):
    X, y, labels = two_worlds(n=120, classes=classes, seed=seed)
    D = environment_distance(labels, X, y)
    moved = X * np.array([scale, 1.0, -scale]) + shift
    target = y if classes else scale * y + shift
    np.testing.assert_allclose(environment_distance(labels, moved, target), D, rtol=1e-5, atol=1e-8)
    order = np.random.default_rng(seed).permutation(len(y))
    np.testing.assert_allclose(
        environment_distance(labels[order], X[order], y[order]), D, atol=1e-8
    )
    back = [2, 0, 1]
    np.testing.assert_allclose(environment_distance(labels, X[:, back], y), D, atol=1e-7)


def test_information_of_linear_probes_in_closed_form():
    """Large samples: F_j = w_j^2 E[x_j^2] / sigma^2, plus the prior."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 3))
    labels = np.arange(len(X)) % 2
    slopes = np.array([[1.0, -2.0, 0.0], [0.5, 0.0, 1.0]])
    sigma = np.array([0.5, 2.0])
    y = (X * slopes[labels]).sum(axis=1) + sigma[labels] * rng.standard_normal(len(X))
    expected = slopes**2 / sigma[:, None] ** 2 + distances.PRIOR_INFORMATION
    np.testing.assert_allclose(task2vec(labels, X, y), expected, rtol=0.03, atol=1e-3)


def test_sampling_noise_is_taken_off_the_information():
    """A useless feature's w^2 is about its variance, 1 / n here; what is left is about half."""
    rng = np.random.default_rng(0)
    n, found = 60, []
    for _ in range(100):
        X, y = rng.standard_normal((n, 3)), rng.standard_normal(n)
        found.append(task2vec(np.zeros(n), X, y)[0] - distances.PRIOR_INFORMATION)
    assert 0 < np.mean(found) < 0.75 / n


def test_information_of_logistic_probes_in_closed_form():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 2))
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    labels = np.zeros(len(X))

    def integrand(x):
        p = 1 / (1 + np.exp(-2 * x))
        return p * (1 - p) * 4 * x**2 * stats.norm.pdf(x)

    expected = integrate.quad(integrand, -9, 9)[0] + distances.PRIOR_INFORMATION
    information = task2vec(labels, X, y)[0]
    assert information[0] == pytest.approx(expected, rel=0.03)
    assert information[1] == pytest.approx(distances.PRIOR_INFORMATION, abs=1e-3)


def test_binary_information_against_scikit_learn():
    X, y, labels = two_worlds(n=4000, classes=2)
    binary = task2vec(labels, X, y)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    for k in range(2):
        probe = LogisticRegression(C=1e6).fit(z[labels == k], y[labels == k])
        p = probe.predict_proba(z[labels == k])[:, 1]
        F = (z[labels == k] ** 2 * (p * (1 - p))[:, None]).mean(axis=0) * probe.coef_[0] ** 2
        np.testing.assert_allclose(
            binary[k], F + distances.PRIOR_INFORMATION, rtol=0.05, atol=0.005
        )


def test_task2vec_does_not_see_signs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2))
    labels = np.arange(len(X)) % 2
    y = X[:, 0] * np.where(labels == 0, 1, -1) + 0.5 * rng.standard_normal(len(X))
    assert environment_distance(labels, X, y)[0, 1] < 0.01


def test_true_environments_are_further_apart_than_random_ones():
    task = load_task("selection_bias", seed=1, kappa=0.5)
    X, y, labels = task.train
    shuffled = np.random.default_rng(0).permutation(labels)
    true, chance = (environment_distance(which, X, y)[0, 1] for which in (labels, shuffled))
    assert true > 3 * chance


def test_what_is_invariant_is_alike_in_the_true_environments_and_what_is_variant_is_not():
    task = load_task("selection_bias", seed=1, kappa=0.5)
    X, y, labels = task.train
    variant, invariant = (
        environment_distance(labels, X[:, chosen], y)[0, 1]
        for chosen in (~task.invariant, task.invariant)
    )
    assert variant > 10 * invariant


@pytest.mark.parametrize("classes", [0, 2])
def test_an_environment_without_rows_is_nowhere(classes):
    X, y, labels = two_worlds(classes=classes)
    shares = np.eye(3)[labels * 2]  # nobody in the second
    D = environment_distance(shares, X, y)
    assert np.isnan(D[1]).all()
    assert np.isnan(D[:, 1]).all()
    np.testing.assert_allclose(D[np.ix_([0, 2], [0, 2])], environment_distance(labels, X, y))
    assert np.isnan(task2vec(shares, X, y)).any(axis=1).tolist() == [False, True, False]


def test_separable_and_noiseless_environments_stay_finite():
    task = load_task("cats_and_dogs", seed=0, n_samples=200, n_test=10)
    X, y, labels = task.train
    assert np.isfinite(environment_distance(labels, X, y)).all()
    X = np.random.default_rng(0).standard_normal((60, 2))
    X = np.column_stack([X, X[:, 0], np.ones(60)])  # a duplicated and a constant column
    exact = X[:, 0] * np.where(np.arange(60) % 2, 1, 2)
    assert np.isfinite(environment_distance(np.arange(60) % 2, X, exact)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_type": "ranking"}, "task_type must be 'auto', 'regression' or 'classification'"),
        ({"environments": np.zeros(3)}, r"environments must have length n_samples=50"),
        ({"environments": np.ones((50, 2))}, "rows summing to one"),
        (
            {"y": np.zeros(50), "task_type": "classification"},
            r"y must hold at least two classes; got only 0\.0\.$",
        ),
        ({"y": np.zeros(49)}, r"X must be \(n, d\) and y \(n,\); got \(50, 3\) and \(49,\)"),
        ({"X": np.full((50, 3), np.nan)}, "X must be finite"),
    ],
)
def test_distance_errors(change, message):
    X, y, labels = two_worlds(n=50)
    arguments = {"environments": labels, "X": X, "y": y} | change
    with pytest.raises(ValueError, match=message):
        environment_distance(**arguments)
