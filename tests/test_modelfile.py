"""Model files: the same predictions back, and nothing run that the file brought along."""

import copy
import io
import json
import os
import pickle
import typing
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import dummy, ensemble, linear_model, preprocessing, tree
from sklearn.base import clone, is_classifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVR

import hetrisk
from hetrisk import (
    EnvironmentMixture,
    HRMClassifier,
    HRMRegressor,
    HRMSelector,
    InvariantClassifier,
    InvariantRegressor,
    baselines,
    modelfile,
)
from hetrisk.modelfile import ModelFileError
from hetrisk.modelfile.named import NAMED
from hetrisk.modelfile.own import fits
from hetrisk.tables import Table
from hetrisk.tables.model import fit_table

# Few rows: the search may warn that nothing is safe, scikit-learn that it did not settle.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
N = 113  # no other size in a model is a prime as large


def table(seed=0, n=N):
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


def rows(n=N):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    y = np.abs(X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=n))
    labels = np.where(y > 1, "b", np.where(y < 0.3, "a", "c"))
    return X, y, labels, rng.integers(0, 2, n)


def again(model):
    return modelfile.loads(modelfile.dumps(model))


def check_round_trip(model, X):
    back = again(model)
    assert type(back) is type(model)
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(back, name)(X), getattr(model, name)(X))
    return back


@pytest.fixture(scope="module", params=["y", "label"])
def fitted(request):
    data = table()
    other = "label" if request.param == "y" else "y"
    return fit_table(data, request.param, drop=[other]), data.frame


def test_a_round_trip_changes_no_bit(fitted, tmp_path):
    model, frame = fitted
    modelfile.save(model, tmp_path / "m.hetrisk")
    back = modelfile.load(tmp_path / "m.hetrisk")
    assert isinstance(back, Pipeline)
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(back[-1].support_, model[-1].support_)
    assert back[0].columns_ == model[0].columns_
    assert back[-1].verdict_reason_ == model[-1].verdict_reason_
    assert modelfile.dumps(back) == modelfile.dumps(model)  # every attribute that travels
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))


def test_environments_of_new_rows_survive_the_round_trip(fitted):
    model, frame = fitted
    back = again(model)
    X = model[0].transform(frame)
    y = frame[model[0].description_.target].to_numpy()
    np.testing.assert_array_equal(
        back[-1].predict_environments(X, y), model[-1].predict_environments(X, y)
    )


def _arrays(node):
    if isinstance(node, dict):
        if node.get("is") in ("array", "texts"):
            yield node
        for part in node.values():
            yield from _arrays(part)
    elif isinstance(node, list):
        for part in node:
            yield from _arrays(part)


def test_a_file_holds_nothing_per_training_row(fitted):
    model, _ = fitted
    with zipfile.ZipFile(io.BytesIO(modelfile.dumps(model))) as archive:
        tree = json.loads(archive.read("model.json"))
    shapes = [node["shape"] for node in _arrays(tree)]
    assert shapes
    assert all(size < N for shape in shapes for size in shape)
    with pytest.raises(AttributeError, match="environment_proba_"):
        _ = again(model)[-1].environment_proba_
    assert len(model[-1].environments_) == N


REGRESSORS = [
    linear_model.LinearRegression(),
    linear_model.Ridge(),
    linear_model.RidgeCV(),
    linear_model.Lasso(0.01),
    linear_model.LassoCV(cv=3),
    linear_model.ElasticNet(0.01),
    linear_model.ElasticNetCV(cv=3),
    linear_model.HuberRegressor(max_iter=1000),
    linear_model.QuantileRegressor(),
    tree.DecisionTreeRegressor(),
    tree.ExtraTreeRegressor(),
    ensemble.RandomForestRegressor(4, random_state=0),
    ensemble.ExtraTreesRegressor(4, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=4),
    ensemble.GradientBoostingRegressor(n_estimators=3, init="zero", loss="huber"),
    ensemble.HistGradientBoostingRegressor(max_iter=4),
    ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=3),
    dummy.DummyRegressor(),
    *(
        make_pipeline(step, linear_model.Ridge())
        for step in (
            preprocessing.StandardScaler(),
            preprocessing.MinMaxScaler(),
            preprocessing.MaxAbsScaler(),
            preprocessing.RobustScaler(),
            SimpleImputer(),
        )
    ),
]
CLASSIFIERS = [
    linear_model.LogisticRegression(),
    linear_model.LogisticRegressionCV(Cs=3, cv=3),
    tree.DecisionTreeClassifier(),
    tree.ExtraTreeClassifier(),
    ensemble.RandomForestClassifier(4, random_state=0),
    ensemble.ExtraTreesClassifier(4, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=4),
    ensemble.HistGradientBoostingClassifier(max_iter=4),
    dummy.DummyClassifier(),
]


