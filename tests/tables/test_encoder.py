"""The encoder as a transformer: plain is plain, whatever the frame and the order of its rows."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import hetrisk
from hetrisk.modelfile import ModelFileError, schema
from hetrisk.modelfile.codec import Reader, Writer
from hetrisk.tables import TableEncoder, TableError
from hetrisk.tables.cells import cells_of
from hetrisk.tables.frames import marked
from hetrisk.tables.time import read_environment

N = 400


def tables():
    """Tables of every kind, and the columns a person would make of them by hand."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=N)
    gaps = np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N))
    state = rng.choice([f"s{i:02}" for i in range(51)], N)
    kind = rng.choice([3, 17, 40], N)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D")
    flag = rng.random(N) < 0.3
    rare = np.where(np.arange(N) < 3, "r", rng.choice(["a", "b", "c"], N))
    missing = rng.random(N) < 0.1

    def dummies(values):
        return pd.get_dummies(pd.Series(values), dtype=float).to_numpy()

    filled = np.where(np.isnan(gaps), np.nanmedian(gaps), gaps)
    days = (when - pd.Timestamp(0)) / pd.Timedelta(1, "D")
    counts = pd.Series(state).value_counts()
    lumped = np.where(np.isin(state, counts.index[counts < 5]), "few", state)
    return {
        "numbers": ({"x": x, "z": x**2}, [x, x**2]),
        "gaps": ({"x": x, "g": gaps}, [x, filled, np.isnan(gaps)]),
        "states": ({"x": x, "state": state}, [x, dummies(lumped)]),
        "numbers as category": ({"k": pd.Categorical(kind), "x": x}, [dummies(kind), x]),
        "numbers as text": ({"k": pd.Series(kind).astype("string"), "x": x}, [dummies(kind), x]),
        "dates": ({"when": when, "x": x}, [days, x]),
        "truths": ({"flag": flag, "x": x}, [flag, x]),
        "rare": ({"rare": rare, "x": x}, [dummies(rare), x]),
        "category with gaps": (
            {"c": pd.Series(np.where(missing, None, rare), dtype="category"), "x": x},
            [dummies(np.where(missing, "none", rare)), x],
        ),
        "all": (
            {"x": x, "g": gaps, "state": state, "when": when, "flag": flag},
            [x, filled, np.isnan(gaps), dummies(lumped), days, flag],
        ),
    }


@pytest.mark.parametrize("kind", tables())
def test_least_squares_by_hand_and_ours_agree(kind):
    columns, by_hand = tables()[kind]
    frame = pd.DataFrame(columns)
    last = frame.iloc[:, -1]
    y = np.random.default_rng(1).normal(size=N) + pd.factorize(last)[0] / N
    design = np.column_stack([np.ones(N), *by_hand]).astype(float)
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    model = make_pipeline(TableEncoder(), LinearRegression())
    assert np.abs(model.fit(frame, y).predict(frame) - expected).max() < 1e-8
    if kind in ("numbers", "states", "dates", "truths"):
        spread = pl.DataFrame({k: pl.Series(np.asarray(v)) for k, v in columns.items()})
        assert np.abs(clone(model).fit(spread, y).predict(spread) - expected).max() < 1e-8


@given(st.randoms(use_true_random=False), st.sampled_from(sorted(tables())))
@settings(max_examples=20, deadline=None)
def test_the_order_of_rows_and_columns_decides_nothing(random, kind):
    frame = pd.DataFrame(tables()[kind][0]).assign(copy=lambda f: f.iloc[:, 0], count=range(N))
    rows = random.sample(range(N), N)
    names = random.sample(list(frame.columns), frame.shape[1])
    one = TableEncoder().fit(frame)
    other = TableEncoder().fit(frame.iloc[rows][names])
    assert set(one.columns_) == set(other.columns_)
    assert {(out.name, str(out)) for out in one.left_out_} == {
        (out.name, str(out)) for out in other.left_out_
    }
    placed = pd.DataFrame(other.transform(frame), columns=other.get_feature_names_out())
    assert np.array_equal(placed[one.get_feature_names_out()].to_numpy(), one.transform(frame))


