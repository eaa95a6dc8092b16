"""Model files: the same predictions back, and nothing run that the file brought along."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from hetrisk import HRMClassifier, HRMRegressor, modelfile
from hetrisk.modelfile import ModelFileError
from hetrisk.tables import Table
from hetrisk.tables.model import fit_table


def table(seed=0, n=120):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    y = 2 * a - b + rng.normal(size=n) * 0.3
    frame = pd.DataFrame(
        {
            "a": a,
            "b": np.where(rng.random(n) < 0.1, np.nan, b),
            "kind": rng.choice(["p", "q", "r"], n),
            "flag": rng.choice(["yes", "no"], n),
            "when": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "y": y,
            "label": np.where(y > 0.7, "high", np.where(y < -0.7, "low", "middle")),
        }
    )
    return Table(frame, "made.csv")


@pytest.fixture(scope="module", params=["y", "label"])
def fitted(request):
    data = table()
    other = "label" if request.param == "y" else "y"
    return fit_table(data, request.param, drop=[other]), data.frame


def test_a_round_trip_changes_no_bit(fitted, tmp_path):
    model, frame = fitted
    modelfile.save(model, tmp_path / "m.skops")
    back = modelfile.load(tmp_path / "m.skops")
    assert isinstance(back, Pipeline)
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(back[-1].support_, model[-1].support_)
    assert back[0].description_ == model[0].description_
    assert back[0].columns_ == model[0].columns_
    assert back[-1].verdict_reason_ == model[-1].verdict_reason_
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))


def test_environments_of_new_rows_survive_the_round_trip(fitted):
    model, frame = fitted
    back = modelfile.loads(modelfile.dumps(model))
    X = model[0].transform(frame)
    y = frame[model[0].description_.target].to_numpy()
    np.testing.assert_array_equal(
        back[-1].predict_environments(X, y), model[-1].predict_environments(X, y)
    )


def test_a_file_holds_nothing_per_training_row(fitted):
    model, _ = fitted
    back = modelfile.loads(modelfile.dumps(model))
    with pytest.raises(AttributeError, match="environment_proba_"):
        _ = back[-1].environment_proba_
    assert len(model[-1].environments_) == 120


def test_a_second_round_trip_writes_the_same_model(fitted):
    model, frame = fitted
    once = modelfile.loads(modelfile.dumps(model))
    twice = modelfile.loads(modelfile.dumps(once))
    np.testing.assert_array_equal(twice.predict(frame), model.predict(frame))


def test_the_file_says_its_format_and_opens_with_skops_alone(fitted):
    model, frame = fitted
    data = modelfile.dumps(model)
    assert modelfile.read_label(data)["format"] == modelfile.FORMAT_VERSION
    trusted = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("hetrisk.") for name in trusted)
    back = skops.io.loads(data, trusted=trusted)
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))


def test_other_final_estimators_of_scikit_learn_travel(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    model = make_pipeline(
        StandardScaler(), HRMRegressor(final_estimator=LinearRegression(), random_state=0)
    ).fit(X, y)
    back = modelfile.loads(modelfile.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_files_of_an_older_format_ask_for_a_new_fit(fitted):
    data = relabelled(modelfile.dumps(fitted[0]), format=modelfile.FORMAT_VERSION - 1)
    with pytest.raises(ModelFileError, match=r"format 1, older than the format 2.*fit the model"):
        modelfile.loads(data)


class Mine:
    """Somebody else's class: not one a model file may hold."""

    def __init__(self) -> None:
        self.x = 1


def _mark(*args):
    raise AssertionError("code from a model file was run")


class Bomb:
    def __reduce__(self):
        return (_mark, ("x",))


def packed(schema=None, label=None, **files):
    """Return an archive that looks like a model file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if schema is not None:
            archive.writestr("schema.json", schema)
        if label is not None:
            archive.writestr("hetrisk.json", label)
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


LABEL = json.dumps({"format": modelfile.FORMAT_VERSION})


def relabelled(data, **label):
    """Return a model file with another label."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for entry in old.namelist():
            if entry != "hetrisk.json":
                new.writestr(entry, old.read(entry))
        new.writestr("hetrisk.json", json.dumps(label))
    return buffer.getvalue()


def foreign(value):
    """Return a file skops writes of any object, labelled as a model file."""
    return relabelled(skops.io.dumps(value), format=modelfile.FORMAT_VERSION)


