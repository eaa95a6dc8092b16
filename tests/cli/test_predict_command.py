"""`hetrisk predict` and `check`: new rows, and what is said of them."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from hetrisk import modelfile

from .conftest import frame, run


def test_check_tells_scripts_what_happened(workshop, tmp_path):
    model = tmp_path / "m.hetrisk"
    frame(n=600).to_csv(tmp_path / "old.csv", index=False)
    fitting = ("fit", tmp_path / "old.csv", "-t", "y", "-d", "label", "-d", "when", "-e", "place")
    assert run(*fitting, "-o", model).exit_code == 0
    frame(seed=1, n=600).to_csv(tmp_path / "new.csv", index=False)
    result = run("check", model, tmp_path / "new.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Go on")
    moved = frame(seed=1, n=600).drop(columns=["y", "echo", "label"])
    moved["a"] += 2
    moved.to_csv(tmp_path / "moved.csv", index=False)
    page = tmp_path / "c.html"
    result = run("check", model, tmp_path / "moved.csv", "--report", page, "--json")
    assert result.exit_code == 3
    record = json.loads(result.stdout)
    assert record["status"] == "moved"
    assert [c["name"] for c in record["columns"] if c["moved"]] == ["a"]
    assert record["outside"] > 0.1
    assert "a moved" in page.read_text()
    broken = frame(seed=1, n=600)
    broken["y"] = -broken["y"]
    broken.to_csv(tmp_path / "broken.csv", index=False)
    result = run("check", model, tmp_path / "broken.csv")
    assert result.exit_code == 4
    assert result.stdout.startswith("Fit again")


def test_check_names_what_is_wrong(workshop, tmp_path):
    table = frame()
    table.loc[:9, "label"] = "sideways"
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("check", workshop / "label.hetrisk", tmp_path / "t.csv")
    assert result.exit_code == 1
    assert "y must hold labels among the 2 classes of the model; got sideways" in result.stderr


def test_columns_the_model_was_told_are_not_unknown_to_it(workshop, tmp_path):
    told = ("-e", "place", "--hint", "when", "-d", "label", "--out", tmp_path / "m")
    assert run("fit", workshop / "table.csv", "-t", "y", *told).exit_code == 0
    result = run("predict", tmp_path / "m", workshop / "table.csv")
    (note,) = [line for line in result.stderr.splitlines() if "does not know" in line]
    assert note == "Note: columns the model does not know, ignored: 'label'"


def test_rows_outside_what_was_learned_are_noted_and_flagged(workshop, tmp_path):
    table = frame()
    table.loc[3, "a"] = 1e6
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("predict", workshop / "y.hetrisk", tmp_path / "t.csv")
    said = "1 row of 150 clearly outside what the model learned from ('a' in 1, 'prediction' in 1):"
    assert said in " ".join(result.stderr.split())
    assert "--flag marks them" in result.stderr
    assert result.stdout.splitlines()[0] == "prediction"
    flagged = run("predict", workshop / "y.hetrisk", tmp_path / "t.csv", "--flag").stdout
    rows = pd.read_csv(io.StringIO(flagged), keep_default_na=False)
    assert rows["outside"][3] == "a; prediction"
    assert (rows["outside"] != "").sum() == 1


def test_predictions_are_the_models_own(workshop, tmp_path):
    out = tmp_path / "p.csv"
    result = run("predict", workshop / "y.hetrisk", workshop / "table.csv", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    model = modelfile.load(workshop / "y.hetrisk")
    expected = model.predict(frame())
    predicted = pd.read_csv(out)
    np.testing.assert_allclose(predicted["prediction"], expected, atol=1e-5)


def test_predictions_go_to_the_terminal(workshop):
    result = run("predict", workshop / "label.hetrisk", workshop / "table.csv", "--id", "key")
    lines = result.stdout.splitlines()
    assert lines[0] == "key,prediction"
    assert len(lines) == 151
    assert {line.split(",")[1] for line in lines[1:]} == {"high", "low"}


def test_probabilities_add_up(workshop):
    result = run("predict", workshop / "label.hetrisk", workshop / "table.csv", "--probabilities")
    lines = [line.split(",") for line in result.stdout.splitlines()]
    assert lines[0] == ["prediction", "probability of high", "probability of low"]
    for prediction, high, low in lines[1:]:
        assert float(high) + float(low) == pytest.approx(1)
        assert prediction == ("high" if float(high) > 0.5 else "low")


def test_predict_as_json_and_as_parquet(workshop, tmp_path):
    result = run("predict", workshop / "y.hetrisk", workshop / "table.csv", "--json")
    record = json.loads(result.stdout)
    assert record["rows"] == 150
    assert len(record["predictions"]["prediction"]) == 150
    out = tmp_path / "p.parquet"
    result = run("predict", workshop / "y.hetrisk", workshop / "table.csv", "--json", "--out", out)
    assert "predictions" not in json.loads(result.stdout)
    assert pd.read_parquet(out)["prediction"].tolist() == record["predictions"]["prediction"]


def test_what_predict_does_about_odd_tables_is_said(workshop, tmp_path):
    table = frame()
    table["kind"] = ["new", *table["kind"][1:]]
    table["a"] = ["", *table["a"][1:]]
    table["more"] = 1
    table[table.columns[::-1]].to_csv(tmp_path / "t.csv", index=False)
    result = run("predict", workshop / "y.hetrisk", tmp_path / "t.csv", "--json")
    notes = " ".join(note["note"] for note in json.loads(result.stdout)["notes"])
    assert "columns the model does not know, ignored: 'label', 'more', 'place'" in notes
    assert "1 row with a category the model never saw ('new') treated as" in notes
    assert "1 missing value replaced by" in notes


def test_columns_the_model_does_not_use_may_be_absent(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    table["y"] = table["a"] + rng.normal(size=200) * 0.1
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.hetrisk"
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", out)
    model = modelfile.load(out)
    model[-1].support_ = np.array([True, False, True])
    model[-1].coef_[1] = 0.0
    modelfile.save(model, out)
    table[["c", "a"]].to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", out, tmp_path / "new.csv", "--json")
    record = json.loads(result.stdout)
    np.testing.assert_allclose(record["predictions"]["prediction"], model.predict(table), atol=1e-5)
    assert "columns not in the table, nor needed: 'b'" in record["notes"][0]["note"]
