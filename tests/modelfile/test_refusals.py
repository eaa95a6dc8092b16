"""What a model file may hold: all else is refused in a sentence, and nothing in it runs."""

import dataclasses
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hetrisk import modelfile
from hetrisk.modelfile import ModelFileError, kinds, schema
from modelfile.examples import (
    LABEL,
    deployed,
    edited,
    encoded,
    labelled,
    packed,
    part,
    parts,
    reference,
    relabelled,
    timed,
    with_numbers,
)


def _mark(*args):
    raise AssertionError("code from a model file was run")


class Bomb:
    def __reduce__(self):
        return (_mark, ("x",))


def put(kind, /, **items):
    """Change a part of the predictor."""
    return lambda f: edited(f, lambda records: part(records, kind).update(items))


def put_in(name, /, **items):
    """Change fields of a record."""
    return lambda f: edited(f, lambda records: records[name].update(items))


def number(kind, name, value, at=0):
    """Change one number of an array of a part."""
    return lambda f: with_numbers(f, kind, name, lambda x: x.__setitem__(at, value))


MANY = [f"level {j}" for j in range(6000)]
TWO = {"shape": [2, 2], "at": 0}
REFUSED = {
    "empty": (lambda f: b"", "is not a hetrisk model file"),
    "text": (lambda f: b"hello, world", "is not a hetrisk model file"),
    "pickle": (lambda f: pickle.dumps(Bomb()), "is a pickle: opening it could run anything"),
    "old pickle": (lambda f: pickle.dumps(Bomb(), 0), "is a pickle"),
    "truncated": (lambda f: f[: len(f) // 2], "is truncated"),
    "zip": (lambda f: packed(a="b"), "zip archive, but not a hetrisk model"),
    "no label": (lambda f: packed(records_json="1"), "zip archive, but not a hetrisk model"),
    "a part is missing": (lambda f: packed(hetrisk_json=LABEL), "three parts of a model"),
    "a part too many": (lambda f: packed(**parts(f), more="x"), "three parts of a model"),
    "newer format": (
        lambda f: relabelled(f, format=4, hetrisk="0.9\x1b"),
        r"by hetrisk '0.9\\x1b' in format 4, newer than the format 3",
    ),
    "older format": (lambda f: relabelled(f, format=2), "format 2, which .* fit the model again"),
    "no format": (lambda f: relabelled(f, format="x"), "does not say which format"),
    "label a list": (lambda f: packed(**{**parts(f), "hetrisk_json": "[]"}), "is damaged"),
    "compressed": (
        lambda f: packed(zipfile.ZIP_DEFLATED, **parts(f)),
        "hetrisk.json is compressed or encrypted",
    ),
    "not json": (lambda f: packed(**{**parts(f), "records_json": "{"}), "cannot be read"),
    "deep": (
        lambda f: packed(**{**parts(f), "records_json": "[" * 100_000 + "]" * 100_000}),
        "is damaged",
    ),
    "unfolding": (
        lambda f: packed(**{**parts(f), "records_json": "[" + "[]," * 1_000_000 + "1]"}),
        "no model needs more than 1,000,000 values",
    ),
    "said twice": (lambda f: packed(**{**parts(f), "records_json": '{"a":1,"a":2}'}), "twice"),
    "NaN": (lambda f: packed(**{**parts(f), "records_json": "NaN"}), "NaN is no number of JSON"),
    "a list": (lambda f: packed(**{**parts(f), "records_json": "[]"}), "hold encoder, predictor"),
    "no record": (lambda f: edited(f, lambda r: r.pop("summary")), "hold encoder, predictor"),
    "no version": (lambda f: edited(f, lambda r: r["summary"].pop("version")), "say its version"),
    "a class": (put_in("predictor", kind="sklearn.svm.SVR"), "be one of 'numbers', 'labels'"),
    "a field too many": (put_in("predictor", __class__="os"), "not hold '__class__'"),
    "a field gone": (
        lambda f: edited(f, lambda r: r["predictor"].pop("target")),
        "'predictor.target' must be there",
    ),
    "an unknown part": (
        put("linear", kind="method"),
        "be one of 'linear', 'level', 'hinges', 'trees'",
    ),
    "a part without a kind": (put("linear", kind=["x"]), "be one of 'linear'"),
    "wrong text": (put_in("predictor", target=3), "'predictor.target' must be text"),
    "a class count": (put_in("predictor", n_scores=2), r"must have length 2; got 1"),
    "true for a number": (put_in("predictor", n_scores=True), "be a whole number"),
    "a huge number": (put("linear", origin=10**30), "be a number"),
    "an infinite number": (put("linear", origin="inf"), "be finite"),
    "a missing number": (put("linear", origin="nan"), "not be missing"),
    "an array outside": (put("linear", coef={"shape": [3, 1], "at": 1 << 40}), "lie inside the"),
    "an array before": (put("linear", coef={"shape": [3, 1], "at": -8}), "lie inside the file"),
    "an array too large": (
        put("linear", coef={"shape": [1 << 39, 1], "at": 0}),
        "have a possible shape",
    ),
    "a negative shape": (put("linear", coef={"shape": [-1, 1], "at": 0}), "a possible shape"),
    "another shape": (put("linear", coef={"shape": [2, 1], "at": 0}), "have length 3; got 2"),
    "fewer dimensions": (put("linear", coef={"shape": [3], "at": 0}), "array of its dimensions"),
    "an array of objects": (
        put("linear", coef={"type": "|O", "shape": [3, 1], "at": 0}),
        "array of its dimensions",
    ),
    "no finite coefficient": (number("linear", "coef", np.nan), "hold no missing value"),
    "a giant coefficient": (number("linear", "coef", 1e308), "lie between"),
    "a child outside": (number("trees", "left", 1 << 40), "children that stand after"),
    "a child before its parent": (number("trees", "left", 0, at=4), "children that stand after"),
    "a child of two": (number("trees", "left", 2), "belong to one place of one tree"),
    "half a leaf": (number("trees", "right", 0, at=1), "children that stand after"),
    "a negative child": (number("trees", "left", -1), "lie between"),
    "a root that is a leaf of another": (number("trees", "root", 1, at=1), "one place of one tree"),
    "a root outside": (number("trees", "root", 99), "one place of one tree"),
    "a feature outside": (number("trees", "feature", 3), "test columns that exist"),
    "a feature of a leaf outside": (number("trees", "feature", 3, at=1), "columns that exist"),
    "a hinge of no column": (number("hinges", "feature", 3), "bend columns that exist"),
    "a negative hinge": (number("hinges", "feature", -1), "lie between"),
    "a deep encoder": (
        put_in("encoder", encoder={"columns": json.loads("[" * 50 + "]" * 50)}),
        "must be a record",
    ),
    "a score outside": (number("trees", "output", 1), "add to scores that exist"),
    "deeper than it says": (put("trees", depth=1), "be as deep as it says"),
    "deeper than any": (put("trees", depth=10**9), "from 0 to 128"),
    "more columns": (put("trees", n_features=10**9), "be a whole number"),
    "other columns": (put("trees", n_features=4), "have length 3; got 4"),
    "time that is not read": (put("trees", uses_time=True), "say how time is read"),
    "a wrong link": (
        lambda f: edited(f, lambda r: r["predictor"]["predictor"].update(link="softmax")),
        "have the link identity",
    ),
    "weights": (
        lambda f: edited(f, lambda r: r["predictor"]["predictor"].update(members=[])),
        "be a list that fits",
    ),
    "misses of other scores": (
        lambda f: edited(
            f, lambda r: r["reference"]["reference"]["misses"]["line"].update(shape=[2, 2])
        ),
        r"'reference\.reference\.misses\.line' must have length 4; got 2",
    ),
    "deep figures": (
        put_in(
            "predictor", adaptation={"sentence": "", "figures": json.loads("[" * 50 + "]" * 50)}
        ),
        "be named values",
    ),
}


@pytest.fixture(scope="module")
def good():
    return modelfile.dumps(deployed())


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused_with_a_sentence(case, good, tmp_path):
    make, match = REFUSED[case]
    path = tmp_path / "m.hetrisk"
    path.write_bytes(make(good))
    with pytest.raises(ModelFileError, match=match) as error:
        modelfile.load(path)
    assert "m.hetrisk" in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).isprintable()


def test_a_field_of_a_later_version_is_refused_and_says_whose_it_is(good):
    later = relabelled(put_in("reference", fairness=1)(good), format=3, hetrisk="0.7.0")
    with pytest.raises(ModelFileError, match=r"written by hetrisk '0\.7\.0' and holds 'fairness'"):
        modelfile.loads(later)
    later = relabelled(put("linear", kind="spline")(good), format=3, hetrisk="0.7.0")
    with pytest.raises(ModelFileError, match="upgrade hetrisk"):
        modelfile.loads(later)


def test_a_field_an_earlier_version_did_not_have_takes_its_default(good, monkeypatch):
    added = {**schema.SUMMARY.fields, "fairness": kinds.Field(schema.FIGURE, 2, default=0.5)}
    record = kinds.Record({"summary": kinds.Field(kinds.Record(added))})
    monkeypatch.setitem(schema.RECORDS, "summary", record)
    assert modelfile.loads(good).summary["fairness"] == 0.5
    monkeypatch.setitem(schema.VERSIONS, "summary", 2)
    newer = modelfile.dumps(deployed())
    assert modelfile.loads(newer).summary["fairness"] == 0.5
    gone = edited(newer, lambda records: records["summary"]["summary"].pop("fairness"))
    with pytest.raises(ModelFileError, match=r"'summary\.summary\.fairness' must be there"):
        modelfile.loads(gone)


@pytest.mark.parametrize(
    ("column", "change", "match"),
    [
        ("size", {"kind": "method"}, "one of 'number'"),
        ("size", {"fill": "x"}, "fill' must be a number"),
        ("kind", {"levels": ["p"]}, "a share for each level"),
        ("kind", {"shares": [5.0, 5.0, 5.0]}, "lie between 0 and 1"),
        ("kind", {"levels": MANY, "shares": [1 / 6000] * 6000}, "encode the columns"),
        ("kind", {"shares": [0.5, 0.5, 0.5]}, "a share for each level"),
        ("kind", {"levels": ["p", "p", "q"]}, "hold nothing twice"),
        ("size", {"fill": "nan"}, "not be missing"),
        ("size", {"thousands": "x"}, "be one of"),
        ("size", {"name": "kind"}, "columns of the table, each once"),
        ("size", {"name": "elsewhere"}, "columns of the table, each once"),
        ("built", {"form": "%n%n%n"}, "be one of"),
        ("built", {"__class__": "x"}, "not hold"),
    ],
)
def test_a_recorded_encoder_is_checked(column, change, match):
    good = modelfile.dumps(encoded())

    def changed(records):
        columns = records["encoder"]["encoder"]["columns"]["columns"]
        next(c for c in columns if c["name"] == column).update(change)

    with pytest.raises(ModelFileError, match=match):
        modelfile.loads(edited(good, changed))


@pytest.mark.parametrize(
    "change",
    [{"kind": "price"}, {"unit": "Q"}, {"form": "%s%n"}, {"version": 2}, {"name": 3}, {"more": 1}],
)
def test_a_recorded_time_is_checked(change):
    good = modelfile.dumps(timed())
    with pytest.raises(ModelFileError, match="is damaged"):
        modelfile.loads(edited(good, lambda records: records["encoder"]["time"].update(change)))


def test_a_column_of_zeros_and_ones_has_a_share():
    columns = dataclasses.replace(
        reference()["columns"], indicator=np.array([True, False, False]), mean=np.full(3, np.nan)
    )
    with pytest.raises(ModelFileError, match="a share for each column"):
        modelfile.dumps(deployed(reference={**reference(), "columns": columns}))


def test_classes_and_scores_must_agree():
    """Fewer classes than scores once let compiled code write beyond the end of an array."""
    good = modelfile.dumps(labelled())
    fewer = ["no", "yes"]
    with pytest.raises(ModelFileError, match="have length 3; got 2"):
        modelfile.loads(put_in("predictor", classes=fewer)(good))
    with pytest.raises(ModelFileError, match="have length 2; got 3"):
        modelfile.loads(put_in("predictor", classes=fewer, n_scores=2)(good))
    with pytest.raises(ModelFileError, match="add to scores that exist"):
        modelfile.loads(number("trees", "output", 3)(good))
    with pytest.raises(ModelFileError, match="lie between"):
        modelfile.loads(number("trees", "output", -1)(good))


def test_a_file_costs_no_more_memory_than_its_size(good):
    """Zeros that would unfold a thousandfold are refused by their header."""
    zeros = {**parts(good), "arrays_bin": bytes(1 << 24)}
    small = packed(zipfile.ZIP_DEFLATED, **zeros)
    assert len(small) < 1 << 16
    with pytest.raises(ModelFileError, match="is compressed"):
        modelfile.loads(small)


def test_arrays_that_share_their_bytes_are_refused(good):
    """One array that many places name would take its room as often."""

    def shared(records):
        members = records["predictor"]["predictor"]["members"]
        members[1] += [part(records, "trees")] * 50

    with pytest.raises(ModelFileError, match="have bytes of its own"):
        modelfile.loads(edited(good, shared))


def test_wide_models_predict_in_bounded_memory(monkeypatch):
    from hetrisk.modelfile import deployed as room
    from modelfile.examples import frame

    whole = labelled().predict(frame(100))
    monkeypatch.setattr(room, "NUMBERS_AT_ONCE", 30)
    np.testing.assert_array_equal(labelled().predict(frame(100)), whole)


def test_a_device_is_no_model_file():
    with pytest.raises(ModelFileError, match="is not a regular file"):
        modelfile.load("/dev/zero")


def test_no_class_is_named_and_no_pickle_is_opened(good):
    assert b"sklearn" not in good
    assert b"hetrisk." not in good.replace(b"hetrisk.json", b"")
    home = Path(modelfile.__file__).parent
    text = "\n".join(path.read_text() for path in home.glob("*.py"))
    for word in ("import pickle", "allow_pickle", "eval(", "import_module", "__import__"):
        assert word not in text
