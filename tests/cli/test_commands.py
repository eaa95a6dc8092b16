"""The commands as a person meets them: fit, predict, check, adapt, report, demo."""

import json

import numpy as np
import pandas as pd
import pytest

from hetrisk.cli.columns import resolve, suggestions
from hetrisk.report.labels import number

from .conftest import FEW, frame, run


@pytest.fixture(scope="module")
def answer(workshop):
    """What a fit prints, as JSON, and for a person."""
    arguments = ("fit", workshop / "table.csv", "-t", "y", "--time", "year", "-d", "label", *FEW)
    told = run(*arguments, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout), run(*arguments).stdout


def test_a_fit_opens_with_what_to_do_in_twenty_lines(answer):
    record, text = answer
    assert text.startswith("Use a linear model with a trend.")
    assert len(text.splitlines()) <= 20
    assert record["decision"]["action"] == "use"
    trend, plain = (
        next(r for r in record["ranking"] if r["candidate"] == name) for name in ("trend", "plain")
    )
    assert trend["chosen"]
    flat = " ".join(text.split())
    assert f"it erred {number(trend['mean'])} (plain {number(plain['mean'])}" in flat
    assert "1 year ahead" in flat


def test_quiet_is_one_line(workshop):
    result = run("fit", workshop / "table.csv", "-t", "y", "--time", "year", *FEW, "--quiet")
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout.startswith("Use a linear model with a trend. Expect RMSE ")


def test_everything_is_in_the_json(answer):
    record, _ = answer
    assert {"ranking", "backtest", "forecast", "reach_curve", "columns", "differences"} <= set(
        record
    )
    assert record["columns"][0]["name"] == "a"
    assert record["command"].startswith("hetrisk fit ")
    assert any(out["column"] == "key" for out in record["left_out"])


def test_sites_are_left_out_in_turn(workshop):
    result = run("fit", workshop / "table.csv", "-t", "a", "-e", "place", "--candidate", "ridge")
    assert result.exit_code == 0, result.output
    assert "Each environment predicted from the others" in " ".join(result.stdout.split())
    assert "rests on 3 environments" in result.stdout


def test_environments_with_an_order_are_told_what_time_promises(workshop):
    arguments = ("fit", workshop / "table.csv", "-t", "y", "-d", "label", "--candidate", "ridge")
    flat = " ".join(run(*arguments, "-e", "year").stdout.split())
    assert "--time year predicts later ones from earlier ones alone" in flat
    assert "--time place" not in run(*arguments, "-e", "place").stdout
    flat = " ".join(run(*arguments, "-e", "place", "--time", "year").stdout.split())
    assert "Where all that come are known, name --time alone: place is then a column" in flat


def test_rows_without_a_time_are_left_out_with_their_weight(tmp_path):
    table = frame().drop(columns=["label"]).assign(much=1.5)
    table["year"] = table["year"].astype(object).where(np.arange(len(table)) % 40 > 0, "")
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("-t", "y", "--time", "year", "--weight", "much", "--candidate", "ridge", "--json")
    result = run("fit", tmp_path / "t.csv", *arguments)
    assert result.exit_code == 0, result.output
    assert "6 rows left out: 'year' does not say when" in result.stdout


def test_days_before_months_are_called_by_their_date(tmp_path):
    table = frame().drop(columns=["label"])
    table["year"] = [f"0{1 + k % 9}/0{1 + k % 7}/{v}" for k, v in enumerate(table["year"])]
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "--time", "year", "--candidate", "ridge")
    assert "--dayfirst or --monthfirst" in run(*arguments).stderr
    record = json.loads(run(*arguments, "--dayfirst", "--json").stdout)
    assert all(line["cut"].startswith("20") for line in record["backtest"])
    assert all(there["environment"].startswith("20") for there in record["differences"])


def test_time_and_place_alone_make_a_forecast(workshop, tmp_path):
    table = frame()[["year", "place", "y"]]
    table.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.hetrisk"
    arguments = ("fit", tmp_path / "t.csv", "-t", "y", "--time", "year", "-e", "place")
    result = run(
        *arguments, "--candidate", "trend,trees", "--out", model, "--report", tmp_path / "r"
    )
    assert result.exit_code == 0, result.output
    assert "there is no column to split" in " ".join(result.stdout.split())
    for command in ("check", "predict"):
        assert run(command, model, tmp_path / "t.csv").exit_code in (0, 3, 4)
    moved = run("adapt", model, tmp_path / "t.csv", "--out", tmp_path / "n.hetrisk")
    assert moved.exit_code == 0, moved.output


def test_names_with_blanks_are_quoted_once_where_they_are_to_be_typed(tmp_path):
    table = frame().drop(columns=["label", "key"]).rename(columns={"place": "the site"})
    table["a code"] = np.arange(len(table)) % 6 + 90210
    table.rename(columns={"year": "the year"}).to_csv(tmp_path / "t.csv", index=False)
    record = json.loads(run("fit", tmp_path / "t.csv", "-t", "y", "--json").stdout)
    said = " ".join([*record["advice"], *(note["text"] for note in record["notes"])])
    assert "add --environment 'the site' and" in said
    assert "add --time 'the year' and" in said
    assert "--number 'a code'" in said
    assert "''" not in said


