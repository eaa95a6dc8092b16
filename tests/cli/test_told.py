"""Columns that tell where rows come from or what they count, filled with what nobody expects."""

import numpy as np
import pandas as pd
import pytest

from hetrisk import modelfile
from hetrisk.tables import inputs
from hetrisk.tables.leaks import find_leaks

from .conftest import run

N = 60


def table(**columns):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, N))
    y = 2 * a - b + rng.normal(size=N)
    return pd.DataFrame({"a": a, "b": b, "y": y}).assign(**columns)


@pytest.fixture(params=[10**9, 100], ids=["whole", "blocks"])
def limit(request, monkeypatch):
    monkeypatch.setattr(inputs, "memory_limit", lambda: request.param)


@pytest.mark.parametrize(
    ("option", "cells", "match"),
    [
        ("--environment", ["x"] * N, "at least two different labels; got one, 'x'"),
        ("--environment", [None] * N, "at least two different labels; got one, '(missing)'"),
        ("--environment", [f"v{i}" for i in range(N)], "environments must repeat"),
        ("--environment", [f"\x1b[3{i}m" for i in range(N)], "environments must repeat"),
        ("--hint", [None] * N, "no value in any row"),
        ("--weight", [-1.0, *[1.0] * (N - 1)], "not negative"),
        ("--weight", [np.inf, *[1.0] * (N - 1)], "not negative"),
        ("--weight", [0.0] * N, "all are zero"),
        ("--weight", [1.0, *[0.0] * (N - 1)], ""),
        ("--keep", [5e-324, 1e-320] * (N // 2), "'told' of X (spread"),
    ],
)
def test_what_cannot_be_told_is_a_sentence(option, cells, match, limit, tmp_path):
    table(told=cells).to_parquet(tmp_path / "t.parquet")
    result = run("fit", tmp_path / "t.parquet", "-t", "y", option, "told")
    assert "unforeseen" not in result.stderr
    assert "\x1b" not in result.stderr
    if match:
        assert result.exit_code == 1
        assert "told" in result.stderr or "environments" in result.stderr
        assert match in result.stderr


def test_the_column_of_environments_is_named(tmp_path):
    table(told=["x"] * N).to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "-t", "y", "--environment", "told")
    assert "Error: column 'told': environments must hold at least two" in result.stderr


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_names_that_differ_by_a_nul_at_the_end_differ(command, limit, tmp_path):
    table(told=["a", "a\0", "b"] * (N // 3)).to_parquet(tmp_path / "t.parquet")
    more = {"fit": (), "compare": ("-m", "erm", "--json")}[command]
    result = run(command, tmp_path / "t.parquet", "-t", "y", "-e", "told", *more)
    assert result.exit_code == 0, result.stderr
    if command == "compare" and pd.__version__ >= "3":  # older ones take them for one name
        assert r'"a\\x00"' in result.stdout


@pytest.mark.parametrize("unit", [5e-324, 1e-200, 1.0, 1e100])
def test_parts_of_the_target_are_found_in_small_units_too(unit):
    rng = np.random.default_rng(0)
    parts = rng.integers(1, 9, size=(60, 2)) * 1.0
    y = parts.sum(axis=1) * 3
    features = [parts[:, :1] * unit, parts[:, 1:]]
    (leak,) = find_leaks(["a", "b"], features, y, "y")
    assert leak.kind == "parts"


def test_a_comparison_bears_a_column_of_the_least_numbers(tmp_path):
    told = np.random.default_rng(0).choice([5e-324, 1e-320], N)
    table(told=told, place=["p", "q"] * (N // 2)).to_parquet(tmp_path / "t.parquet")
    result = run("compare", tmp_path / "t.parquet", "-t", "y", "-e", "place", "-m", "erm")
    assert result.exit_code == 0, result.stderr


def test_environments_that_are_numbers_by_name_have_no_order(tmp_path):
    rng = np.random.default_rng(0)
    region = rng.integers(1, 13, 600)
    a, b = rng.normal(size=(2, 600))
    y = a + np.where(region > 6, 2.0, -2.0) * b + 0.5 * rng.normal(size=600)
    made = pd.DataFrame({"a": a, "b": b, "y": y.round(4), "region": region, "year": 2000 + region})
    made.to_csv(tmp_path / "t.csv", index=False)
    told = ("fit", tmp_path / "t.csv", "-t", "y", "--out", tmp_path / "m", "--drop")

    def labels(*options):
        done = run(*told, *options)
        assert done.exit_code == 0, done.output
        return modelfile.load(tmp_path / "m")[-1].environment_labels_

    assert all(name.startswith("20") for name in labels("region", "--environment", "year"))
    assert any(name.startswith("kind ") for name in labels("year", "--hint", "region"))
    kinds = labels("year", "--environment", "region")
    assert all(name.startswith(("kind ", "region ")) for name in kinds)
    checked = run("check", tmp_path / "m", tmp_path / "t.csv")
    assert checked.exit_code == 0, checked.output


def test_dates_as_environments_point_to_hints(tmp_path):
    when = pd.date_range("2020-01-01", periods=12, freq="MS").strftime("%m/%Y")
    table(when=np.resize(when, N)).to_csv(tmp_path / "t.csv", index=False)
    said = run("fit", tmp_path / "t.csv", "-t", "y", "--environment", "when").stderr
    assert "Note: 'when': each date is an environment; to look along time: --hint when" in said


def test_a_column_that_stays_because_of_keep_is_told(tmp_path):
    rng = np.random.default_rng(0)
    site, x = rng.integers(0, 3, 600), rng.normal(size=(600, 2))
    y = x[:, 0] + np.array([2.0, 2.0, -2.0])[site] * x[:, 1] + 0.3 * rng.normal(size=600)
    columns = {"a": x[:, 0], "gamma": x[:, 1], "site": site, "y": y}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    arguments = ("-t", "y", "--environment", "site", "--keep", "gamma")
    said = " ".join(run("fit", tmp_path / "t.csv", *arguments).stdout.split())
    assert "Without gamma it would err" in said
    assert "it stays because it is to be kept." in said
    assert "nothing that keeps gamma does better than plain ERM" in said
    assert "too much of what moves" not in said
