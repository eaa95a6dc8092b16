"""`hetrisk compare`: environments left out in turn."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from .conftest import frame, run


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


def test_compare_names_leaks_first(workshop, tmp_path):
    table = frame().drop(columns="label")  # which says in which range the target lies
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
