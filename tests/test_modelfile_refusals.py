"""What a model file may hold: all else is refused, and nothing runs that it brought along."""

import io
import json
import os
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, linear_model
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVR

import hetrisk
from hetrisk import (
    HRMClassifier,
    HRMRegressor,
    HRMSelector,
    modelfile,
)
from hetrisk.modelfile import ModelFileError
from model_files import rows

# Few rows: the search may warn that nothing is safe, scikit-learn that it did not settle.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


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
    "Nystroem": (
        lambda f: of_tag(f, "scikit-learn", lambda n: put(n, type="Nystroem")),
        "'Nystroem' is not one of the estimators",
    ),
    "requests of metadata": (
        lambda f: of_tag(f, "hetrisk", lambda n: put_in(n, _metadata_request="fit")),
        "HRMRegressor has no attribute '_metadata_request'",
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


def _filled_with_infinity(model):
    column = next(node for node in nodes(model, "value") if "fill" in node["of"])
    column["of"]["fill"] = {"is": "float", "of": "inf"}


@pytest.mark.parametrize("kind", [HRMRegressor, HRMSelector], ids=lambda kind: kind.__name__)
def test_the_encoder_of_an_estimator_is_tried_too(kind):
    X, y, _, environments = rows(60)
    frame = pd.DataFrame(X).add_prefix("x").assign(word=np.where(X[:, 0] > 0, "u", "v"))
    good = modelfile.dumps(kind().fit(frame, y, environments=environments))
    with pytest.raises(ModelFileError, match="damaged or was tampered with"):
        modelfile.loads(edited(good, _filled_with_infinity))


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
        r"KNeighborsRegressor is not among the estimators a model file holds \(it keeps rows",
    ),
    # Its components_ are rows it was fitted on, and a file holds none.
    "Nystroem": (
        lambda X, y: make_pipeline(Nystroem(n_components=9), HRMRegressor("gates")).fit(X, y),
        r"Nystroem is not among the estimators a model file holds \(it keeps rows",
    ),
    "labels": (
        lambda X, y: HRMClassifier("gates", max_rounds=1).fit(
            X, np.where(y > 1, np.timedelta64(1, "D"), np.timedelta64(2, "D"))
        ),
        r"array of timedelta64\[D\]: arrays, of labels too, may hold .* or dates \(datetime64",
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
