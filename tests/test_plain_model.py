"""Plain ERM is one thing: least squares on all columns and all rows, however it was arrived at."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.cells import folds
from hetrisk.core.numerics.families import Bernoulli, Multinomial
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.reach.brier import out_of_fold_brier
from hetrisk.estimators.final import plain_fit


def table(n=600, seed=0):
    """Three shops in which y follows x in one way, and three rows of a fourth far away."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = X.sum(axis=1) + rng.standard_normal(n)
    shop = rng.choice(np.array(["a", "b", "c"], dtype=object), n)
    shop[:3] = "new"
    y[:3] += 200.0
    return X, y, shop


def with_gaps(shop):
    """A hint that three rows lack, too few for a level of their own."""
    return np.where(np.arange(len(shop)) % 200 == 7, None, shop)


def responsibilities(shop):
    return (shop[:, None] == np.unique(shop)).astype(float)


SOURCES = {
    "named": lambda shop: {"environments": shop},
    "shares": lambda shop: {"environments": responsibilities(shop)},
    "hinted": lambda shop: {"hints": shop},
    "hinted with gaps": lambda shop: {"hints": with_gaps(shop)},
    "nothing": lambda shop: {},
}


@pytest.mark.parametrize("source", SOURCES)
def test_rows_in_no_environment_are_fitted_all_the_same(source):
    X, y, shop = table()
    model = HRMRegressor().fit(X, y, **SOURCES[source](shop))
    plain = LinearRegression().fit(X, y)
    assert model.verdict_ == "homogeneous"
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(model.erm_coef_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-9)


@pytest.mark.parametrize("source", ["named", "shares", "hinted", "hinted with gaps"])
def test_rows_in_no_environment_are_fitted_where_columns_leave(source):
    X, y, shop = table()
    y = y + 3.0 * X[:, 2] * ((shop == "a") * 1.0 - (shop == "b"))
    model = HRMRegressor().fit(X, y, **SOURCES[source](shop))
    assert model.support_.tolist() == [True, True, False]
    expected = LinearRegression().fit(X[:, :2], y)
    np.testing.assert_allclose(model.coef_[:2], expected.coef_, atol=1e-9)
    np.testing.assert_allclose(model.erm_coef_, LinearRegression().fit(X, y).coef_, atol=1e-9)


def test_rows_without_a_date_are_fitted_where_seasons_decide():
    """They are in no season, nor in any level that the seasons were made of."""
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 1460, 2400), "D")
    X = rng.standard_normal((2400, 3))
    summer = day.month.isin([6, 7, 8]).astype(float)
    y = X[:, 0] + X[:, 1] + 2.0 * (1.0 - 2.0 * summer) * X[:, 2] + rng.standard_normal(2400)
    when = pd.Series(day, name="day")
    when[:60] = pd.NaT
    y[:60] += 30.0 * X[:60, 0]
    model = HRMRegressor().fit(X, y, hints=when)
    assert "June to August" in model.environment_labels_
    assert model.support_.tolist() == [True, True, False]
    expected = LinearRegression().fit(X[:, :2], y)
    np.testing.assert_allclose(model.coef_[:2], expected.coef_, atol=1e-9)
    np.testing.assert_allclose(model.erm_coef_, LinearRegression().fit(X, y).coef_, atol=1e-9)


@pytest.mark.parametrize("repeated", [0.0, 1e-9, 1e-7])
def test_columns_that_all_but_repeat_others_have_no_say_of_their_own(repeated):
    """A copy whose difference from the original is rounding carries no relation to move along."""
    rng = np.random.default_rng(1)
    n = 900
    X = rng.standard_normal((n, 4))
    X[:, 3] = X[:, 0] + repeated * rng.standard_normal(n)
    y = X[:, 0] + X[:, 1] + rng.standard_normal(n)
    shop = np.arange(n) % 3
    models = [HRMRegressor().fit(X, y, **SOURCES[s](shop)) for s in ("named", "nothing")]
    for model in models:
        assert model.verdict_ == "homogeneous"
        np.testing.assert_allclose(model.coef_, models[1].coef_, atol=1e-6)
        assert np.abs(model.coef_).max() < 2.0


@pytest.mark.parametrize("cuts", [[3.0], [-1.0, 2.6]])
def test_labels_are_expected_as_often_as_they_came(cuts):
    """A class of a few rows: the penalty is scikit-learn's, and leaves the intercept alone."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 3))
    labels = np.digitize(X[:, 0] + rng.standard_normal(2000), cuts)
    model = HRMClassifier(reach=0).fit(X, labels)
    peer = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10)).fit(X, labels)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=0), np.bincount(labels), rtol=1e-6)
    np.testing.assert_allclose(chances, peer.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("seed", [1, 4, 34])
def test_labels_have_the_same_model_whatever_blocks_the_rows_come_in(seed):
    """A last step of Newton that rounding alone would refuse is taken."""
    rng = np.random.default_rng(seed)
    shop = np.sort(rng.integers(0, 3, 1000))
    X = rng.normal(size=(1000, 5))
    y = X @ np.arange(1, 6) + rng.normal(size=1000)
    X = np.c_[X, np.array([2.0, 0.75, -0.5])[shop] * y + rng.normal(size=1000)]
    labels = (y > 0) * 1.0 if seed % 2 else np.digitize(y, [-1.0, 1.0]).astype(float)
    one, many = ArrayBlocks(X / X.std(axis=0), labels), ArrayBlocks(X / X.std(axis=0), labels)
    many.block_rows = 97
    family = Bernoulli() if seed % 2 else Multinomial(3)
    coef = [plain_fit(blocks, family)[0] for blocks in (one, many)]
    np.testing.assert_allclose(coef[0], coef[1], atol=1e-10)


def test_what_environments_are_told_of_plain_erm_is_its_own_error():
    X, y, shop = table()
    y = y + 3.0 * X[:, 2] * ((shop == "a") * 1.0 - (shop == "b"))
    model = HRMRegressor().fit(X, y, environments=shop)
    plain = LinearRegression().fit(X, y)
    summary = model.environment_summary_
    for k, name in enumerate(model.environment_labels_):
        rows = shop == name
        error = np.sqrt(np.mean((plain.predict(X[rows]) - y[rows]) ** 2))
        ours = np.sqrt(np.mean((model.predict(X[rows]) - y[rows]) ** 2))
        assert summary.risk_erm[k] == pytest.approx(error, rel=1e-8)
        assert summary.risk[k] == pytest.approx(ours, rel=1e-8)


def test_the_error_out_of_fold_is_that_of_the_model_handed_over():
    """Rare labels: a penalty on the intercept would show in the curve, too."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 2))
    labels = (rng.random(1500) < 1.0 / (1.0 + np.exp(5.0 - X[:, 0]))).astype(float)
    rows = Rows(X, labels, np.ones(1500))
    fold, chance = folds(rows, 5), np.empty(1500)
    for k in range(5):
        peer = LogisticRegression(C=1500.0 / (fold != k).sum(), tol=1e-10)
        chance[fold == k] = peer.fit(X[fold != k], labels[fold != k]).predict_proba(X[fold == k])[
            :, 1
        ]
    expected = np.mean((chance - labels) ** 2)
    assert out_of_fold_brier(rows, Bernoulli()) == pytest.approx(expected, rel=1e-6)