def _kinds(final):
    return (
        [type(s) for s in final.named_steps.values()] if hasattr(final, "steps") else [type(final)]
    )


def test_every_estimator_on_the_list_is_tried():
    tried = {kind.__name__ for final in REGRESSORS + CLASSIFIERS for kind in _kinds(final)}
    assert tried == set(NAMED)


@pytest.fixture(scope="module")
def searched():
    """Models whose final estimator is fitted anew in each test, without another search."""
    X, y, labels, _ = rows()
    targets = [y, labels, y > 0.5]
    kinds = [HRMRegressor, HRMClassifier, HRMClassifier]
    models = [k("gates", max_rounds=1).fit(X, t) for k, t in zip(kinds, targets, strict=True)]
    return list(zip(models, targets, strict=True))


@pytest.mark.parametrize("final", REGRESSORS + CLASSIFIERS, ids=str)
def test_final_estimators_on_the_list_travel(final, searched):
    X = rows()[0]
    for model, target in searched[1:] if is_classifier(final) else searched[:1]:
        model = copy.copy(model)
        model.final_estimator = final
        model.final_estimator_ = clone(final).fit(X[:, model.support_], target)
        check_round_trip(model, X)


OWN = {
    "HRMRegressor": lambda X, y, c, e: HRMRegressor(random_state=0).fit(X, y),
    "gates": lambda X, y, c, e: HRMRegressor("gates", random_state=0, n_jobs=2).fit(X, y),
    "HRMClassifier": lambda X, y, c, e: HRMClassifier("gates", max_rounds=1).fit(X, c),
    "numbers for classes": lambda X, y, c, e: HRMClassifier("gates", max_rounds=1).fit(X, e + 3),
    "a generator": lambda X, y, c, e: HRMRegressor(
        "gates", max_rounds=1, random_state=np.random.RandomState(0)
    ).fit(X, y),
    "a frame": lambda X, y, c, e: HRMRegressor("gates", max_rounds=1).fit(
        pd.DataFrame(X, columns=list("abcd")), y
    ),
    "told": lambda X, y, c, e: HRMRegressor(random_state=0).fit(X, y, environments=e),
    "hinted": lambda X, y, c, e: HRMRegressor(random_state=0).fit(X, y, hints=e),
    "directions": lambda X, y, c, e: HRMRegressor(form="directions", random_state=0).fit(
        X, y, environments=e
    ),
    "HRMSelector": lambda X, y, c, e: HRMSelector("gates", max_rounds=1).fit(X, y),
    "selector in a pipeline": lambda X, y, c, e: make_pipeline(
        StandardScaler(), HRMSelector("gates", max_rounds=1), ensemble.RandomForestRegressor(3)
    ).fit(X, y),
    "scaled": lambda X, y, c, e: make_pipeline(
        StandardScaler(), HRMRegressor("gates", max_rounds=1)
    ).fit(X, y),
    "EnvironmentMixture": lambda X, y, c, e: EnvironmentMixture(2, random_state=0).fit(X, y),
    "mixture of labels": lambda X, y, c, e: EnvironmentMixture(1, random_state=0).fit(X, c),
    "InvariantRegressor": lambda X, y, c, e: InvariantRegressor().fit(X, y, e),
    "InvariantClassifier": lambda X, y, c, e: InvariantClassifier().fit(X, c, e),
}


@pytest.mark.parametrize("case", OWN)
def test_every_estimator_of_ours_travels(case):
    X, y, labels, environments = rows()
    model = OWN[case](X, y, labels, environments)
    if case == "a frame":
        X = pd.DataFrame(X, columns=list("abcd"))
    check_round_trip(model, X)


def _baselines():
    return [name for name in baselines.__all__ if name.endswith(("Regressor", "Classifier"))]