def edited(data, change):
    """Return a model file whose schema went through ``change``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for entry in old.namelist():
            content = old.read(entry)
            if entry == "schema.json":
                content = json.dumps(change(json.loads(content))).encode()
            new.writestr(entry, content)
    return buffer.getvalue()


REFUSED = {
    "empty": (lambda good: b"", "is not a hetrisk model file"),
    "text": (lambda good: b"hello, world", "is not a hetrisk model file"),
    "pickle": (lambda good: pickle.dumps(Bomb()), "is a pickle: opening it could run anything"),
    "old pickle": (lambda good: pickle.dumps(Bomb(), 0), "is a pickle"),
    "truncated": (lambda good: good[: len(good) // 2], "is truncated"),
    "zip": (lambda good: packed(a="b"), "zip archive, but not a hetrisk model"),
    "no label": (lambda good: packed(schema="{}"), "zip archive, but not a hetrisk model"),
    "newer": (lambda good: relabelled(good, format=3), "format 3, newer than the format 2"),
    "no version": (lambda good: relabelled(good, format="x"), "is damaged"),
    "label not json": (lambda good: packed(schema="{}", label="{"), "is damaged"),
    "label a list": (lambda good: packed(schema="{}", label="[]"), "is damaged"),
    "schema not json": (lambda good: packed(schema="{", label=LABEL), "is damaged or was tampered"),
    "schema a list": (lambda good: packed(schema="[]", label=LABEL), "is damaged or was tampered"),
    "schema empty": (lambda good: packed(schema="{}", label=LABEL), "is damaged or was tampered"),
    "deep schema": (
        lambda good: packed(schema="[" * 100_000 + "]" * 100_000, label=LABEL),
        "is damaged or was tampered",
    ),
    "foreign class": (
        lambda good: foreign(make_pipeline(StandardScaler(), Mine())),
        "foreign types .*Mine",
    ),
    "foreign function": (
        lambda good: foreign(make_pipeline(FunctionTransformer(os.system))),
        "foreign types .*system",
    ),
    "own function": (
        lambda good: foreign(make_pipeline(FunctionTransformer(modelfile.save))),
        "foreign types .*hetrisk.modelfile.save",
    ),
    "tree": (
        lambda good: foreign(make_pipeline(RandomForestRegressor(1).fit([[1], [2]], [1, 2]))),
        "foreign types .*Tree",
    ),
    "not a pipeline": (lambda good: foreign(LinearRegression()), "holds a LinearRegression"),
    "a class renamed": (
        lambda good: edited(good, lambda schema: {**schema, "__class__": "system"}),
        "foreign types|is damaged",
    ),
    "another module": (
        lambda good: edited(
            good, lambda schema: {**schema, "__module__": "os", "__class__": "system"}
        ),
        "foreign types .*os.system",
    ),
    "newer skops": (
        lambda good: edited(good, lambda schema: {**schema, "protocol": 99}),
        "is damaged or was tampered",
    ),
}


@pytest.fixture(scope="module")
def good():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return modelfile.dumps(
        make_pipeline(HRMRegressor(method="gates", max_rounds=1).fit(X, X[:, 0]))
    )


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused_with_a_sentence(case, good, tmp_path):
    make, match = REFUSED[case]
    path = tmp_path / "m.skops"
    path.write_bytes(make(good))
    with pytest.raises(ModelFileError, match=match) as error:
        modelfile.load(path)
    assert "m.skops" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_archive_built_to_fill_the_memory_is_refused(good, monkeypatch):
    monkeypatch.setattr(modelfile, "_LARGEST_EXPANDED", 100)
    with pytest.raises(ModelFileError, match="would expand to more than"):
        modelfile.loads(good)


@pytest.mark.parametrize("where", range(0, 100, 7))
def test_a_flipped_byte_is_an_error_or_harmless(good, where):
    """Checksums find damage in the entries; damage between them is at worst a sentence."""
    data = bytearray(good)
    data[len(data) * where // 100] ^= 0xFF
    try:
        model = modelfile.loads(bytes(data))
    except ModelFileError:
        return
    assert isinstance(model, Pipeline)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (LinearRegression(), "model must be a scikit-learn Pipeline; got LinearRegression"),
        (make_pipeline(StandardScaler(), Mine()), "cannot be written.*Mine"),
        (make_pipeline(FunctionTransformer(lambda x: x)), "cannot be written"),
    ],
)
def test_what_could_not_be_opened_again_is_not_written(model, match, tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(b"old")
    with pytest.raises(ModelFileError, match=match):
        modelfile.save(model, path)
    assert path.read_bytes() == b"old"


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        modelfile.load(tmp_path / "none.skops")


def test_classes_of_numbers_travel():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int) + 3
    model = make_pipeline(HRMClassifier(random_state=0).fit(X, y))
    back = modelfile.loads(modelfile.dumps(model))
    assert back[-1].classes_.tolist() == [3, 4]
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
