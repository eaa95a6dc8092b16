"""What is saved is what is opened, bit by bit; and what cannot be saved is refused."""

import dataclasses
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import hetrisk
from hetrisk import modelfile
from hetrisk.core import result
from hetrisk.core.predictor import Inputs, Predictor, single
from hetrisk.modelfile import ModelFileError, schema
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.errors import TableError
from modelfile.examples import (
    deployed,
    encoded,
    frame,
    labelled,
    linear,
    messy,
    relabelled,
    summary,
    timed,
    trees,
)

MAKES = {
    "numbers": deployed,
    "labels": labelled,
    "time": timed,
    "linear": lambda: deployed(predictor=single(linear())),
    "no columns": lambda: deployed(predictor=single(linear(d=0)), columns=(), reference=None),
    "whole labels": lambda: replace(labelled(), classes=np.array([1, 2, 5])),
    "no environment": lambda: deployed(
        predictor=single(trees()),
        environment_name=None,
        environment_levels=(),
    ),
}


@pytest.mark.parametrize("make", MAKES)
def test_what_is_saved_is_what_is_opened(make, tmp_path):
    model, table = MAKES[make](), frame()
    modelfile.save(tmp_path / "m.hetrisk", model)
    again = modelfile.load(tmp_path / "m.hetrisk")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert modelfile.dumps(again) == (tmp_path / "m.hetrisk").read_bytes()
    for name, value in model.summary.items():
        if name != "origin":  # with defaults, where something was not said
            assert repr(again.summary[name]) == repr(value)


def test_numbers_are_read_as_they_were_written():
    n = 80
    frame = pd.DataFrame(
        {
            "pay": [f"{100 + 97 * i:,}" for i in range(n)],
            "share": [f"{i},5 %" for i in range(n)],
            "rare": ["a"] * 70 + [f"r{i}" for i in range(10)],
        },
        dtype=object,
    )
    encoding = TableEncoder().fit(frame).encoding_
    again = _through_a_file(encoding)
    assert again == encoding
    np.testing.assert_array_equal(again.encode(frame)[0], encoding.encode(frame)[0])


def _through_a_file(encoding):
    names = encoding.feature_names
    line = linear(d=len(names))
    model = deployed(predictor=single(line), columns=names, encoder=encoding, reference=None)
    return modelfile.loads(modelfile.dumps(model)).encoder


def test_a_table_is_encoded_as_it_was(tmp_path):
    model = encoded()
    modelfile.save(tmp_path / "m.hetrisk", model)
    again = modelfile.load(tmp_path / "m.hetrisk")
    table = messy().assign(kind="never seen", more=1).iloc[::-1]
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert again.encoder == model.encoder
    assert modelfile.dumps(again) == (tmp_path / "m.hetrisk").read_bytes()


def test_the_reference_comes_back():
    model = deployed()
    again = modelfile.loads(modelfile.dumps(model))
    for name in ("columns", "misses"):
        for key, value in vars(model.reference[name]).items():
            np.testing.assert_array_equal(getattr(again.reference[name], key), value)


def test_predictions_are_those_of_the_predictor():
    model, table = deployed(), frame()
    codes = table["site"].map({"p": 0, "q": 1, "new": -1}).to_numpy()
    rows = Inputs(table[["a", "b", "c"]].to_numpy(), environment=codes)
    np.testing.assert_array_equal(model.predict(table), model.predictor.predict(rows)[:, 0])
    np.testing.assert_array_equal(
        model.predict_interval(table, 0.9), model.predict(table)[:, None] + [-3.0, 3.0]
    )


def test_time_is_read_as_it_was():
    model, table = modelfile.loads(modelfile.dumps(timed())), frame()
    later = table.assign(when="2119-01-01")
    first = (np.datetime64("2119-01-01") - np.datetime64("2019-04-14")).astype(int)
    apart = model.predict(later) - model.predict(table)
    np.testing.assert_allclose(apart, first - np.arange(20))
    with pytest.raises(TableError, match="'when', the column of time"):
        model.predict(table.drop(columns="when"))


def test_a_fitted_model_predicts_the_same_from_its_file(tmp_path):
    table, rng = frame(240), np.random.default_rng(1)
    table = table.assign(
        when=np.sort(rng.integers(2001, 2010, 240)), site=rng.choice(["p", "q"], 240)
    )
    y = table["a"] + 0.2 * table["when"] + rng.normal(size=240)
    model = hetrisk.BacktestRegressor(time="when", environment="site").fit(table, y)
    modelfile.save(tmp_path / "m", modelfile.Deployed.from_model(model))
    again = modelfile.load(tmp_path / "m")
    later = table.assign(when=table["when"] + 15)
    np.testing.assert_allclose(again.predict(later), model.predict(later), rtol=1e-12)
    np.testing.assert_allclose(
        again.predict_interval(later, 0.8), model.predict_interval(later, 0.8), rtol=1e-12
    )
    adapted = modelfile.Deployed.from_model(model.adapt(table.iloc[:9], y[:9] + 5))
    assert "labelled rows" in modelfile.loads(modelfile.dumps(adapted)).adaptation["sentence"]