@pytest.mark.parametrize("name", _baselines())
def test_every_baseline_travels(name):
    X, y, labels, environments = rows(60)
    kind = getattr(baselines, name)
    strength = {kind.strength: 0.1} if kind.strength else {}
    with_labels = "environments" in kind.fit.__code__.co_varnames
    given = (environments,) if with_labels else ()
    check_round_trip(kind(**strength).fit(X, y if "Regressor" in name else labels, *given), X)


class Mine:
    """Somebody else's class: not one a model file may hold."""

    def __init__(self) -> None:
        self.x = 1


class OwnForest(ensemble.RandomForestRegressor):
    """A subclass may do anything; only the class on the list may travel."""


def _mark(*args):
    raise AssertionError("code from a model file was run")


class Bomb:
    def __reduce__(self):
        return (_mark, ("x",))


def packed(compression=zipfile.ZIP_STORED, **files):
    """Return an archive; ``model_json`` stands for model.json and so on."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_", "."), data)
    return buffer.getvalue()


LABEL = json.dumps({"format": modelfile.FORMAT_VERSION})


def parts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.replace(".", "_"): archive.read(name) for name in archive.namelist()}


def relabelled(data, **label):
    return packed(**{**parts(data), "hetrisk_json": json.dumps(label)})


def edited(data, change):
    """Return a model file whose tree went through ``change`` in place."""
    whole = parts(data)
    model = json.loads(whole["model_json"])
    replaced = change(model)
    return packed(**{**whole, "model_json": json.dumps(model if replaced is None else replaced)})


def nodes(model, tag):
    """All nodes of one kind in a tree of JSON."""
    if isinstance(model, dict):
        if model.get("is") == tag:
            yield model
        model = list(model.values())
    if isinstance(model, list):
        for part in model:
            yield from nodes(part, tag)


def of_tag(data, tag, change):
    """Return a file where ``change`` went over the first node of a kind that holds something."""
    return edited(data, lambda model: change(next(n for n in nodes(model, tag) if n.get("of", 1))))


def with_numbers(data, tag, part, change):
    """Return a file where ``change`` went over the numbers of a part of a node, in place."""
    whole = parts(data)
    model = json.loads(whole["model_json"])
    array = next(nodes(model, tag))["of"][part]
    raw = bytearray(whole["arrays_bin"])
    dtype, count = np.dtype(array["type"]), int(np.prod(array["shape"]))
    change(np.frombuffer(raw, dtype=dtype, count=count, offset=array["at"]))
    return packed(**{**whole, "arrays_bin": bytes(raw)})


def skops_like(**node):
    return packed(schema_json=json.dumps(node), hetrisk_json=LABEL)


def put(node, **items):
    node.update(items)


def put_in(node, **items):
    node["of"].update(items)


REFUSED = {
    "empty": (lambda f: b"", "is not a hetrisk model file"),
    "text": (lambda f: b"hello, world", "is not a hetrisk model file"),
    "pickle": (lambda f: pickle.dumps(Bomb()), "is a pickle: opening it could run anything"),
    "old pickle": (lambda f: pickle.dumps(Bomb(), 0), "is a pickle"),
    "truncated": (lambda f: f[: len(f) // 2], "is truncated"),
    "zip": (lambda f: packed(a="b"), "zip archive, but not a hetrisk model"),
    "no label": (lambda f: packed(model_json="1"), "zip archive, but not a hetrisk model"),
    "a part is missing": (lambda f: packed(hetrisk_json=LABEL), "three parts of a model"),
    "a part too many": (lambda f: packed(**parts(f), more="x"), "three parts of a model"),
    "newer": (lambda f: relabelled(f, format=3), "format 3, newer than the format 2"),
    "older": (lambda f: relabelled(f, format=1), "format 1, which .* fit the model again"),
    "no version": (lambda f: relabelled(f, format="x"), "is damaged"),
    "label a list": (lambda f: packed(**{**parts(f), "hetrisk_json": "[]"}), "is damaged"),
    "compressed": (
        lambda f: packed(zipfile.ZIP_DEFLATED, **parts(f)),
        "hetrisk.json is compressed or encrypted",
    ),
    "not json": (lambda f: packed(**{**parts(f), "model_json": "{"}), "is damaged"),
    "deep": (
        lambda f: packed(**{**parts(f), "model_json": "[" * 100_000 + "]" * 100_000}),
        "is damaged",
    ),
    "deep enough to read": (
        lambda f: packed(**{**parts(f), "model_json": "[" * 500 + "]" * 500}),
        "nested deeper than any model",
    ),
    "a list": (lambda f: edited(f, lambda m: []), "is not among the estimators"),
    "NaN": (lambda f: packed(**{**parts(f), "model_json": "NaN"}), "not finite where none can"),
    # Nodes of skops 0.11 that reach any attribute of any module.
    "skops method": (
        lambda f: skops_like(__class__="method", __module__="builtins", __loader__="MethodNode"),
        "is a skops file",
    ),
    "unknown node": (
        lambda f: edited(f, lambda m: {"is": "method", "of": ["os", "system"]}),
        "holds 'method', which no model is made of",
    ),
    "no node": (lambda f: edited(f, lambda m: {"of": 1}), "holds 'None', which no model"),
    "foreign class": (
        lambda f: of_tag(f, "hetrisk", lambda n: put(n, type="os.system")),
        "hetrisk has no estimator 'os.system'",
    ),
    "a function of ours": (
        lambda f: of_tag(f, "hetrisk", lambda n: put(n, type="hetrisk.modelfile.save")),
        "hetrisk has no estimator",
    ),
    "a value for an estimator": (
        lambda f: of_tag(f, "hetrisk", lambda n: put(n, type="hetrisk.estimators.scales.Scale")),
        "hetrisk has no estimator",
    ),
    "a method replaced": (
        lambda f: of_tag(f, "hetrisk", lambda n: put_in(n, predict=1)),
        "HRMRegressor has no attribute 'predict'",
    ),
    "a class replaced": (
        lambda f: of_tag(f, "hetrisk", lambda n: put_in(n, __class__="os")),
        "HRMRegressor has no attribute '__class__'",
    ),
    "SVR": (
        lambda f: of_tag(f, "scikit-learn", lambda n: put(n, type="SVR")),
        "'SVR' is not one of the estimators",
    ),
    "CountVectorizer": (
        lambda f: of_tag(f, "scikit-learn", lambda n: put(n, type="CountVectorizer")),
        "'CountVectorizer' is not one of the estimators",
    ),
    "a wrong parameter": (
        lambda f: of_tag(f, "scikit-learn", lambda n: put(n["parameters"], n_estimators="all")),
        "damaged or was tampered with",
    ),
    "a part of another estimator": (
        lambda f: of_tag(f, "scikit-learn", lambda n: put_in(n, _loss=1)),
        "has a part too many",
    ),
    "a part gone": (
        lambda f: of_tag(f, "scikit-learn", lambda n: n["of"].pop("n_features_in_") and None),
        "has no n_features_in_",
    ),
    "another number of features": (
        lambda f: of_tag(f, "scikit-learn", lambda n: put_in(n, n_features_in_=7)),
        "damaged or was tampered with",
    ),
    "fields of another version": (
        lambda f: of_tag(f, "value", lambda n: put_in(n, more=1)),
        "does not match this version of hetrisk: .*more",
    ),
    "an array outside": (
        lambda f: of_tag(f, "array", lambda n: put(n, at=1 << 40)),
        "an array lies outside the file",
    ),
    "an array too large": (
        lambda f: of_tag(f, "array", lambda n: put(n, shape=[1 << 39])),
        "an array lies outside the file",
    ),
    "an array of objects": (
        lambda f: of_tag(f, "array", lambda n: put(n, type="|O")),
        "an array has a type no model needs",
    ),
    "a negative shape": (
        lambda f: of_tag(f, "array", lambda n: put(n, shape=[-1])),
        "an array has an impossible shape",
    ),
    "a child outside": (
        lambda f: with_numbers(f, "tree", "left_child", lambda x: x.__setitem__(0, 1 << 40)),
        "the nodes of a tree are not a tree",
    ),
    "a cycle": (
        lambda f: with_numbers(f, "tree", "left_child", lambda x: x.__setitem__(0, 0)),
        "the nodes of a tree are not a tree",
    ),
    "half a leaf": (
        lambda f: with_numbers(f, "tree", "right_child", lambda x: x.__setitem__(0, -1)),
        "half a leaf",
    ),
    "a feature outside": (
        lambda f: with_numbers(f, "tree", "feature", lambda x: x.__setitem__(0, 1 << 20)),
        "tests a feature that does not exist",
    ),
    "a tree of more features": (
        lambda f: of_tag(f, "tree", lambda n: put(n, features=1 << 20)),
        "a tree does not fit its model",
    ),
    "values for no leaf": (
        lambda f: of_tag(f, "tree", lambda n: put(n["of"]["value"], shape=[1, 1, 1])),
        "has values for no leaf",
    ),
}


@pytest.fixture(scope="module")
def good():
    X, y, _, _ = rows(60)
    final = ensemble.RandomForestRegressor(2, random_state=0)
    model = HRMRegressor("gates", max_rounds=1, final_estimator=final).fit(X, y)
    return modelfile.dumps(make_pipeline(model))


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused_with_a_sentence(case, good, tmp_path):
    make, match = REFUSED[case]
    path = tmp_path / "m.hetrisk"
    path.write_bytes(make(good))
    with pytest.raises(ModelFileError, match=match) as error:
        modelfile.load(path)
    assert "m.hetrisk" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("part", ["left", "right", "feature_idx"])
def test_nodes_of_boosted_trees_are_checked(part):
    X, y, _, _ = rows()
    final = ensemble.HistGradientBoostingRegressor(max_iter=2)
    good = modelfile.dumps(HRMRegressor("gates", max_rounds=1, final_estimator=final).fit(X, y))
    bad = with_numbers(good, "boosted tree", part, lambda x: x.__setitem__(0, 60_000))
    with pytest.raises(ModelFileError, match=r"not a tree|does not exist"):
        modelfile.loads(bad)


def test_a_file_costs_no_more_memory_than_its_size(tmp_path):
    """Zeros that would unfold a thousandfold are refused by their header."""
    zeros = bytes(1 << 24)
    small = packed(
        zipfile.ZIP_DEFLATED, hetrisk_json=LABEL, model_json=b" " * 100, arrays_bin=zeros
    )
    assert len(small) < 1 << 16
    with pytest.raises(ModelFileError, match="is compressed"):
        modelfile.loads(small)


def test_arrays_that_share_their_bytes_are_refused():
    one = {"is": "array", "type": "|u1", "shape": [1 << 20], "at": 0}
    shared = packed(
        hetrisk_json=LABEL, model_json=json.dumps([one] * 80), arrays_bin=bytes(1 << 20)
    )
    with pytest.raises(ModelFileError, match="more memory than the file"):
        modelfile.loads(shared)


def test_more_parts_than_any_model_has_are_refused(monkeypatch):
    monkeypatch.setattr("hetrisk.modelfile.codec.MOST_PARTS", 100)
    many = packed(hetrisk_json=LABEL, model_json=json.dumps([[]] * 101), arrays_bin=b"")
    with pytest.raises(ModelFileError, match="more parts than any model"):
        modelfile.loads(many)


def test_text_takes_no_more_room_than_it_should(good):
    """One long label beside many empty ones would make an array of equal widths."""
    labels = ["x" * 500_000, *[""] * 500_000]
    wide = {"is": "texts", "type": "U", "shape": [500_001], "of": labels}
    with pytest.raises(ModelFileError, match="more memory than the file"):
        modelfile.loads(edited(good, lambda model: [wide]))


ODD = [None, True, -1, 2**63, 1e308, "", "x", "__class__", [], {}, [[]], {"is": "method"}]


def _ways(node, path=()):
    if isinstance(node, (dict, list)):
        for key, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield (*path, key)
            yield from _ways(part, (*path, key))


@pytest.mark.parametrize("seed", range(40))
def test_a_changed_part_is_refused_or_the_model_predicts(seed, good):
    rng = np.random.default_rng(seed)

    def change(model):
        ways = list(_ways(model))
        *way, last = ways[rng.integers(len(ways))]
        home = model
        for key in way:
            home = home[key]
        home[last] = ODD[rng.integers(len(ODD))]

    try:
        model = modelfile.loads(edited(good, change))
    except ModelFileError:
        return
    assert np.isfinite(model.predict(rows(20)[0])).all()


def test_a_frame_of_anything_travels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "kind": pd.Categorical(rng.choice(["p", "q"], N)),
            "when": pd.date_range("2020-01-01", periods=N),
            "word": rng.choice(["u", "v", "w"], N),
        }
    )
    model = HRMRegressor(random_state=0).fit(frame, frame["a"] + (frame["kind"] == "p"))
    check_round_trip(model, frame)


@pytest.mark.parametrize("where", range(0, 100, 3))
def test_a_flipped_byte_is_an_error_or_harmless(good, where):
    """Checksums find damage in the parts; damage between them is at worst a sentence."""
    data = bytearray(good)
    data[len(data) * where // 100] ^= 0xFF
    try:
        model = modelfile.loads(bytes(data))
    except ModelFileError:
        return
    assert isinstance(model, Pipeline)


UNWRITABLE = {
    "alone": (lambda X, y: linear_model.LinearRegression().fit(X, y), "alone is not a hetrisk"),
    "foreign": (lambda X, y: make_pipeline(StandardScaler(), Mine()), "cannot be written.*Mine"),
    "function": (
        lambda X, y: make_pipeline(FunctionTransformer(lambda x: x), HRMRegressor()),
        "FunctionTransformer is not among the estimators",
    ),
    "SVR": (
        lambda X, y: HRMRegressor("gates", max_rounds=1, final_estimator=SVR()).fit(X, y),
        "SVR is not among the estimators.*'HistGradientBoostingRegressor'",
    ),
    "rows": (
        lambda X, y: HRMRegressor("gates", max_rounds=1, final_estimator=KNeighborsRegressor()).fit(
            X, y
        ),
        "KNeighborsRegressor is not among",
    ),
    "vectorizer": (
        lambda X, y: make_pipeline(CountVectorizer(input="filename"), HRMRegressor()),
        "CountVectorizer is not among",
    ),
    "subclass": (
        lambda X, y: HRMRegressor("gates", max_rounds=1, final_estimator=OwnForest(2)).fit(X, y),
        "OwnForest is not among",
    ),
    "not fitted": (lambda X, y: HRMRegressor(), "cannot be written: .*is it fitted?"),
    "not a model": (lambda X, y: "text", "str is not among"),
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_what_could_not_be_opened_again_is_not_written(case, tmp_path):
    make, match = UNWRITABLE[case]
    path = tmp_path / "m.hetrisk"
    path.write_bytes(b"old")
    X, y, _, _ = rows(60)
    with pytest.raises(ModelFileError, match=match):
        modelfile.save(make(X, y), path)
    assert path.read_bytes() == b"old"


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        modelfile.load(tmp_path / "none.hetrisk")


def test_a_model_of_a_later_version_opens_with_a_warning(good):
    versions = {"hetrisk": "99.1", "scikit-learn": "9"}
    later = relabelled(good, format=modelfile.FORMAT_VERSION, versions=versions)
    with pytest.warns(modelfile.NewerModelWarning, match=r"hetrisk 99\.1, later than this"):
        modelfile.loads(later)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        modelfile.loads(good)
    assert modelfile.read_label(good)["versions"]["hetrisk"] == hetrisk.__version__


def test_the_same_model_gives_the_same_bytes(good):
    assert modelfile.dumps(modelfile.loads(good)) == good


def test_a_file_needs_no_class_beyond_the_list(good):
    """What is in a file, by type: everything is ours or on the list."""
    model = json.loads(parts(good)["model_json"])
    own = [node["type"] for tag in ("hetrisk", "value") for node in nodes(model, tag)]
    named = [node["type"] for node in nodes(model, "scikit-learn")]
    assert own
    assert all(name.startswith("hetrisk.") for name in own)
    assert set(named) == {"RandomForestRegressor", "DecisionTreeRegressor"}


def test_no_pickle_is_ever_opened():
    home = Path(modelfile.__file__).parent
    text = "\n".join(path.read_text() for path in home.glob("*.py"))
    assert "import pickle" not in text
    assert "allow_pickle" not in text
    assert "eval(" not in text
    assert os.path.isdir(home)


@pytest.mark.skipif(not hasattr(typing, "TypeAliasType"), reason="needs Python 3.12")
def test_arrays_fit_types_that_are_named_aliases():
    # numpy 2.5 declares its array types so.
    scalar = typing.TypeVar("scalar", bound=np.generic)
    array = np.ndarray[tuple[typing.Any, ...], np.dtype[scalar]]
    alias = typing.TypeAliasType("Arrays", array, type_params=(scalar,))
    assert fits(np.zeros(2), alias[np.float64])
    assert not fits(np.zeros(2, dtype=int), alias[np.float64])
    assert not fits([0.0], alias[np.float64])
    assert fits(np.zeros(2, dtype=int), alias)
    assert fits(None, alias[np.float64] | None)
