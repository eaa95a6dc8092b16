"""EnvironmentMixture: scikit-learn's manners, what it finds, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetrisk import EnvironmentMixture
from hetrisk.blocks import ArrayBlocks, ParquetBlocks
from hetrisk.datasets import make_selection_bias


@parametrize_with_checks([EnvironmentMixture(), EnvironmentMixture(tied_variance=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def three_regressions(seed):
    """60/30/10 % components, d = 6, n = 3000, coefficients N(0, 1.5^2), noise 0.5."""
    rng = np.random.default_rng(seed)
    coef, X = rng.normal(0, 1.5, (3, 6)), rng.normal(size=(3000, 6))
    environment = rng.choice(3, size=3000, p=[0.6, 0.3, 0.1])
    return X, (X * coef[environment]).sum(axis=1) + 0.5 * rng.normal(size=3000), coef


def matched(cost):
    """Costs of the components matched as well as they can be."""
    return cost[linear_sum_assignment(cost)]


def test_three_regressions_are_counted_and_recovered():
    X, y, coef = three_regressions(0)
    model = EnvironmentMixture(random_state=0).fit(X, y)
    assert model.n_environments_ == 3
    assert matched(np.abs(model.coef_[:, None] - coef).max(axis=-1)).max() <= 0.25


def test_one_regression_is_one_environment():
    X, _, coef = three_regressions(0)
    y = X @ coef[0] + 0.5 * np.random.default_rng(1).normal(size=len(X))
    assert EnvironmentMixture(random_state=0).fit(X, y).n_environments_ == 1


def test_a_minority_of_one_row_in_twenty_is_found():
    rng = np.random.default_rng(0)
    many, few = (make_selection_bias(n, r, random_state=rng) for n, r in ((1900, 1.9), (100, -1.1)))
    v = np.concatenate([many[0][:, 5:6], few[0][:, 5:6]])
    y = np.concatenate([many[1], few[1]])
    slopes = EnvironmentMixture(n_environments=2, random_state=0).fit(v, y).coef_[:, 0]
    assert slopes.min() < 0 < slopes.max()


def test_signs_of_two_logistic_regressions_are_recovered():
    rng = np.random.default_rng(0)
    coef = rng.uniform(1.5, 3.0, (2, 5)) * np.array([[1, 1, -1, 1, -1], [-1, 1, 1, -1, -1]])
    X, environment = rng.normal(size=(5000, 5)), rng.choice(2, size=5000, p=[0.7, 0.3])
    y = rng.random(5000) < expit((X * coef[environment]).sum(axis=1))
    found = EnvironmentMixture(n_environments=2, random_state=0).fit(X, y).coef_
    assert matched((np.sign(found[:, None]) != np.sign(coef)).sum(axis=-1)).sum() == 0


def two_slopes(n=600, seed=0, shift=0.0):
    """y = 2 a - 1 b in most rows, -2 a - 1 b in a third."""
    rng = np.random.default_rng(seed)
    X = shift + rng.normal(size=(n, 2)) * [1.0, 5.0]
    flipped = np.arange(n) % 3 == 0
    y = np.where(flipped, -2, 2) * (X[:, 0] - shift) - X[:, 1] + 10 + 0.3 * rng.normal(size=n)
    return X, y, flipped


def test_reports_on_the_scale_of_the_data():
    X, y, flipped = two_slopes(shift=100.0)
    model = EnvironmentMixture(random_state=0).fit(X, y)
    assert model.n_environments_ == 2
    assert model.family_ == "gaussian"
    np.testing.assert_allclose(model.coef_, [[2, -1], [-2, -1]], atol=0.1)
    np.testing.assert_allclose(model.weights_, [2 / 3, 1 / 3], atol=0.05)
    np.testing.assert_allclose(np.sqrt(model.variance_), 0.3, atol=0.05)
    assert (model.predict(X, y) == flipped).mean() > 0.9
    assert model.converged_
    assert model.n_iter_ == len(model.log_likelihood_path_)
    assert (np.diff(model.log_likelihood_path_) >= 0).all()
    assert model.log_likelihood_path_[-1] == pytest.approx(model.score(X, y), abs=1e-8)


def test_score_is_the_mean_log_density():
    X, y, _ = two_slopes()
    model = EnvironmentMixture(2, random_state=0).fit(X, y)
    density = sum(
        w * np.exp(-((y - X @ b - a) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v)
        for w, b, a, v in zip(
            model.weights_, model.coef_, model.intercept_, model.variance_, strict=True
        )
    )
    assert model.score(X, y) == pytest.approx(np.log(density).mean())
    weight = np.arange(len(y), dtype=float)
    assert model.score(X, y, weight) == pytest.approx(np.average(np.log(density), weights=weight))


def test_the_criterion_counts_the_parameters():
    X, y, _ = two_slopes()
    model = EnvironmentMixture(2, random_state=0).fit(X, y)
    n, L, size = len(y), len(y) * model.score(X, y), 1 + 2 * 3 + 1
    assert model.bic(X, y) == pytest.approx(-2 * L + size * np.log(n))


def test_auto_minimises_the_criterion():
    X, y, _ = two_slopes()
    model = EnvironmentMixture(random_state=0).fit(X, y)
    path = model.criterion_path_
    assert model.n_environments_ == 1 + path.argmin()
    assert model.bic(X, y) == pytest.approx(path.min())
    fixed = clone(model).set_params(n_environments=1).fit(X, y)
    assert fixed.bic(X, y) == pytest.approx(path[0])
    assert len(fixed.criterion_path_) == 0


def test_without_targets_rows_get_the_shares():
    X, y, _ = two_slopes()
    model = EnvironmentMixture(2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X[:3]), np.tile(model.weights_, (3, 1)))
    np.testing.assert_array_equal(model.predict(X[:3]), [0, 0, 0])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame):
    X, y, _ = two_slopes()
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = EnvironmentMixture(2, random_state=0).fit(table, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    plain = EnvironmentMixture(2, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    np.testing.assert_allclose(model.predict_proba(table, y), plain.predict_proba(X, y), atol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame({"a": X[:, 0], "c": X[:, 1]}), y)


def test_a_polars_series_is_a_target():
    X, y, _ = two_slopes()
    model = EnvironmentMixture(2, random_state=0).fit(pl.DataFrame(X), pl.Series(y))
    np.testing.assert_allclose(model.coef_, EnvironmentMixture(2, random_state=0).fit(X, y).coef_)


def test_the_order_of_rows_does_not_matter():
    X, y, _ = two_slopes()
    order = np.random.default_rng(0).permutation(len(y))
    a = EnvironmentMixture(2, random_state=0).fit(X, y)
    b = EnvironmentMixture(2, random_state=0).fit(X[order], y[order])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-4)
    np.testing.assert_allclose(
        a.predict_proba(X, y)[order], b.predict_proba(X[order], y[order]), atol=1e-3
    )


def test_the_scale_of_columns_does_not_matter():
    X, y, _ = two_slopes()
    a = EnvironmentMixture(2, random_state=0).fit(X, y)
    b = EnvironmentMixture(2, random_state=0).fit(X * [1e5, 1e-4] + [3, -1], 7 * y)
    np.testing.assert_allclose(a.coef_ * 7, b.coef_ * [1e5, 1e-4], rtol=1e-4)
    np.testing.assert_allclose(
        a.predict_proba(X, y), b.predict_proba(X * [1e5, 1e-4] + [3, -1], 7 * y), atol=1e-4
    )


def test_weights_count_rows():
    X, y, _ = two_slopes()
    weight = np.random.default_rng(0).integers(0, 3, size=len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    a = EnvironmentMixture(random_state=0).fit(X, y, sample_weight=weight)
    b = EnvironmentMixture(random_state=0).fit(X[twice], y[twice])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-3)
    # Beyond the two environments there are, optima abound and starts decide.
    np.testing.assert_allclose(a.criterion_path_[:2], b.criterion_path_[:2], rtol=1e-6)


def test_random_state_makes_it_repeatable():
    X, y, _ = two_slopes()
    a, b = (EnvironmentMixture(3, random_state=7).fit(X, y).coef_ for _ in range(2))
    np.testing.assert_array_equal(a, b)


def labelled(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    slope = np.where(rng.random(n) < 0.7, 4.0, -4.0)
    yes = rng.logistic(size=n) < slope * X[:, 0] + X[:, 1]
    return X, yes


@pytest.mark.parametrize(("no", "yes"), [("no", "yes"), (0, 1), (False, True), (-1.0, 3.0)])
def test_two_values_are_labels(no, yes):
    X, hit = labelled()
    y = np.where(hit, yes, no)
    model = EnvironmentMixture(2, random_state=0).fit(X, y)
    assert model.family_ == "bernoulli"
    assert list(model.classes_) == [no, yes]
    assert model.coef_.shape == (2, 2)
    assert model.coef_[0, 0] > 2
    assert model.coef_[1, 0] < -2
    np.testing.assert_array_equal(model.variance_, [1.0, 1.0])
    reference = EnvironmentMixture(2, random_state=0).fit(X, hit.astype(int))
    np.testing.assert_allclose(
        model.predict_proba(X, y), reference.predict_proba(X, hit.astype(int))
    )
    with pytest.raises(ValueError, match="y must hold labels among the 2 classes"):
        model.predict(X, np.full(len(y), 77 if not isinstance(no, str) else "maybe"))


def test_labels_by_family():
    X, hit = labelled(500)
    two = EnvironmentMixture(1, family="multinomial").fit(X, hit)
    assert two.coef_.shape == (1, 2, 2)
    one = EnvironmentMixture(1, family="bernoulli").fit(X, hit)
    np.testing.assert_allclose(two.coef_[:, 1] - two.coef_[:, 0], one.coef_, rtol=1e-3)
    assert two.score(X, hit) == pytest.approx(one.score(X, hit), abs=1e-6)


def test_three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    slope = np.where(rng.random(1500) < 0.7, 5.0, -5.0)
    scores = np.stack([slope * X[:, 0], np.zeros(1500), 3 * X[:, 1]], axis=1)
    y = np.array(["a", "b", "c"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    model = EnvironmentMixture(2, random_state=0).fit(X, y)
    assert model.family_ == "multinomial"
    assert model.coef_.shape == (2, 3, 2)
    assert model.intercept_.shape == (2, 3)
    np.testing.assert_allclose(model.coef_.sum(axis=1), 0.0, atol=1e-10)
    contrast = model.coef_[:, 0, 0] - model.coef_[:, 1, 0]
    assert contrast[0] > 2 > -2 > contrast[1]


def test_refitting_on_numbers_forgets_the_classes():
    X, y, _ = two_slopes()
    model = EnvironmentMixture(1).fit(X, y > 0)
    model.fit(X, y)
    assert model.family_ == "gaussian"
    assert not hasattr(model, "classes_")


def test_fits_from_blocks_and_parquet(tmp_path):
    X, y, _ = two_slopes()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    table[:250].to_parquet(tmp_path / "one.parquet")
    table[250:].to_parquet(tmp_path / "two.parquet")
    plain = EnvironmentMixture(random_state=0).fit(X, y)
    for source in (ArrayBlocks(X, y), ParquetBlocks(tmp_path, target="y")):
        model = EnvironmentMixture(random_state=0).fit(source)
        np.testing.assert_allclose(model.coef_, plain.coef_)
        np.testing.assert_allclose(
            model.predict_proba(source), plain.predict_proba(X, y), atol=1e-8
        )
        assert model.bic(source) == pytest.approx(plain.bic(X, y))
    assert list(model.feature_names_in_) == ["a", "b"]
    blind = ParquetBlocks(tmp_path, target="y").without_target()
    np.testing.assert_array_equal(model.predict(blind), np.zeros(600))
    with pytest.raises(ValueError, match="y must be given to score rows"):
        model.score(blind)
    with pytest.raises(ValueError, match="y must be None when X is ArrayBlocks"):
        EnvironmentMixture().fit(ArrayBlocks(X, y), y)
    with pytest.raises(ValueError, match="X has 1 features, but EnvironmentMixture is expecting 2"):
        model.predict(ArrayBlocks(X[:, :1], y))


def test_fits_labels_from_parquet(tmp_path):
    X, hit = labelled(500)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(hit, "yes", "no"))
    table.to_parquet(tmp_path / "one.parquet")
    source = ParquetBlocks(tmp_path, target="y")
    model = EnvironmentMixture(2, family="bernoulli", random_state=0).fit(source)
    plain = EnvironmentMixture(2, random_state=0).fit(X, table["y"])
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_allclose(model.coef_, plain.coef_)


def test_text_out_of_core_needs_a_family_by_name():
    X, hit = labelled(200)
    with pytest.raises(ValueError, match=r"family must be named .* for a target of text"):
        EnvironmentMixture().fit(ArrayBlocks(X, np.where(hit, "yes", "no")))


def test_fits_dask_collections():
    da = pytest.importorskip("dask.array")
    X, y, _ = two_slopes()
    table = (da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=200))
    plain = EnvironmentMixture(random_state=0).fit(X, y)
    model = EnvironmentMixture(random_state=0).fit(*table)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    np.testing.assert_allclose(model.predict_proba(*table), plain.predict_proba(X, y), atol=1e-8)
    np.testing.assert_array_equal(model.predict(table[0]), np.zeros(600))


def test_constant_and_duplicated_columns():
    X, y, _ = two_slopes()
    wide = np.column_stack([X, X[:, 0], np.full(len(y), 5.0)])
    model = EnvironmentMixture(2, random_state=0).fit(wide, y)
    np.testing.assert_array_equal(model.coef_[:, 3], 0.0)
    np.testing.assert_allclose(model.coef_[:, 0], model.coef_[:, 2], rtol=1e-3)
    np.testing.assert_allclose(2 * model.coef_[:, 0], [2, -2], atol=0.1)


def test_fewer_rows_than_features_is_one_environment():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 8)), rng.normal(size=5)
    model = EnvironmentMixture(random_state=0).fit(X, y)
    assert model.n_environments_ == 1
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], y, atol=1e-6)


def test_an_emptied_environment_warns():
    x = np.arange(8.0)
    y = 2 * x + np.array([1, -1, 1, -1, 1, -1, 1, -1])  # two exact lines, four environments
    with pytest.warns(ConvergenceWarning, match=r"of 4 environments hold no rows"):
        EnvironmentMixture(4, max_iter=2000, random_state=0).fit(x[:, None], y)


@pytest.mark.parametrize("seed", range(5))
def test_auto_drops_emptied_environments(seed):
    X = np.random.default_rng(0).uniform(size=(30, 3))
    y = np.arange(30) % 3  # three exact planes, found more easily with components to spare
    model = EnvironmentMixture(random_state=[6, 9, 12, 17, 25][seed]).fit(X, y)
    assert (model.weights_ * 30 >= 0.5).all()
    assert model.weights_.sum() == pytest.approx(1.0)
    assert len(model.coef_) == model.n_environments_ == len(model.weights_)


def test_an_unfinished_run_warns():
    X, y, _ = two_slopes(200)
    with pytest.warns(ConvergenceWarning, match="EM did not settle in max_iter=1"):
        EnvironmentMixture(3, max_iter=1, tol=0.0).fit(X, y)


def test_no_warning_on_plain_data():
    X, y, _ = two_slopes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EnvironmentMixture(random_state=0).fit(X, y)


def bad(X=None, y=None, n_environments="auto", **options):
    good_X, good_y, _ = two_slopes(30)
    model = EnvironmentMixture(n_environments, **options)
    return model.fit(good_X if X is None else X, good_y if y is None else y)


def test_bad_input_is_refused_by_name():
    X, y, _ = two_slopes(30)
    spoiled = X.copy()
    spoiled[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        bad(X=spoiled)
    spoiled[3, 1] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        bad(X=spoiled)
    with pytest.raises(ValueError, match="Input y contains NaN or infinity"):
        bad(y=np.where(np.arange(30) == 2, np.nan, y))
    with pytest.raises(ValueError, match="X and y must be finite; they hold NaN"):
        EnvironmentMixture().fit(ArrayBlocks(spoiled, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        bad(y=y[:20])
    with pytest.raises(ValueError, match="y must take at least two values"):
        bad(y=np.full(30, 4.0), family="gaussian")
    with pytest.raises(ValueError, match=r"at least two classes; got one class, \['a'\]"):
        bad(y=np.full(30, "a"))
    with pytest.raises(ValueError, match=r"two classes for family='bernoulli'; got 3 classes"):
        bad(y=np.arange(30) % 3, family="bernoulli")
    with pytest.raises(ValueError, match="y must hold numbers; got values such as 'a'"):
        bad(y=np.full(30, "a"), family="gaussian")
    with pytest.raises(ValueError, match="could not convert string to float"):
        bad(X=np.full((30, 2), "text"))
    with pytest.raises(ValueError, match="requires y to be passed"):
        EnvironmentMixture().fit(X)
    with pytest.raises(ValueError, match=r"Negative values in data passed to `sample_weight`"):
        EnvironmentMixture().fit(X, y, sample_weight=-np.ones(30))
    with pytest.raises(ValueError, match=r"non-zero number|positive entry"):
        EnvironmentMixture().fit(X, y, sample_weight=np.zeros(30))


def test_more_environments_than_rows_is_refused():
    with pytest.raises(
        ValueError,
        match=r"=31 regressions on 2 features need at least 93 rows; got n_samples=30\.",
    ):
        bad(n_environments=31)
    X, y, _ = two_slopes(3)
    with pytest.raises(ValueError, match="n_environments=2 regressions on 2 features need"):
        EnvironmentMixture(2).fit(X, y)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n_environments", 0),
        ("n_environments", "many"),
        ("family", "poisson"),
        ("n_init", 0),
        ("tol", -1.0),
        ("max_iter", 0),
        ("tied_variance", "yes"),
    ],
)
def test_bad_options_are_refused_by_name(option, value):
    X, y, _ = two_slopes(30)
    with pytest.raises(ValueError, match=f"The '{option}' parameter of EnvironmentMixture must be"):
        EnvironmentMixture(**{option: value}).fit(X, y)


def test_not_fitted():
    X, y, _ = two_slopes(30)
    for method in ("predict", "predict_proba", "score", "bic"):
        with pytest.raises(NotFittedError):
            getattr(EnvironmentMixture(), method)(X, y)
