"""Figures of merit out of fold: they are those of rows the model has not seen."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.estimators import quality
from hetrisk.estimators.quality import assess


class Numbers(RegressorMixin, BaseEstimator):
    """What `assess` needs of a fitted model of numbers."""

    final_estimator = LinearRegression()

    def __init__(self, support=(True,)):
        self.support = support

    @property
    def support_(self):
        return np.asarray(self.support)


class Labels(ClassifierMixin, Numbers):
    """The same of labels."""

    final_estimator = LogisticRegression()

    def __init__(self, support=(True,), classes=(0, 1)):
        super().__init__(support)
        self.classes = classes

    @property
    def classes_(self):
        return np.asarray(self.classes)


def test_a_memory_of_the_rows_does_not_help():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    model = Numbers((True, True, False))
    model.final_estimator = RandomForestRegressor(n_estimators=20, random_state=0)
    found = assess(model, X, y)
    rmse, r2 = found.metrics
    assert rmse.this > 0.95 * y.std()  # a forest remembers its own rows to a third of that
    assert r2.this < 0.1
    assert (found.n_rows, found.n_folds) == (300, 5)


def test_the_plain_model_is_judged_as_the_plain_model_whatever_the_units():
    """Millions beside shares, and a column that is the sum of two others."""
    rng = np.random.default_rng(0)
    part = rng.normal(size=(120, 2))
    sales = 1e7 * rng.lognormal(size=(120, 1))
    X = np.column_stack([part, part.sum(axis=1), sales])
    y = part[:, 0] + 0.3 * rng.normal(size=120)
    model = HRMRegressor(random_state=0).fit(X, y)
    assert model.verdict_ != "invariant"
    rmse, _ = assess(model, X, y).metrics
    assert rmse.this == rmse.plain == pytest.approx(0.3, abs=0.05)


def test_the_columns_left_out_are_not_used_and_plain_uses_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=500)
    rmse, r2 = assess(Numbers((True, False)), X, y).metrics
    assert rmse.this == pytest.approx(1.0, abs=0.1)
    assert rmse.plain == pytest.approx(0.1, abs=0.02)
    assert r2.plain == pytest.approx(0.995, abs=0.01)


def test_residuals_are_binned_by_the_prediction():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 1))
    found = assess(Numbers(), X, X[:, 0] ** 2 + X[:, 0] + 0.1 * rng.normal(size=1000))
    assert found.count.sum() == 1000
    assert np.all(np.diff(found.predicted) > 0)
    residual = found.observed - found.predicted
    assert residual[0] > 0  # the bend of the parabola
    assert residual[5] < 0
    assert residual[-1] > 0
    assert np.all(found.low < found.high)


@pytest.mark.parametrize("classes", [(0, 1), ("a", "b", "c")])
def test_labels_have_the_figures_people_look_at(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    eta = X @ rng.normal(size=(2, len(classes))) * 2
    y = np.asarray(classes)[(eta + rng.gumbel(size=eta.shape)).argmax(axis=1)]
    found = assess(Labels((True, True), classes), X, y)
    names = {m.name: m for m in found.metrics}
    assert set(names) == {"error rate", "balanced accuracy", "AUC", "root Brier score"}
    assert 0.6 < names["AUC"].this <= 1
    assert names["AUC"].this == names["AUC"].plain  # nothing was left out
    assert np.all((found.low <= found.observed) & (found.observed <= found.high))
    assert not found.imbalanced
    # Calibrated: the model is the right one.
    assert np.abs(found.predicted - found.observed).mean() < 0.1
    assert (found.outcome == "1") if len(classes) == 2 else (found.outcome == "the class predicted")


def test_a_row_that_makes_up_most_of_the_error_is_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = X[:, 0] + rng.normal(size=200)
    assert not assess(Numbers(), X, y).one_row_decides
    X[7] = 400.0
    found = assess(Numbers(), X, y)
    assert found.worst_row > 0.9
    assert found.one_row_decides


def test_imbalance_is_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 1))
    y = (X[:, 0] + rng.normal(size=1000) > 2.6).astype(int)
    found = assess(Labels(), X, y)
    assert found.imbalanced
    assert found.rarest[0] == "1"
    assert found.commonest == ("0", pytest.approx(1 - y.mean()))


def test_too_few_rows_have_no_figures():
    X = np.arange(8.0)[:, None]
    assert assess(Numbers(), X, X[:, 0]) is None
    assert assess(Labels(), X, np.array([0] * 7 + [1])) is None


def test_more_columns_than_rows_are_fitted_with_a_ridge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    found = assess(HRMRegressor().fit(X, y), X, y)
    assert found.metrics[0].this < 1.2 * y.std()


def test_no_column_left_predicts_the_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    found = assess(Numbers((False, False)), X, y)
    assert found.metrics[0].this == pytest.approx(y.std(), rel=0.05)


def test_weights_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = np.where(np.arange(200) < 100, X[:, 0], 50.0)
    weight = (np.arange(200) < 100).astype(float)
    assert assess(Numbers(), X, y, sample_weight=weight).metrics[0].this < 0.01


def test_where_the_search_made_the_coefficients_it_is_repeated():
    fits = []

    class Searched(Numbers):
        final_estimator, method, verdict_ = None, "auto", "invariant"

        def fit(self, X, y, environments=None):
            fits.append((len(y), len(environments)))
            self.mean_ = y.mean()
            return self

        def predict(self, X):
            return np.full(len(X), self.mean_)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    model = Searched()
    model.mean_ = 0.0
    assess(model, X, y, environments=np.arange(50) % 2)
    assert fits == [(40, 40)] * 5


def test_a_real_model_is_refitted_on_its_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.normal(size=300)
    model = HRMRegressor(reach=0.0).fit(X, y)
    rmse, _ = assess(model, X, y).metrics
    assert rmse.this == rmse.plain
    assert rmse.this > np.sqrt(np.mean((model.predict(X) - y) ** 2))


def test_a_refit_with_the_same_labels_may_be_another_model():
    """Weights of environments change probabilities before they change a label."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 2))
    y = (X.sum(axis=1) + rng.logistic(size=900) > 0).astype(int)
    model = HRMClassifier().fit(X, y)
    model.verdict_ = "invariant"
    rows = quality._Table(X, y, None, None, None)
    assert quality._Refitted(model, model.support_).explains(rows)
    labels = model.predict(X)
    model.coef_, model.intercept_ = 1.3 * model.coef_, 1.3 * model.intercept_
    model.final_estimator_ = model._linear_model()
    assert np.array_equal(model.predict(X), labels)
    assert not quality._Refitted(model, model.support_).explains(rows)


def test_residuals_of_a_perfect_fit_are_no_lines():
    """The spread of a bin is that of its errors, not of its outcomes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    exact = X @ [1.0, 2.0]
    quality = assess(HRMRegressor(reach=0.0).fit(X, exact), X, exact)
    np.testing.assert_allclose(quality.high - quality.low, 0.0, atol=1e-9)
    noisy = exact + rng.normal(size=300)
    quality = assess(HRMRegressor(reach=0.0).fit(X, noisy), X, noisy)
    spread = quality.high - quality.low  # 2.56 standard deviations of the noise, in every bin
    assert spread.min() > 1.5
    assert spread.max() < 4.0
