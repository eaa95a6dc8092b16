"""Invariant prediction with known environments (M_p)."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk import InvariantClassifier, InvariantRegressor
from hetrisk.datasets import load_task


@parametrize_with_checks([InvariantRegressor(), InvariantClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def task():
    return load_task("selection_bias", seed=0, r=1.9)


def test_free_of_scale_and_level(task):
    X, y, e = task.train
    scale = np.geomspace(1e-3, 1e3, 10)
    for given in ({}, {"invariance_penalty": 0.3, "gate_penalty": 0.01}):
        plain = InvariantRegressor(**given).fit(X, y, environments=e)
        moved = InvariantRegressor(**given).fit(X * scale - 5.0, 20.0 * y + 1000.0, environments=e)
        np.testing.assert_allclose(moved.gates_, plain.gates_, atol=1e-5)
        np.testing.assert_allclose(moved.coef_ * scale / 20.0, plain.coef_, rtol=1e-6, atol=1e-9)


def test_feature_groups_share_a_gate(task):
    X, y, e = task.train
    groups = ["a", "a", "b", "b", "b", "v", "v", "n", "n", "n"]
    model = InvariantRegressor(feature_groups=groups).fit(X, y, environments=e)
    for name in set(groups):
        assert len(set(model.support_[np.array(groups) == name])) == 1
    assert model.support_[:5].all()
    assert not model.support_[5:7].any()
    with pytest.raises(ValueError, match="feature_groups must hold one name or integer per column"):
        InvariantRegressor(feature_groups=["a"]).fit(X, y)


def test_environments_as_labels_or_responsibilities(task):
    X, y, e = task.train
    by_code = InvariantRegressor().fit(X, y, environments=e)
    by_name = InvariantRegressor().fit(X, y, environments=np.where(e == 0, "east", "west"))
    by_share = InvariantRegressor().fit(X, y, environments=np.eye(2)[e])
    assert by_name.environment_names_.tolist() == ["east", "west"]
    assert by_share.environment_names_ is None
    for other in (by_name, by_share):
        np.testing.assert_allclose(other.gates_, by_code.gates_)
        np.testing.assert_allclose(other.coef_, by_code.coef_)


def test_bad_environments_are_named(task):
    X, y, e = task.train
    with pytest.raises(ValueError, match=r"environments must have length n_samples=2000; got 1999"):
        InvariantRegressor().fit(X, y, environments=e[:-1])
    with pytest.raises(ValueError, match="non-negative with rows summing to one"):
        InvariantRegressor().fit(X, y, environments=np.ones((2000, 2)))
    with pytest.raises(TypeError, match="positional"):
        InvariantRegressor().fit(X, y, e)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["selection_bias", "anti_causal"])
def test_known_environments_give_the_invariant_features(name, seed):
    X, y, e = load_task(name, seed=seed).train
    task = load_task(name, seed=seed)
    support = InvariantRegressor().fit(X, y, environments=e).support_
    np.testing.assert_array_equal(support[task.identifiable], task.invariant[task.identifiable])


@pytest.mark.parametrize("penalty", ["trace", "masked"])
def test_without_a_refit_it_is_the_gated_model(task, penalty):
    X, y, e = task.train
    given = {"invariance_penalty": 10.0, "gate_penalty": 0.003, "penalty": penalty}
    gated = InvariantRegressor(**given, refit=False).fit(X, y, environments=e)
    refitted = InvariantRegressor(**given).fit(X, y, environments=e)
    np.testing.assert_array_equal(gated.support_, refitted.support_)
    assert np.abs(gated.coef_ - refitted.coef_).max() > 1e-4


def test_multiclass_and_the_logistic_refit(task):
    X, y, e = task.train
    target = np.array(["low", "mid", "high"])[np.digitize(y, [-1, 1])]
    model = InvariantClassifier().fit(X, target, environments=e)
    assert model.support_[:5].all()
    binary = InvariantClassifier().fit(X, y > 0, environments=e)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    reference = LogisticRegression(tol=1e-8, max_iter=1000)
    reference.fit(((X - centre) / spread)[:, binary.support_], y > 0)
    coef = (binary.coef_ * spread)[:, binary.support_]
    np.testing.assert_allclose(coef, reference.coef_, rtol=1e-3, atol=1e-3)