def test_with_neither_it_says_what_to_name(workshop):
    result = run("fit", workshop / "table.csv", "-t", "y", "--drop", "label")
    assert result.exit_code == 0, result.output
    flat = " ".join(result.stdout.split())
    assert "'year' looks like a time: add --time year" in flat
    assert "'place' looks like a site: add --environment place" in flat


def test_predictions_are_those_of_the_model(workshop, tmp_path):
    new = frame(1, 40).drop(columns=["y", "label", "key"])
    new.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", workshop / "y.hetrisk", tmp_path / "new.csv", "--interval")
    assert result.exit_code == 0, result.output
    predicted = pd.read_csv(pd.io.common.StringIO(result.stdout))
    assert np.corrcoef(predicted["prediction"], frame(1, 40)["y"])[0, 1] > 0.95
    assert (predicted["lower"] < predicted["upper"]).all()


def test_probabilities_are_named_in_one_way(workshop):
    arguments = ("predict", workshop / "label.hetrisk", workshop / "table.csv", "--probabilities")
    head = run(*arguments).stdout.splitlines()[0]
    assert head == "prediction,probability of high,probability of low"
    record = json.loads(run(*arguments, "--json").stdout)
    assert list(record["predictions"])[1:] == ["probability of high", "probability of low"]


def test_rows_outside_what_was_learned_are_counted(workshop, tmp_path):
    far = frame(2, 20)
    far.loc[3, "a"] = 50.0
    far.to_csv(tmp_path / "far.csv", index=False)
    result = run("predict", workshop / "y.hetrisk", tmp_path / "far.csv", "--id", "key")
    assert result.stdout.splitlines()[4].split(",")[0] == "k3"
    assert "1 row of 20 clearly outside what the model learned from ('a' in 1)" in " ".join(
        result.stderr.split()
    )


def test_check_goes_on_looks_and_stops(workshop, tmp_path):
    later = frame(3).assign(year=2018)
    cases = {
        "on": (later.assign(y=later["y"] + 1.5 * (2018 - frame(3)["year"])), 0, "Go on:"),
        "off": (later.assign(y=later["y"] - 40), 4, "Stop:"),
        "moved": (later.assign(a=later["a"] + 3).drop(columns="y"), 3, "Look: a moved."),
    }
    for name, (table, code, words) in cases.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        result = run("check", workshop / "y.hetrisk", tmp_path / f"{name}.csv")
        assert (result.exit_code, result.stdout[: len(words)]) == (code, words), name
    alarm = ("check", workshop / "y.hetrisk", tmp_path / "moved.csv", "--fail-on", "alarm")
    assert run(*alarm).exit_code == 0
    record = json.loads(run("check", workshop / "y.hetrisk", tmp_path / "off.csv", "--json").stdout)
    assert (record["status"], record["exit_code"]) == ("alarm", 4)
    assert record["outcome"]["parts"][0]["name"] == "level"


def test_check_says_what_is_new_missing_and_out_of_range(workshop, tmp_path):
    new = frame(4).assign(kind="s")
    new.loc[:150, "b"] = np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    page = tmp_path / "check.html"
    result = run("check", workshop / "y.hetrisk", tmp_path / "new.csv", "--report", page)
    flat = " ".join(result.stdout.split())
    assert "new: s in 100 % of rows" in flat.replace("\u00a0", " ")
    assert "missing in 6" in flat
    assert "new: s in" in page.read_text()