def test_a_level_never_seen_is_the_mean_of_levels_weighted_by_rows():
    rng = np.random.default_rng(0)
    town = np.repeat(["a", "b", "c"], [60, 30, 10])
    y = np.where(town == "a", 1.0, np.where(town == "b", 2.0, 7.0)) + rng.normal(0, 0.1, 100)
    model = make_pipeline(TableEncoder(), LinearRegression()).fit(pd.DataFrame({"town": town}), y)
    assert model.predict(pd.DataFrame({"town": ["new"]}))[0] == pytest.approx(y.mean())


def test_what_a_type_says_is_never_overruled():
    codes = ["1", "2", "3", "1"] * 10
    for dtype in ("category", "string", "str"):
        encoder = TableEncoder().fit(pd.DataFrame({"x": pd.Series(codes, dtype=dtype)}))
        assert list(encoder.get_feature_names_out()) == ["x=1", "x=2", "x=3"]
    names = ["x=no", "x=yes"]
    encoder = TableEncoder().fit(pd.DataFrame({"x": pd.Categorical(["yes", "no", "no"] * 9)}))
    assert list(encoder.get_feature_names_out()) == [names[1]]
    text = pd.DataFrame({"x": pd.Series(codes, dtype=object)})
    assert list(TableEncoder().fit(text).get_feature_names_out()) == ["x"]
    assert list(TableEncoder(category=["x"]).fit(text).get_feature_names_out()) == [
        "x=1",
        "x=2",
        "x=3",
    ]
    typed = pd.DataFrame({"x": pd.Series(codes, dtype="str")})
    assert list(TableEncoder(number=["x"]).fit(typed).get_feature_names_out()) == ["x"]


def test_a_level_may_be_called_none():
    typed = pd.DataFrame({"extra": pd.Categorical(["none", "salt", "sugar"] * 9)})
    encoder = TableEncoder().fit(typed)
    names = ["extra=none", "extra=salt", "extra=sugar"]
    assert list(encoder.get_feature_names_out()) == names
    text = pd.DataFrame({"extra": ["None", "none", "NA"]}, dtype=object)
    assert encoder.transform(text)[1].tolist() == [1, 0, 0]
    assert encoder.transform(text)[2].round(3).tolist() == [0.333, 0.333, 0.333]
    assert read_environment(typed["extra"])[1] == ("none", "salt", "sugar")


def test_what_was_read_from_a_text_file_is_read_as_what_it_spells():
    frame = pd.DataFrame({"x": ["1,5", "2,5", "3,5"] * 10, "d": ["01/02/2020", "03/04/2021"] * 15})
    read = marked(frame, text=True, dayfirst=True)
    encoder = TableEncoder().fit(read.drop(columns=[]).iloc[5:])
    assert list(encoder.get_feature_names_out()) == ["x", "d"]
    assert encoder.transform(frame.iloc[:1]).tolist() == [[1.5, 18293.0]]
    out = TableEncoder().fit(marked(frame, text=True)).left_out_
    assert str(out[0]).endswith("say which with dayfirst=True or dayfirst=False")


def test_a_value_missing_only_at_predict_is_filled_as_in_training():
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, 3.0] * 9, "c": ["a", "b", "c"] * 9, "b": [True, False, True] * 9}
    )
    encoder = TableEncoder().fit(frame)
    gone = pd.DataFrame({"x": [np.nan], "c": [None], "b": pd.array([None], dtype="boolean")})
    assert encoder.transform(gone).round(12).tolist() == [[2.0, *[round(1 / 3, 12)] * 3, 1.0]]


@pytest.mark.parametrize("kind", tables())
def test_an_encoder_travels_as_plain_values(kind):
    frame = pd.DataFrame(tables()[kind][0])
    encoder = TableEncoder().fit(frame)
    written = schema.ENCODING.write(encoder.encoding_, Writer())
    again = recorded(json.loads(json.dumps(written, allow_nan=False)))
    assert again == encoder.encoding_
    assert np.array_equal(again.encode(frame)[0], encoder.transform(frame))


