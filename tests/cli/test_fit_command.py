"""`hetrisk fit`: what it says, what it is told, what it writes."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from hetrisk import modelfile

from .conftest import frame, run


def test_fit_says_what_it_found(workshop):
    result = run("fit", workshop / "table.csv", "--target", "y", "--drop", "label")
    assert result.exit_code == 0
    said = result.stdout
    assert "table.csv: 150 rows, 10 columns. Regression: the target is a number" in said
    assert "Verdict:" in said
    for column in ("a", "b", "echo", "kind", "flag", "when"):
        assert f"\n {column} " in said
    assert "Out of fold, if nothing shifts: 150 rows predicted by models fitted without" in said
    assert "R²" in said
    assert said.splitlines()[0].startswith(("Use this model", "Use the plain model", "Cannot say"))
    assert "Nothing was written" in said
    assert "Note: 'key' is not used: an identifier" in result.stderr
    assert "dates (year-month-day) turned into days" in result.stderr


def test_fit_as_json(workshop, tmp_path):
    out = tmp_path / "m.hetrisk"
    result = run(*("fit", workshop / "table.csv", "-t", "label", "-d", "y", "--json", "-o", out))
    record = json.loads(result.stdout)
    assert record["task"] == "classification"
    assert record["verdict"] in ("invariant", "homogeneous", "unstable")
    assert record["model"] == str(out)
    assert {c["column"] for c in record["columns"]} >= {"a", "b", "kind"}
    assert record["left_out"][0]["column"] == "key"
    shares = [environment["share"] for environment in record["environments"]]
    assert sum(shares) == pytest.approx(1)
    model = modelfile.load(out)
    kept = [c["column"] for c in record["columns"] if c["kept"]]
    assert set(model[0].feature_groups_[model[-1].support_]) == set(kept)


def test_fit_twice_gives_the_same_model(workshop, tmp_path):
    table = frame()
    for name in ("one", "two"):
        run("fit", workshop / "table.csv", "-t", "y", "-o", tmp_path / name, "--seed", "4")
    first, second = (modelfile.load(tmp_path / name) for name in ("one", "two"))
    np.testing.assert_array_equal(first.predict(table), second.predict(table))


def test_environments_named_are_learned_from(workshop, tmp_path):
    out = tmp_path / "m.hetrisk"
    arguments = ("fit", workshop / "table.csv", "-t", "y", "-d", "label", "-e", "place")
    record = json.loads(run(*arguments, "--json", "-o", out).stdout)
    assert len(record["environments"]) >= 2
    assert record["sources"][0]["kind"] == "named"
    assert "echo" in [c["column"] for c in record["columns"] if not c["kept"]]
    assert "place" not in [c["column"] for c in record["columns"]]
    assert record["recommendation"]["action"] == "use this model"
    assert record["curve"]["asked"] == 4.0
    said = run(*arguments).stdout
    assert said.startswith("Use this model. It leaves out")
    assert "From which shift on it pays: " in said
    page = tmp_path / "m.html"
    run("report", out, "--out", page)
    assert record["recommendation"]["sentence"] in page.read_text()
    assert "--environment place" in page.read_text()


def test_hints_weights_and_columns_to_keep(workshop):
    arguments = ("fit", workshop / "table.csv", "-t", "y", "-d", "label", "--json")
    record = json.loads(run(*arguments, "--hint", "place", "--hint", "when").stdout)
    assert {"place", "when"} <= {source["name"] for source in record["sources"]}
    columns = {c["column"] for c in record["columns"]}
    assert not {"place", "when"} & columns
    record = json.loads(run(*arguments, "-e", "place", "--keep", "echo").stdout)
    assert {c["column"]: c["kept"] for c in record["columns"]}["echo"]
    record = json.loads(run(*arguments, "-e", "place", "--reach", "0").stdout)
    assert all(c["kept"] for c in record["columns"])
    assert record["recommendation"]["reach"] == 0
    record = json.loads(run(*arguments, "-e", "place", "--form", "directions").stdout)
    assert all(c["kept"] for c in record["columns"])


def test_weights_change_the_model(tmp_path):
    table = frame()
    table["w"] = np.where(table["place"] == "south", 5.0, 1.0)
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "-d", "label", "-d", "place", "--json")
    plain = json.loads(run(*arguments, "-d", "w").stdout)
    weighed = json.loads(run(*arguments, "--weight", "w").stdout)
    assert "w" not in [c["column"] for c in weighed["columns"]]
    first, second = (r["quality"]["metrics"][0]["this"] for r in (plain, weighed))
    assert first != second


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--environment", "nowhere"), "there is no environment column 'nowhere'"),
        (("--hint", "nowhere"), "there is no hint column 'nowhere'"),
        (("--weight", "kind"), "weight column 'kind' must hold numbers that are not negative"),
        (("--keep", "nothing"), "keep names columns that are not used: 'nothing'"),
        (("--environment", "y"), "'y' cannot be both target and environment"),
        (("--hint", "place", "--environment", "place"), "cannot be both environment and hint"),
        (("--features", "place", "--environment", "place"), "features names 'place'"),
    ],
)
def test_columns_that_cannot_play_their_role(workshop, options, words):
    result = run("fit", workshop / "table.csv", "-t", "y", "-d", "label", *options)
    assert result.exit_code == 1
    assert words in result.stderr


def test_other_final_models(workshop, tmp_path):
    out = tmp_path / "m.hetrisk"
    arguments = ("fit", workshop / "table.csv", "-t", "y", "-d", "label", "-e", "place", "-o", out)
    assert run(*arguments, "--model", "boosted").exit_code == 0
    assert type(modelfile.load(out)[-1].final_estimator_).__name__.startswith("HistGradient")
    path = "sklearn.tree.DecisionTreeRegressor"
    refused = run(*arguments, "--model", path)
    assert refused.exit_code == 2
    assert "add --allow-import if you trust it" in refused.stderr
    assert "is not one of linear, boosted, forest" in run(*arguments, "--model", "deep").stderr
    kind = run(*arguments, "--model", "sklearn.tree.DecisionTreeClassifier", "--allow-import")
    assert "is no scikit-learn estimator for regression" in kind.stderr
    record = json.loads(run(*arguments[:-2], "--model", path, "--allow-import", "--json").stdout)
    assert record["provenance"]["final_model"] == "DecisionTreeRegressor"


def test_too_few_rows_are_not_searched(tmp_path):
    frame(n=20).to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "-f", "a", "-f", "b", "-f", "echo")
    said = run(*arguments).stdout
    assert said.startswith("Cannot say: not searched.")
    assert "Verdict: not searched." in said
    page = tmp_path / "p.html"
    run(*arguments, "--report", page)
    assert "verdict: not searched" in page.read_text()


def test_features_and_categories_can_be_chosen(workshop):
    result = run(
        *("fit", workshop / "table.csv", "-t", "y", "-f", "a", "-f", "kind", "--json"),
    )
    record = json.loads(result.stdout)
    assert [c["column"] for c in record["columns"]] == ["a", "kind"]


def test_the_report_comes_with_fit_and_by_itself(workshop, tmp_path):
    page = tmp_path / "page.html"
    result = run("fit", workshop / "table.csv", "-t", "y", "-d", "label", "--report", page)
    assert result.exit_code == 0, result.output
    assert "Report written to" in result.stdout
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    other = tmp_path / "other.html"
    result = run("report", workshop / "y.hetrisk", workshop / "table.csv", "--out", other)
    assert result.exit_code == 0, result.output
    assert other.stat().st_size < 2_000_000
    named = run(
        "report", workshop / "label.hetrisk", "--out", other, "--title", "<b>T</b>", "--json"
    )
    assert json.loads(named.stdout)["bytes"] == other.stat().st_size
    assert "<b>T</b>" not in other.read_text()


def test_a_report_lands_beside_its_model(workshop, tmp_path):
    model = tmp_path / "m.hetrisk"
    model.write_bytes((workshop / "y.hetrisk").read_bytes())
    assert run("report", model).exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["m.hetrisk", "m.html"]


def test_the_same_table_as_csv_and_parquet_gives_the_same_model(workshop, tmp_path):
    table = pd.read_csv(workshop / "table.csv")
    table["when"] = pd.to_datetime(table["when"])
    table.to_parquet(tmp_path / "t.parquet")
    run(
        "fit", tmp_path / "t.parquet", "-t", "y", "-d", "label", "-d", "place", "-o", tmp_path / "m"
    )
    typed, text = modelfile.load(tmp_path / "m"), modelfile.load(workshop / "y.hetrisk")
    np.testing.assert_allclose(typed.predict(table), text.predict(table), rtol=1e-12)
    mixed = run("predict", tmp_path / "m", workshop / "table.csv", "--json")
    predictions = json.loads(mixed.stdout)["predictions"]["prediction"]
    np.testing.assert_allclose(predictions, typed.predict(table), atol=1e-5)


def test_columns_treated_alike_share_a_note(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 7)).round(3), columns=list("abcdefy"))
    table["left"] = np.where(rng.random(60) < 0.5, "yes", "no")
    table["right"] = np.where(rng.random(60) < 0.5, "yes", "no")
    table["e"] += 100
    table.loc[:4, ["a", "e"]] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    notes = run("fit", tmp_path / "t.csv", "-t", "y").stderr.splitlines()
    (commas,) = [line for line in notes if "commas" in line]
    assert commas.startswith("Note: 'y', 'a', 'b', 'c', 'd' and 2 more: commas read as decimal")
    assert "Note: 'left', 'right': 'yes' read as 1 and 'no' as 0" in notes
    # As many gaps, and other medians: what is true of one is not said of both.
    (small, large) = [line for line in notes if "5 missing values (8.3%) replaced by" in line]
    assert small.startswith("Note: 'a': ")
    assert large.startswith("Note: 'e': ")
    assert float(large.rpartition(" ")[2]) > 90
