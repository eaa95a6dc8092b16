"""The library of homogeneous data is what it says: one mechanism, train and test alike."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import homogeneous

REGRESSION, LABELS = homogeneous.families(), homogeneous.classification_families()


@pytest.mark.parametrize("name", [*REGRESSION, *LABELS])
def test_shapes_and_seeds(name):
    family = (REGRESSION | LABELS)[name]
    X, y, X_test, y_test = family(0, 200, 8)
    again, other = family(0, 200, 8), family(1, 200, 8)
    assert X.shape == (len(y), X_test.shape[1])
    assert len(X_test) == len(y_test)
    assert np.isfinite(X).all()
    assert np.isfinite(y_test).all()
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(y, other[1])
    if family.informative(8) is not None:
        assert X.shape == (200, 8)
        assert family.informative(8).sum() == (0 if name.endswith("nothing") else 4)


@pytest.mark.parametrize(
    "name", [name for name in REGRESSION if REGRESSION[name].informative() is not None]
)
def test_noise_columns_are_noise_and_true_ones_matter(name):
    """Given the true features, the others add nothing to a linear fit; the true ones do."""
    X, y, _, _ = REGRESSION[name](0, 20_000, 10)
    true = REGRESSION[name].informative(10)
    full = LinearRegression().fit(X, y)
    residual = y - full.predict(X)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    inverse = np.linalg.inv(np.cov(z.T))
    meat = np.cov((z * residual[:, None]).T)  # robust to the families' uneven noise
    errors = np.sqrt(np.diag(inverse @ meat @ inverse) / len(y))
    scores = np.abs(full.coef_ * X.std(axis=0)) / errors
    assert (scores[~true] < 4.5).all()
    assert (scores[true] > 4.5).sum() >= true.sum() - 1  # the step may cancel one slope


@pytest.mark.parametrize("name", list(LABELS))
def test_labels_can_be_learned_where_there_is_a_signal(name):
    X, y, X_test, y_test = LABELS[name](0, 2000, 10)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    model = LogisticRegression().fit((X - centre) / scale, y)
    majority = np.bincount(y_test).max() / len(y_test)
    accuracy = model.score((X_test - centre) / scale, y_test)
    if name.endswith("nothing"):
        assert abs(accuracy - majority) < 0.03
    else:
        assert accuracy > majority + 0.005


def test_narrow_tables_are_refused():
    with pytest.raises(ValueError, match="d must be at least 6; got 5"):
        REGRESSION["linear"](0, 100, 5)