def recorded(record):
    """What a model file makes of a recorded encoding."""
    return schema.ENCODING.read(record, Reader(b"", hetrisk.__version__))


def corrupted():
    column = {"kind": "number", "name": "x", "fill": 0.0, "excused": [], "gaps": False}
    number = column | {"decimal": ".", "thousands": "", "unit": ""}
    level = {"kind": "category", "name": "x", "levels": ["a", "b"], "shares": [0.5, 0.5]}
    level |= {"other": False, "absent": False, "rare": []}
    date = column | {"kind": "date", "form": "ISO8601"}
    truth = column | {"kind": "boolean", "words": ["yes", "no"]}
    good = [number, level, date, truth]
    bad = [number | {"fill": float("nan")}, number | {"fill": "0"}, number | {"decimal": ";"}]
    bad += [number | {"thousands": "x"}, number | {"more": 1}, number | {"kind": "os"}, "number"]
    bad += [number | {"excused": "ab"}, number | {"gaps": 1}, number | {"name": None}]
    bad += [
        level | {"shares": [0.5]},
        level | {"shares": [0.5, 0.6]},
        level | {"levels": ["a", "a"]},
    ]
    bad += [level | {"shares": [2.0, -1.0]}, level | {"rare": [1]}, level | {"absent": "no"}]
    bad += [date | {"form": "%s"}, truth | {"words": ["yes"]}]
    return good, bad


def test_records_are_checked_field_by_field():
    good, bad = corrupted()

    def whole(*columns, **changes):
        record = {"version": 1, "table_names": ["x"], "columns": list(columns)}
        return recorded(record | changes)

    for column in good:
        assert whole(column).encode(pd.DataFrame({"x": [None]}))[0].shape[0] == 1
    for column in bad:
        with pytest.raises(ModelFileError, match="is damaged"):
            whole(column)
    for changes in ({"version": 2}, {"table_names": ["y"]}, {"columns": []}, {"extra": 0}):
        with pytest.raises(ModelFileError, match="is damaged"):
            whole(good[0], **changes)
    with pytest.raises(ModelFileError, match="use columns of the table, each once"):
        whole(*good[:2])


def test_arrays_are_used_column_by_column():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:30, 2] = np.nan
    encoder = TableEncoder().fit(X)
    assert list(encoder.get_feature_names_out()) == ["x0", "x1", "x2", "x2=(missing)"]
    assert np.array_equal(encoder.transform(X)[:, :2], X[:, :2])
    with pytest.raises(ValueError, match="X has 2 features, but TableEncoder is expecting 3"):
        encoder.transform(X[:, :2])
    assert not hasattr(encoder, "feature_names_in_")


@parametrize_with_checks([TableEncoder()])
def test_estimator_checks(estimator, check):
    check(estimator)


def test_it_is_a_transformer_as_scikit_learn_has_them():
    frame = pd.DataFrame(tables()["all"][0])
    encoder = TableEncoder(use=["x"]).set_output(transform="pandas")
    out = clone(encoder).fit_transform(frame)
    assert list(out.columns) == list(encoder.fit(frame).get_feature_names_out())
    assert encoder.get_params()["use"] == ["x"]


@pytest.mark.parametrize("n_columns", [2_100, 100_000])
def test_far_too_many_columns_are_refused_after_a_look_at_a_few(n_columns, monkeypatch):
    looked = []

    def counting(name, column, **options):
        looked.append(name)
        return cells_of(name, column, **options)

    monkeypatch.setattr("hetrisk.tables.encoder.cells_of", counting)
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(20, n_columns)))
    with pytest.raises(TableError, match=f"{n_columns:,} columns"):
        TableEncoder().fit(wide)
    assert len(looked) == 2001


def test_encoding_a_table_needs_no_scikit_learn():
    code = (
        "import sys; from hetrisk.tables.encoding import Encoding; import hetrisk.tables.time; "
        "import hetrisk.tables.reading; sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
