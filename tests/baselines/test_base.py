"""What every baseline owes a scikit-learn user, checked over the registry."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk.baselines import (
    BASELINES,
    AnchorRegressor,
    DirectionsRegressor,
    GroupDRORegressor,
)

from .conftest import table

ALONE = [AnchorRegressor, DirectionsRegressor]
ESTIMATORS = [kind for b in BASELINES.values() for kind in (b.regressor, b.classifier)] + ALONE
TUNED = [kind for kind in ESTIMATORS if kind.strength]
LABELLED = [
    kind for b in BASELINES.values() if b.needs_labels for kind in (b.regressor, b.classifier)
] + ALONE


def rows_of(kind, seed=0, **shape):
    X, y, environments, f = table(seed, **shape)
    if hasattr(kind, "predict_proba"):
        y = (f > np.median(f)).astype(int)
        y[::7] = 1 - y[::7]
    return X, y, environments


def fitted(kind, X, y, environments, **parameters):
    model = kind(**parameters)
    return model.fit(X, y, environments=environments) if kind in LABELLED else model.fit(X, y)


def quick(kind):
    """Regressors choose their strength; classifiers are given one, to keep the checks quick."""
    fixed = kind.strength and hasattr(kind, "predict_proba")
    return kind(**{kind.strength: 0.1}) if fixed else kind()


def fitted_quickly(kind, X, y, environments):
    model = quick(kind)
    return model.fit(X, y, environments=environments) if kind in LABELLED else model.fit(X, y)


@parametrize_with_checks([quick(kind) for kind in ESTIMATORS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_order_of_rows_and_names_of_environments_do_not_matter(kind):
    X, y, environments = rows_of(kind)
    strength = {kind.strength: 0.5} if kind.strength else {}
    model = fitted(kind, X, y, environments, **strength)
    order = np.random.default_rng(5).permutation(len(y))
    names = np.array(["west", "east"])[environments[order]]
    again = fitted(kind, X[order], y[order], names, **strength)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_shift_of_features_does_not_matter(kind):
    X, y, environments = rows_of(kind)
    strength = {kind.strength: 0.5} if kind.strength else {}
    model = fitted(kind, X, y, environments, **strength)
    moved = fitted(kind, X + 100.0, y, environments, **strength)
    np.testing.assert_allclose(moved.coef_, model.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [k for k in ESTIMATORS if k.standardise])
def test_units_do_not_matter(kind):
    X, y, environments = rows_of(kind)
    strength = {kind.strength: 0.5} if kind.strength else {}
    model = fitted(kind, X, y, environments, **strength)
    scaled = fitted(kind, X * [1e3, 1.0, 1e-3], y, environments, **strength)
    np.testing.assert_allclose(scaled.coef_ * [1e3, 1, 1e-3], model.coef_, rtol=1e-4, atol=1e-6)
    if not hasattr(kind, "predict_proba"):
        larger = fitted(kind, X, 1e4 * y, environments, **strength)
        np.testing.assert_allclose(larger.coef_, 1e4 * model.coef_, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("kind", [k for k in ESTIMATORS if not k.standardise])
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_a_radius_goes_along_with_the_unit(kind, unit):
    X, y, environments = rows_of(kind)
    model = fitted(kind, X, y, environments, radius=0.5)
    scaled = fitted(kind, X * unit, y, environments, radius=0.5 * unit)
    np.testing.assert_allclose(scaled.coef_ * unit, model.coef_, rtol=1e-3)


@pytest.mark.parametrize("kind", LABELLED)
def test_labels_and_their_matrix_say_the_same(kind):
    X, y, environments = rows_of(kind)
    strength = {kind.strength: 0.5} if kind.strength else {}
    by_label = fitted(kind, X, y, environments, **strength)
    by_matrix = fitted(kind, X, y, np.eye(2)[environments], **strength)
    np.testing.assert_allclose(by_matrix.coef_, by_label.coef_, rtol=1e-9)


@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize(
    ("environments", "message"),
    [
        (np.zeros(7), r"environments must have length n_samples=240; got 7"),
        (np.zeros((240, 2)), r"rows summing to one"),
        (np.full((240, 2), "a"), r"must be numbers; got dtype"),
        (np.zeros((240, 2, 1)), r"got an array with 3 dimensions"),
        (np.full(240, np.nan), r"must name every row; 240 of 240 are missing"),
        (np.array([None] * 240), r"must name every row; 240 of 240 are missing"),
    ],
)
def test_bad_environments(kind, environments, message):
    X, y, _ = rows_of(kind)
    with pytest.raises((ValueError, TypeError), match=message):
        kind().fit(X, y, environments=environments)


@pytest.mark.parametrize("kind", TUNED)
@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan, "strong", None])
def test_bad_strengths(kind, value):
    X, y, environments = rows_of(kind)
    with pytest.raises(
        (ValueError, TypeError),
        match=f"The '{kind.strength}' parameter of .* must be a float in the range",
    ):
        fitted(kind, X, y, environments, **{kind.strength: value})


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_dependent_and_constant_columns(kind):
    X, y, environments = rows_of(kind)
    wide = np.column_stack([X, X[:, 0], np.full(len(y), 7.0)])
    model = fitted_quickly(kind, wide, y, environments)
    plain = fitted_quickly(kind, X, y, environments)
    assert np.all(np.isfinite(model.coef_))
    assert model.score(wide, y) > plain.score(X, y) - 0.05


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fewer_rows_than_features(kind):
    X, y, environments = rows_of(kind, n=12, d=20)
    model = fitted_quickly(kind, X, y, environments)
    assert np.all(np.isfinite(model.predict(X).astype(float)))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_three_rows(kind):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]])
    model = fitted_quickly(kind, X, np.array([0, 1, 1]), np.array([0, 1, 1]))
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("kind", [b.classifier for b in BASELINES.values()])
def test_one_class_is_refused(kind):
    with pytest.raises(ValueError, match=r"at least two classes; got only one class, 1\.0\.$"):
        kind().fit(np.eye(4), np.ones(4))


@pytest.mark.parametrize("kind", [b.classifier for b in BASELINES.values()])
def test_three_classes_are_told_apart(kind):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    centres = {"a": (0, 3), "b": (3, 0), "c": (-3, -3)}
    X = np.array([centres[label] for label in y]) + rng.normal(size=(300, 2))
    model = fitted_quickly(kind, X, y, rng.integers(0, 2, 300))
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.coef_.shape == (3, 2)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_clone_keeps_parameters(kind):
    model = kind(**{kind.strength: 0.25}) if kind.strength else kind()
    assert clone(model).get_params() == model.get_params()


def test_an_environment_of_one_row_is_allowed():
    X, y, environments = rows_of(GroupDRORegressor)
    environments[:] = 0
    environments[0] = 1
    model = GroupDRORegressor().fit(X, y, environments=environments)
    assert np.all(np.isfinite(model.coef_))
