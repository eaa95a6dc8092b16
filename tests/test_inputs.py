"""What estimators accept, as blocks: shared by every estimator."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from hetrisk import HRMClassifier, HRMRegressor, InvariantClassifier
from hetrisk.blocks import ArrayBlocks
from hetrisk.estimators.inputs import as_blocks

X = np.arange(12.0).reshape(6, 2)
y = np.arange(6.0)


class Model(BaseEstimator):
    """An estimator that only looks at its input."""


class NamedBlocks(ArrayBlocks):
    feature_names = ("a", "b")


def test_arrays_become_blocks_and_teach_the_width():
    model = Model()
    source = as_blocks(model, X, y, sample_weight=np.arange(6))
    (rows,) = source.map(lambda block: block)
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)
    np.testing.assert_array_equal(rows.weight, np.arange(6))
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")


def test_a_number_weighs_every_row():
    assert as_blocks(Model(), X, y, sample_weight=2.0).sample(6, 0).weight.tolist() == [2.0] * 6


def test_single_precision_is_not_copied():
    single = X.astype(np.float32)
    assert as_blocks(Model(), single, y).X is single


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_teach_their_names(frame):
    model = Model()
    source = as_blocks(model, frame({"a": X[:, 0], "b": X[:, 1]}), y.tolist())
    np.testing.assert_array_equal(source.collect(lambda rows: rows.X), X)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        as_blocks(model, frame({"a": X[:, 0], "z": X[:, 1]}), y, reset=False)


def test_blocks_teach_their_width_and_names_and_are_held_to_them():
    model = Model()
    source = NamedBlocks(X, y)
    assert as_blocks(model, source, None) is source
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="X has 1 features, but Model is expecting 2"):
        as_blocks(model, ArrayBlocks(X[:, :1], y), None, reset=False)
    renamed = NamedBlocks(X, y)
    renamed.feature_names = ("b", "a")
    with pytest.raises(ValueError, match="must be in the same order"):
        as_blocks(model, renamed, None, reset=False)
    as_blocks(model, ArrayBlocks(X, y), None)
    assert not hasattr(model, "feature_names_in_")


def test_too_few_rows():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        as_blocks(Model(), X[:1], y[:1])
    with pytest.raises(
        ValueError, match="Found 1 rows in X while a minimum of 2 is required by Model"
    ):
        as_blocks(Model(), ArrayBlocks(X[:1], y[:1]), None)


def test_targets_of_numbers():
    assert as_blocks(Model(), X, ["1", "2", "3", "4", "5", "6"]).y.tolist() == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="y must hold numbers; got values such as 'a'"):
        as_blocks(Model(), X, list("abcdef"))
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_blocks(Model(), X, y + 1j)
    with pytest.raises(ValueError, match="Input y contains NaN or infinity"):
        as_blocks(Model(), X, np.where(y > 4, np.inf, y))
    with pytest.raises(ValueError, match="y should be a 1d array"):
        as_blocks(Model(), X, X)
    with pytest.raises(ValueError, match="Model requires y to be passed"):
        as_blocks(Model(), X, None)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        as_blocks(Model(), X, y[:, None])


@pytest.mark.parametrize("size", [1e300, 1e160, 1e101, 1e-101, 1e-160, 1e-200, 5e-324])
def test_weights_of_any_size_are_as_good(size):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 3))
    target = features[:, 0] + np.where(np.arange(300) % 3, 2.0, -2.0) * features[:, 2]
    target += 0.3 * rng.standard_normal(300)
    for estimator, values in ((HRMRegressor, target), (HRMClassifier, target > 0)):
        plain = estimator(random_state=0).fit(features, values, sample_weight=np.ones(300))
        model = estimator(random_state=0).fit(features, values, sample_weight=np.full(300, size))
        np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_weights_of_any_size_are_as_good_in_blocks(size):
    rng = np.random.default_rng(0)
    features, shares = rng.standard_normal((300, 3)), np.eye(3)[np.arange(300) % 3]
    target = features @ [1.0, 0.0, 1.0] + 0.3 * rng.standard_normal(300)
    weight = rng.uniform(0.5, 2.0, size=300)
    plain, model = HRMRegressor(), HRMRegressor()
    plain.fit(ArrayBlocks(features, target, weight, environments=shares), None)
    model.fit(ArrayBlocks(features, target, size * weight, environments=shares), None)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)


def test_blocks_with_weights_are_checked_and_stay_what_they_were():
    weight = np.full(6, 1e200)
    source = NamedBlocks(X, y, weight)
    model = Model()
    assert as_blocks(model, source, None).sample(6, 0).weight.tolist() == [1.0] * 6
    assert source.weight is weight
    assert list(model.feature_names_in_) == ["a", "b"]
    ordinary = ArrayBlocks(X, y, np.ones(6))
    assert as_blocks(Model(), ordinary, None) is ordinary
    for bad, message in ((-1.0, "Negative values"), (np.nan, "NaN")):
        with pytest.raises(ValueError, match=message):
            as_blocks(Model(), ArrayBlocks(X, y, np.full(6, bad)), None)


def test_weights_that_can_be_squared_are_as_given():
    weight = np.array([1e100, 1e-100, 0.0, 1.0, 3.0, 1e-300])
    assert as_blocks(Model(), X, y, sample_weight=weight).weight is weight
    scaled = as_blocks(Model(), X, y, sample_weight=10 * weight).weight
    np.testing.assert_allclose(scaled, 5 * weight / 1e100, rtol=1e-15)  # a mean of one over five


MIXED = {
    "numbers and text": ([1, "no"], "all numbers, all text or all truths; got 1 and 'no'"),
    "text and numbers": (["no", 1.5], "all numbers, all text or all truths; got 'no' and 1.5"),
    "truths and text": ([True, "no"], "all numbers, all text or all truths; got True and 'no'"),
    "truths and numbers": ([True, 1], "of one kind, all numbers, .* all truths; got True and 1"),
    "two truths and a half": ([np.True_, 0.5], "all truths; got True and 0.5"),
    "decimals": ([Decimal(0), Decimal(1)], "plain numbers or text; got values such as Decimal"),
    "tuples": ([(1, 2), (2, 3)], r"numbers or text; got values such as \(1, 2\)"),
}


@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("estimator", [HRMClassifier, InvariantClassifier])
def test_labels_of_several_types_are_refused_in_a_sentence(case, estimator):
    pair, message = MIXED[case]
    labels = np.empty(60, dtype=object)
    labels[:] = pair * 30
    features = np.random.default_rng(0).standard_normal((60, 2))
    with pytest.raises(ValueError, match=f"y must hold labels.*{message}"):
        estimator().fit(features, labels)


@pytest.mark.parametrize(
    "pair", [[0, 1], [False, True], [1.0, 2.0], [np.int64(3), 4], [np.False_, True]]
)
def test_labels_held_as_objects_are_what_they_are(pair):
    labels = np.array(pair * 3, dtype=object)
    source = as_blocks(Model(), X, labels, labels=True)
    assert source.labels().tolist() == pair
    assert source.labels().dtype != object


def test_targets_of_labels():
    source = as_blocks(Model(), X, list("abcabc"), labels=True)
    assert source.labels().tolist() == ["a", "b", "c"]
    assert source.encoded(source.labels()).collect(lambda rows: rows.y).tolist() == [0, 1, 2] * 2
    with pytest.raises(ValueError, match="Unknown label type"):
        as_blocks(Model(), X, y + 0.5, labels=True)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        as_blocks(Model(), X, np.array([0, 1, 0, 1, 0, np.nan]), labels=True)
    with pytest.raises(ValueError, match=r"Input y contains NaN, None.*1 missing"):
        as_blocks(Model(), X, np.array(["a", None, "b", "a", "b", "a"], dtype=object), labels=True)


def test_weights_are_checked():
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(5,\), expected \(6,\)"):
        as_blocks(Model(), X, y, np.ones(5))
    with pytest.raises(ValueError, match="Input sample_weight contains NaN"):
        as_blocks(Model(), X, y, np.full(6, np.nan))


def test_more_classes_than_can_be_fitted_are_refused_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 20)), np.arange(2000) % 1000
    for model in (HRMClassifier(), InvariantClassifier()):
        extra = {} if isinstance(model, HRMClassifier) else {"environments": np.arange(2000) % 2}
        with pytest.raises(ValueError, match=r"1000 on 20 columns make 20,979 coefficients"):
            model.fit(X, y, **extra)
