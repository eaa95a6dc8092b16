"""From a table and a target to a fitted pipeline."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

from hetrisk import HRMClassifier, HRMRegressor
from hetrisk.report import summarize
from hetrisk.tables import Table, TableEncoder, TableError
from hetrisk.tables.model import fit_table, prepare
from hetrisk.tables.reading import read_table


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 200
    a, b = rng.normal(size=(2, n))
    kind = rng.choice(["p", "q", "r"], n)
    y = a - b + (kind == "q") + rng.normal(size=n) * 0.3
    y[:4] = np.nan
    frame = pd.DataFrame({"id": np.arange(n), "a": a, "b": b, "kind": kind, "y": y})
    frame["sign"] = np.where(np.isnan(y), None, np.where(y > 0, "up", "down"))
    return Table(frame, "made.csv", ("read somehow",))


def test_a_pipeline_of_two_steps(table):
    model = fit_table(table, "y", drop=["sign"], seed=3)
    assert isinstance(model, Pipeline)
    assert isinstance(model["table"], TableEncoder)
    assert isinstance(model["model"], HRMRegressor)
    assert model["model"].random_state == 3
    predictions = model.predict(table.frame)
    assert predictions.shape == (200,)
    known = table.frame["y"].notna()
    error = np.sqrt(np.mean((predictions - table.frame["y"])[known] ** 2))
    assert error < 0.4


def test_classes_make_a_classifier(table):
    model = fit_table(table, "sign", drop=["y"])
    assert isinstance(model["model"], HRMClassifier)
    assert model.predict_proba(table.frame).shape == (200, 2)


def test_the_levels_of_a_category_share_one_decision(table):
    model = fit_table(table, "y", features=["a", "kind"])
    assert model["model"].feature_groups == ["a", "kind", "kind"]
    support = model["model"].support_
    assert support[1] == support[2]


def test_the_model_remembers_its_table(table):
    about = fit_table(table, "y", drop=["sign"])["table"].description_
    assert (about.source, about.n_rows, about.n_columns) == ("made.csv", 196, 6)
    assert (about.target, about.task) == ("y", "regression")
    assert [out.name for out in about.left_out] == ["id"]
    said = [str(note) for note in about.notes]
    assert said[0] == "read somehow"
    assert "4 rows without a value left out" in said[1]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"features": ["nope"]}, "features names columns that are not in the table: 'nope'"),
        ({"drop": ["nope"]}, "drop names columns that are not in the table: 'nope'"),
        ({"features": ["y"]}, "features names the target 'y'"),
        ({"features": ["a"], "drop": ["a"]}, "no column is left"),
        ({"category": ["nope"]}, "taken as categories are not in the table: 'nope'"),
    ],
)
def test_columns_must_be_there(table, options, match):
    with pytest.raises(TableError, match=match):
        fit_table(table, "y", **options)


def test_columns_that_repeat_the_environment_are_pointed_out():
    rng = np.random.default_rng(0)
    year = np.repeat([1, 2, 3], 60)
    frame = pd.DataFrame({"x": rng.normal(size=180), "year": year, "y": rng.normal(size=180)})
    frame["d2"], frame["d3"] = (year == 2) * 1, (year == 3) * 1
    frame["tax"] = frame["x"].round() + year
    notes = [
        str(n)
        for n in prepare(Table(frame, "t"), "y", environment="year").encoder.description_.notes
    ]
    assert any("the same in all rows of an environment: 'd2', 'd3';" in note for note in notes)
    plain = prepare(Table(frame.drop(columns=["d2", "d3"]), "t"), "y", environment="year")
    assert not any("same in all rows" in str(n) for n in plain.encoder.description_.notes)


@pytest.mark.parametrize("name", [" ", " size", "size ", "\tsize"])
def test_blanks_about_a_name_do_not_count(name, tmp_path):
    """A file loses them, a frame keeps them: both are the column."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=80), "b": rng.normal(size=80)})
    frame["y"] = frame[name] + rng.normal(size=80)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    model = fit_table(read_table(path), "y")
    predicted = model.predict(frame)
    np.testing.assert_allclose(predicted, model.predict(read_table(path).frame))
    both = frame.rename(columns={"b": name.strip()})
    np.testing.assert_allclose(  # a name as it is comes before one with blanks
        TableEncoder().fit(both).transform(both)[:, 0], frame[name], rtol=1e-12
    )


def test_a_category_of_two_levels_goes_by_its_name_in_every_sentence():
    rng = np.random.default_rng(0)
    site, n = rng.integers(0, 3, 1500), 1500
    a, flag = rng.normal(size=n), rng.choice(["u", "v"], n)
    y = a + np.array([3.0, -3.0, 0.5])[site] * ((flag == "v") - 0.5) + rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "flag": flag, "site": site, "y": y})
    model = fit_table(Table(frame, "made.csv"), "y", environment="site")
    assert "(flag)" in model[-1].verdict_reason_
    assert model[-1].sources_[0].sentence.endswith("most about flag.")
    assert summarize(model).sources[0].against == "flag"


def test_a_point_is_no_class(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "y": ["0", "1", "."] * 30})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    model = fit_table(read_table(path), "y")
    assert model[-1].classes_.tolist() == ["0", "1"]
