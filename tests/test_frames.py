"""Estimators on data frames with categories, dates and missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from hetrisk import (
    EnvironmentMixture,
    HRMClassifier,
    HRMRegressor,
    HRMSelector,
    InvariantRegressor,
    modelfile,
)
from hetrisk.estimators.frames import encoded
from hetrisk.tables import Table, TableError
from hetrisk.tables.frames import as_pandas, is_numeric
from hetrisk.tables.model import fit_table

N = 240


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    return pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, size),
            "rooms": rng.integers(1, 6, N),
            "town": pd.Categorical(rng.choice(["ulm", "bonn", "kiel"], N)),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "new": rng.choice(["yes", "no"], N),
            "note": [f"house number {i}" for i in range(N)],
        }
    )


@pytest.fixture(scope="module")
def y(frame):
    rng = np.random.default_rng(1)
    town = frame["town"].map({"ulm": 0.0, "bonn": 1.0, "kiel": -1.0}).astype(float)
    return (frame["size"].fillna(0) + town + 0.3 * rng.normal(size=N)).to_numpy()


@pytest.fixture(scope="module")
def model(frame, y):
    return HRMRegressor(random_state=0).fit(frame, y)


def test_a_frame_is_encoded_as_the_command_line_does(frame, y, model):
    towns = {name.split("=")[0] for name in model.feature_names_in_}
    assert towns == {"size", "rooms", "town", "sold", "new"}
    assert len(model.feature_names_in_) == model.n_features_in_ == len(model.support_) == 6
    assert [out.name for out in model.encoder_.left_out_] == ["note"]
    assert "missing values" in str(model.encoder_.notes_[0])
    pipeline = fit_table(Table(frame.assign(y=y), "t"), "y")
    np.testing.assert_array_equal(pipeline[-1].support_, model.support_)
    np.testing.assert_allclose(pipeline.predict(frame), model.predict(frame), rtol=1e-12)
    assert np.corrcoef(model.predict(frame), y)[0, 1] > 0.9


def test_the_levels_of_a_category_stand_or_fall_together(frame, y):
    for seed in range(3):
        told = HRMSelector(method="gates", max_rounds=1, random_state=seed).fit(frame, y)
        levels = [s for n, s in zip(told.feature_names_in_, told.support_, strict=True) if "=" in n]
        assert len(set(levels)) == 1


def test_polars_gives_what_pandas_gives(frame, y, model):
    other = pl.DataFrame(
        {
            name: pl.Series(name, [None if pd.isna(v) else v for v in frame[name]])
            for name in frame.columns
        }
    ).with_columns(pl.col("town").cast(pl.Categorical), pl.col("sold").cast(pl.Date))
    np.testing.assert_array_equal(model.predict(other), model.predict(frame))
    again = HRMRegressor(random_state=0).fit(other, y)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_predictions_need_only_the_columns_that_stayed(frame, y):
    model = HRMRegressor(random_state=0).fit(frame, y)
    model.support_ = np.asarray([name.startswith(("size", "town")) for name in names_of(model)])
    model.coef_ = np.where(model.support_, model.coef_, 0.0)
    few = frame[["town", "size"]]
    np.testing.assert_array_equal(model.predict(few), model.predict(frame))
    with pytest.raises(TableError, match="lacks the column 'town' the model was fitted on"):
        model.predict(frame[["size"]])


def names_of(model):
    return [str(name) for name in model.feature_names_in_]


def test_columns_come_in_any_order(frame, model):
    np.testing.assert_array_equal(
        model.predict(frame[frame.columns[::-1]].assign(extra=1)), model.predict(frame)
    )


def test_labels_and_other_final_models(frame, y):
    labels = np.where(y > 0, "up", "down")
    classifier = HRMClassifier(random_state=0).fit(frame, labels)
    assert (classifier.predict(frame) == labels).mean() > 0.8
    assert classifier.predict_proba(frame).shape == (N, 2)
    boosted = HRMRegressor(final_estimator=LinearRegression(), random_state=0).fit(frame, y)
    assert boosted.predict(frame).shape == (N,)
    assert boosted.predict_environments(frame, y).shape == (N,)


def test_a_selector_in_a_pipeline(frame, y):
    selector = HRMSelector(random_state=0).fit(frame, y)
    names = selector.get_feature_names_out()
    assert set(names) <= set(selector.feature_names_in_)
    assert selector.transform(frame).shape == (N, len(names))
    pipeline = make_pipeline(HRMSelector(random_state=0), LinearRegression()).fit(frame, y)
    assert pipeline.predict(frame).shape == (N,)


def test_groups_and_kept_columns_are_those_of_the_frame(frame, y):
    groups = ["a", "b", "b", "c", "c", "d"]
    model = HRMRegressor(feature_groups=groups, keep="town", random_state=0).fit(frame, y)
    towns = [name.startswith("town") for name in names_of(model)]
    assert model.support_[towns].all()
    by_position = HRMRegressor(keep=[2], random_state=0).fit(frame, y)
    assert by_position.support_[towns].all()
    with pytest.raises(ValueError, match="per column of X, 6; got shape"):
        HRMRegressor(feature_groups=["a"] * 7).fit(frame, y)
    with pytest.raises(ValueError, match="keep must name columns of X; there is no column 'z'"):
        HRMRegressor(keep="z").fit(frame, y)


def test_numbers_go_straight_through(y):
    X = np.random.default_rng(0).normal(size=(N, 3))
    counting = pd.DataFrame(X, columns=list("abc")).assign(id=np.arange(N), flag=X[:, 0] > 0)
    for table in (counting, pl.from_dict({n: counting[n].to_numpy() for n in counting})):
        model = HRMRegressor(random_state=0).fit(table, y)
        assert not hasattr(model, "encoder_")
        assert list(model.feature_names_in_) == ["a", "b", "c", "id", "flag"]


def test_numbers_with_gaps_keep_every_column(y):
    X = np.random.default_rng(0).normal(size=(N, 2))
    X[3, 0] = np.nan
    table = pd.DataFrame(X, columns=["a", "b"]).assign(id=np.arange(N))
    model = HRMRegressor(random_state=0).fit(table, y)
    assert list(model.feature_names_in_) == ["a", "b", "id"]
    assert np.isfinite(model.predict(table)).all()
    model.fit(table.fillna(0.0), y)
    assert not hasattr(model, "encoder_")
    with pytest.raises(ValueError, match="contains NaN"):
        HRMRegressor().fit(X, y)


def test_a_model_of_a_frame_travels_as_a_file(frame, model, tmp_path):
    modelfile.save(model, tmp_path / "m.hetrisk")
    again = modelfile.load(tmp_path / "m.hetrisk")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_features_encoded_before_are_taken_as_they_are(frame, model):
    numbers = encoded(model, frame, reset=False)
    np.testing.assert_array_equal(model.predict(numbers), model.predict(frame))
    assert encoded(model, numbers, reset=False) is numbers


def test_other_estimators_take_frames_too(frame, y):
    environments = np.where(frame["town"] == "ulm", "a", "b")
    invariant = InvariantRegressor().fit(frame.drop(columns="town"), y, environments=environments)
    assert invariant.predict(frame).shape == (N,)
    mixture = EnvironmentMixture(n_environments=2, random_state=0).fit(frame, y)
    assert mixture.predict_proba(frame, y).shape == (N, 2)
    assert mixture.predict_proba(frame).shape == (N, 2)
    assert clone(mixture).n_environments == 2


def test_evidence_prints_with_the_names_of_the_columns(model):
    lines = str(model.evidence_).splitlines()
    assert lines[0].startswith("column ")
    assert [line.split("  ")[0] for line in lines[1:]] == names_of(model)
    table = pd.DataFrame(model.evidence_.rows()).set_index("column")
    assert table.loc["size", "margin"] == model.evidence_.margin[0]


def test_frames_that_are_no_tables_are_refused(frame, y):
    with pytest.raises(TableError, match="column names must differ; 'size'"):
        HRMRegressor().fit(pd.concat([frame, frame[["size"]]], axis=1), y)
    with pytest.raises(TableError, match="the table has no rows"):
        HRMRegressor().fit(frame.iloc[:0], y[:0])


def test_what_is_a_number_already():
    assert is_numeric(pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.0]}))
    assert not is_numeric(pd.DataFrame({"a": [1.0, np.nan]}))
    assert not is_numeric(pd.DataFrame({"a": ["1", "2"]}))
    assert is_numeric(pl.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.0]}))
    assert not is_numeric(pl.DataFrame({"a": [1.0, float("nan")]}))
    assert not is_numeric(pl.DataFrame({"a": [1, None]}))
    assert not is_numeric(pl.DataFrame({"a": ["1", "2"]}))
    with pytest.raises(TableError, match="pandas or polars DataFrame; got ndarray"):
        as_pandas(np.zeros((2, 2)))


def test_a_frame_of_numbers_may_lack_the_columns_that_were_left_out():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 2, 2000)
    frame = pd.DataFrame(rng.standard_normal((2000, 3)), columns=["a", "b", "c"])
    y = frame["a"] + np.where(site == 0, 2.0, -2.0) * frame["c"] + 0.3 * rng.standard_normal(2000)
    model = HRMRegressor().fit(frame, y, environments=site)
    assert model.support_.tolist() == [True, True, False]
    expected = model.predict(frame)
    assert np.allclose(model.predict(frame[["a", "b"]]), expected, rtol=1e-12)
    assert np.allclose(model.predict(frame[["b", "a"]]), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["a", "c"]])