def test_a_fitted_classifier_predicts_the_same_from_its_file():
    X, rng = frame(200)[["a", "b", "c"]].to_numpy(), np.random.default_rng(1)
    sites = rng.integers(0, 5, 200)
    model = hetrisk.StableClassifier().fit(X, X[:, 0] > 0, environments=sites)
    again = modelfile.loads(modelfile.dumps(modelfile.Deployed.from_model(model)))
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_labels_have_probabilities():
    model, table = labelled(), frame()
    shares = model.predict_proba(table)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(table), model.classes[shares.argmax(axis=1)])
    with pytest.raises(ValueError, match="predicts labels"):
        model.predict_interval(table)
    with pytest.raises(ValueError, match="predicts numbers"):
        deployed().predict_proba(table)


def test_rows_in_any_order_and_number_predict_alike():
    model, table = labelled(), frame(300)
    order = np.random.default_rng(1).permutation(300)
    whole = model.predict_proba(table)
    np.testing.assert_array_equal(model.predict_proba(table.iloc[order]), whole[order])
    np.testing.assert_allclose(
        np.vstack([model.predict_proba(table.iloc[i : i + 7]) for i in range(0, 300, 7)]), whole
    )


def test_environments_that_are_missing_or_new_have_the_common_level():
    model, table = deployed(), frame()
    common = model.predict(table.assign(site="never seen"))
    np.testing.assert_array_equal(model.predict(table.drop(columns="site")), common)
    np.testing.assert_array_equal(model.predict(table.assign(site=None)), common)
    assert not np.allclose(model.predict(table.assign(site="q")), common)


def test_a_column_that_is_absent_is_named():
    with pytest.raises(TableError, match="'b'"):
        deployed().predict(frame().drop(columns="b"))


def test_intervals_grow_with_the_horizon():
    model = modelfile.loads(modelfile.dumps(replace(timed(), last_time=18_000.0, period=10.0)))
    table = frame(3).assign(when=["2019-04-14", "2019-05-04", None])  # day 18,000, and two periods
    low, high = model.predict_interval(table.iloc[:2], 0.9).T
    np.testing.assert_allclose((high - low) / 2, [3.0, 4.0])
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1; got 2"):
        model.predict_interval(table, 2)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"columns": ("a", "b")}, "have length 2; got 3"),
        ({"columns": ("a", "a", "b")}, "hold nothing twice"),
        ({"kind": "labels"}, "name classes"),
        ({"environment_levels": ("p",)}, "have length 1; got 2"),
        ({"classes": pd.to_datetime(["2020", "2021"])}, "must be text, a number.* got"),
        ({"summary": {"more": 1}}, "no field, or no value, for 'more'"),
        ({"summary": {**summary(), "verdict": object}}, "must be text, a number.* got type"),
        ({"adaptation": {"sentence": "", "figures": {"m": object()}}}, "got object"),
        ({"classes": np.array(["2020", "2021"], dtype="M8[ns]")}, "got datetime64"),
        ({"target": "x" * 20_000}, "be text, and not too long"),
        ({"predictor": Predictor(((linear(),),), np.array([0.5]))}, "sum to one"),
        ({"predictor": single(linear(2))}, "have length 1; got 2"),
    ],
)
def test_what_could_not_be_opened_again_is_not_written(changes, match):
    with pytest.raises(ModelFileError, match=match) as error:
        modelfile.dumps(deployed(**changes))
    assert str(error.value).startswith("the model cannot be written: ")


def test_an_estimator_of_the_users_own_is_refused():
    class Fitted:
        predictor_ = None

    with pytest.raises(ModelFileError, match="an estimator of your own"):
        modelfile.Deployed.from_model(Fitted())


def test_the_schema_has_every_field_of_the_results():
    declared = {
        value.make: set(value.fields)
        for value in vars(schema).values()
        if isinstance(value, schema.Record) and dataclasses.is_dataclass(value.make)
    }
    assert {result.Ranked, result.Tested, result.Forecast, result.ColumnEvidence} <= set(declared)
    for kind, names in declared.items():
        assert names == {field.name for field in dataclasses.fields(kind)}, kind


def test_a_file_of_a_later_version_opens_with_a_warning():
    good = modelfile.dumps(deployed())
    later = relabelled(good, format=modelfile.FORMAT_VERSION, hetrisk="99.1\x1b[2J")
    with pytest.warns(modelfile.NewerModelWarning, match=r"hetrisk '99\.1\\x1b\[2J'") as told:
        modelfile.loads(later)
    assert "\x1b" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        modelfile.loads(good)
    assert hetrisk.__version__.encode() in good