def test_adapt_moves_a_model_and_says_what_to_expect(workshop, tmp_path):
    here = frame(5, 60).assign(y=lambda t: t["y"] + 5)
    here.to_csv(tmp_path / "here.csv", index=False)
    out = tmp_path / "here.hetrisk"
    result = run("adapt", workshop / "y.hetrisk", tmp_path / "here.csv", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Use the adapted model:")
    before, after = (
        json.loads(run("check", model, tmp_path / "here.csv", "--json").stdout)["outcome"]["error"]
        for model in (workshop / "y.hetrisk", out)
    )
    assert after < before
    run("report", out, "--out", tmp_path / "here.html")
    assert "Adapted: On 60 labelled rows the level moved" in (tmp_path / "here.html").read_text()
    refused = run("adapt", workshop / "y.hetrisk", tmp_path / "here.csv")
    assert refused.exit_code == 2


@pytest.mark.parametrize("target", ["y", "label"])
def test_a_constant_target_is_checked_and_adapted_to(target, workshop, tmp_path):
    model = workshop / f"{target}.hetrisk"
    frame(6, 80).assign(y=3.0, label="low").to_csv(tmp_path / "same.csv", index=False)
    checked = run("check", model, tmp_path / "same.csv")
    assert checked.stdout.startswith(("Go on", "Look", "Stop"))
    assert "–" not in checked.stdout
    assert " 0.0" not in checked.stdout
    moved = run("adapt", model, tmp_path / "same.csv", "--out", tmp_path / "m.hetrisk")
    assert moved.stdout.startswith("Use the adapted model:")
    again = json.loads(run("check", tmp_path / "m.hetrisk", tmp_path / "same.csv", "--json").stdout)
    before = json.loads(run("check", model, tmp_path / "same.csv", "--json").stdout)
    assert again["outcome"]["error"] < before["outcome"]["error"]


@pytest.mark.parametrize("name", [".", "..", ""])
def test_folders_are_named_as_they_were_typed(name, workshop, tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    commands = (
        ("fit", name, "-t", "y"),
        ("fit", workshop / "table.csv", "-t", "y", "--out", name),
        ("predict", name, workshop / "table.csv"),
        ("predict", workshop / "y.hetrisk", name),
        ("check", name, workshop / "table.csv"),
        ("adapt", name, workshop / "table.csv", "--out", "m.hetrisk"),
        ("report", name),
    )
    for command in commands:
        result = run(*command)
        assert result.exit_code in (1, 2), command
        said = result.stderr.splitlines()[-1]
        assert said.startswith("Error: "), command
        assert "''" not in said, said
        assert "unforeseen" not in said, said


def test_predictions_are_no_spreadsheet(workshop, tmp_path):
    for name in ("x.xlsx", "x.ODS", "x.json"):
        out = tmp_path / name
        result = run("predict", workshop / "y.hetrisk", workshop / "table.csv", "--out", out)
        assert result.exit_code == 2
        assert "predictions are written as CSV or Parquet" in result.stderr
        assert not out.exists()


def test_adapt_needs_five_labelled_rows(workshop, tmp_path):
    frame(5, 60).head(12).assign(y=[1.0, 2.0, 3.0, *[None] * 9]).to_csv(
        tmp_path / "few.csv", index=False
    )
    result = run(
        *("adapt", workshop / "y.hetrisk", tmp_path / "few.csv", "--out", tmp_path / "m.hetrisk")
    )
    assert result.exit_code == 1
    assert not (tmp_path / "m.hetrisk").exists()


def test_a_model_saved_from_python_alone_has_nothing_to_report(workshop, tmp_path):
    from dataclasses import replace

    from hetrisk import modelfile

    bare = replace(modelfile.load(workshop / "y.hetrisk"), summary={}, reference=None)
    modelfile.save(tmp_path / "bare.hetrisk", bare)
    for command in (("report",), ("check", workshop / "table.csv")):
        result = run(command[0], tmp_path / "bare.hetrisk", *command[1:])
        assert result.exit_code == 1
        assert "unforeseen" not in result.stderr
    assert run("predict", tmp_path / "bare.hetrisk", workshop / "table.csv").exit_code == 0


def test_report_asks_before_it_replaces(workshop, tmp_path):
    page = tmp_path / "page.html"
    assert run("report", workshop / "y.hetrisk", "--out", page).exit_code == 0
    assert "Use a linear model with a trend." in page.read_text()
    page.write_text("mine")
    refused = run("report", workshop / "y.hetrisk", "--out", page)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert page.read_text() == "mine"
    assert run("report", workshop / "y.hetrisk", "--out", page, "--force").exit_code == 0


def test_columns_are_named_with_commas_or_by_repeating():
    names = ["a", "b", "a,b", "Price "]
    assert resolve(["a,b"], names, "--drop") == ("a,b",)
    assert resolve(["a, b"], names, "--drop") == ("a", "b")
    assert resolve(["b", "a"], names, "--drop") == ("b", "a")
    assert resolve(["Price"], names, "--drop") == ("Price ",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--time", "yaer"), "did you mean 'year'?"),
        (("--drop", "kay"), "did you mean 'key'?"),
        (("--candidate", "tree"), "did you mean 'trees'?"),
        (("--feature", "y"), "which is the target"),
        (("--time", "year", "-e", "year"), "cannot be both time and environment"),
    ],
)
def test_what_is_mistyped_is_met_with_what_was_meant(workshop, arguments, words):
    result = run("fit", workshop / "table.csv", "-t", "y", *arguments)
    assert result.exit_code in (1, 2)
    assert words in " ".join(result.stderr.split())


def test_columns_that_look_like_a_time_or_a_site_are_found():
    assert suggestions(frame(), "y") == (["year"], ["place"])


def test_the_demo_writes_nothing_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = json.loads(run("demo", "--json").stdout)
    assert list(tmp_path.iterdir()) == []
    chosen = record["decision"]["candidate"]
    assert chosen not in ("plain", "constant")
    assert {"constant", "plain", "trend", "trees"} <= {r["candidate"] for r in record["ranking"]}
    later = record["came_true"]
    assert sum(s["model"] < min(s["plain"], s["constant"]) for s in later) >= len(later) - 1
    low, high = record["forecast"]["lower"], record["forecast"]["upper"]
    assert sum(low <= s["model"] <= high for s in later) > len(later) / 2
