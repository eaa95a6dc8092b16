"""Parquet folders, read in blocks, here and on a cluster."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from hetrisk import modelfile
from hetrisk.tables import inputs, large

from .conftest import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of one table: numbers, a text column, a date and an identifier."""
    place = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(0)
    n = 900
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    table["sales"] = table["a"] * 2 - table["b"] + rng.normal(size=n) * 0.2
    table["label"] = np.where(table["sales"] > 0, "up", "down")
    table["town"] = rng.choice(["x", "y"], n)
    table["when"] = pd.date_range("2020-01-01", periods=n)
    table["row_id"] = np.arange(n)
    for i in range(3):
        table.iloc[i * 300 : (i + 1) * 300].to_parquet(place / f"part-{i}.parquet", index=False)
    return place, table


@pytest.fixture
def small_memory(monkeypatch):
    """A machine on which nothing fits in memory."""
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)


def test_a_folder_is_the_table_its_files_make_together(folder, tmp_path):
    place, table = folder
    table.to_parquet(tmp_path / "all.parquet", index=False)
    records = []
    for data, name in ((place, "folder"), (tmp_path / "all.parquet", "file")):
        result = run("fit", data, "-t", "sales", "--json", "--out", tmp_path / name)
        assert result.exit_code == 0, result.output
        records.append(json.loads(result.stdout))
    for key in ("rows", "columns", "left_out", "notes"):
        assert records[0][key] == records[1][key], key
    assert "town" in {column["column"] for column in records[0]["columns"]}
    folder_model, file_model = (modelfile.load(tmp_path / name) for name in ("folder", "file"))
    np.testing.assert_array_equal(folder_model.predict(table), file_model.predict(table))


def test_a_large_folder_is_fitted_in_blocks_with_all_its_columns(folder, tmp_path, small_memory):
    place, table = folder
    out = tmp_path / "m.hetrisk"
    result = run("fit", place, "--target", "sales", "-d", "label", "--json", "--out", out)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["rows"] == 900
    assert {c["column"] for c in record["columns"]} == {"a", "b", "c", "town", "when"}
    assert "identifier" in {x["column"]: x["reason"] for x in record["left_out"]}["row_id"]
    assert "read in blocks" in record["notes"][0]["note"]
    predicted = modelfile.load(out).predict(table)
    assert np.sqrt(np.mean((predicted - table["sales"]) ** 2)) < 0.3


def test_blocks_and_memory_agree(folder, tmp_path, monkeypatch):
    table = folder[1]
    table = table.assign(a=table["a"].mask(table["b"] > 1.5))
    place = tmp_path / "data"
    place.mkdir()
    for i in range(3):
        part = table.iloc[i * 300 : (i + 1) * 300]
        part.to_parquet(place / f"part-{i}.parquet", index=False)
    arguments = ("fit", place, "-t", "sales", "-d", "label", "-d", "when", "-o")
    assert run(*arguments, tmp_path / "memory").exit_code == 0
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    assert run(*arguments, tmp_path / "blocks").exit_code == 0
    blocks, memory = (modelfile.load(tmp_path / name) for name in ("blocks", "memory"))
    np.testing.assert_array_equal(blocks[-1].support_, memory[-1].support_)
    np.testing.assert_allclose(blocks.predict(table), memory.predict(table), rtol=1e-6, atol=1e-8)


@pytest.fixture(scope="module")
def shifting(tmp_path_factory):
    """Four files of a table whose column ``s`` turns from year to year, beside what may tell so."""
    place = tmp_path_factory.mktemp("shifting")
    rng = np.random.default_rng(1)
    n = 1200
    year = rng.choice([9, 10, 11], n)
    x = rng.normal(size=n)
    y = 1.5 * x + rng.normal(size=n)
    s = np.array([1.0, -0.5, 0.3])[year - 9] * y + 0.5 * rng.normal(size=n)
    table = pd.DataFrame({"x": x, "s": s, "z": rng.normal(size=n), "y": y, "year": year})
    table["when"] = pd.to_datetime("2009-01-01") + pd.to_timedelta((year - 9) * 365, unit="D")
    table["day"] = table["when"].dt.strftime("%d.%m.%Y")
    table["site"] = np.where(year == 9, "ulm", "bonn")
    table.loc[::50, "site"] = None
    table["w"] = [
        f"{value:,.1f}".replace(".", ";").replace(",", ".").replace(";", ",")
        for value in rng.uniform(500, 2500, n)
    ]
    table["label"] = np.where(table["y"] > 0, "up", "down")
    for i, rows in enumerate(np.array_split(np.arange(n), 4)):
        part = table.iloc[rows].astype({"year": ["int32", "float64", "int64", "int8"][i]})
        part.to_parquet(place / f"part-{i}.parquet", index=False)
    return place, table


@pytest.mark.parametrize(
    "options",
    [
        ("-t", "y", "-e", "year"),
        ("-t", "y", "-e", "site"),
        ("-t", "y", "--hint", "when"),
        ("-t", "y", "--hint", "day", "--hint", "site", "--weight", "w"),
        ("-t", "y", "--weight", "w"),
        ("-t", "y", "-e", "year", "--weight", "w", "--form", "directions"),
        ("-t", "label", "-d", "y", "-e", "year"),
    ],
)
def test_what_is_told_is_told_in_blocks_too(shifting, tmp_path, monkeypatch, options):
    place, table = shifting
    told = {name for flag, name in pairwise(options) if flag != "--form"}
    others = set(table.columns) - told - {"x", "s", "z"}
    arguments = ("fit", place, *options, *(part for c in others for part in ("-d", c)), "--json")
    records, models = [], []
    for name, limit in (("memory", 10**9), ("blocks", 1000)):
        monkeypatch.setattr(inputs, "memory_limit", lambda limit=limit: limit)
        result = run(*arguments, "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        records.append(json.loads(result.stdout))
        models.append(modelfile.load(tmp_path / name)[-1])
    memory, blocks = models
    assert any("read in blocks" in note["note"] for note in records[1]["notes"])
    assert records[0]["verdict"] == records[1]["verdict"]
    np.testing.assert_array_equal(blocks.support_, memory.support_)
    np.testing.assert_allclose(blocks.coef_, memory.coef_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(blocks.intercept_, memory.intercept_, rtol=1e-10, atol=1e-10)
    assert blocks.environment_labels_ == memory.environment_labels_
    assert blocks.reference_.environments == memory.reference_.environments
    if "year" in options and "directions" not in options:
        assert "s" in {c["column"] for c in records[0]["columns"] if not c["kept"]}


def test_another_model_is_fitted_to_large_data(folder, tmp_path, small_memory):
    place, table = folder
    out = tmp_path / "m.hetrisk"
    result = run("fit", place, "-t", "sales", "-d", "label", "--model", "boosted", "--out", out)
    assert result.exit_code == 0, result.output
    predicted = modelfile.load(out).predict(table)
    assert np.corrcoef(predicted, table["sales"])[0, 1] > 0.9


def test_classes_in_blocks(folder, tmp_path, small_memory):
    place, table = folder
    out = tmp_path / "m.hetrisk"
    result = run("fit", place, "-t", "label", "-d", "sales", "--out", out)
    assert result.exit_code == 0, result.output
    assert "Classification" in result.stdout
    predicted = modelfile.load(out).predict(table)
    assert (predicted == table["label"]).mean() > 0.9


def test_a_file_larger_than_memory_goes_the_same_way(folder, small_memory):
    place, _ = folder
    result = run("fit", place / "part-0.parquet", "-t", "sales", "--json")
    notes = json.loads(result.stdout)["notes"]
    assert "read in blocks" in notes[0]["note"]


def test_a_folder_is_predicted_in_pieces(folder, tmp_path, monkeypatch):
    place, table = folder
    model = tmp_path / "m.hetrisk"
    run("fit", place, "-t", "sales", "--out", model)
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    monkeypatch.setattr(large, "PIECE_ROWS", 70)
    result = run("predict", model, place, "--json", "--out", tmp_path / "p.parquet")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == 900
    predicted = pd.read_parquet(tmp_path / "p.parquet")["prediction"]
    np.testing.assert_allclose(predicted, modelfile.load(model).predict(table), atol=1e-5)
    refused = run("predict", model, place, "--json")
    assert refused.exit_code == 2
    assert "--json needs --out" in refused.stderr
    shown = run("predict", model, place)
    assert len(shown.stdout.splitlines()) == 901
    assert shown.stdout.count("prediction") == 1


@pytest.mark.parametrize(
    ("change", "arguments", "code", "match"),
    [
        ({"y": [*np.sin(range(49)), np.nan]}, (), 1, "column 'y' is missing in row 49"),
        ({}, ("-t", "none"), 1, "no column 'none' to predict"),
        ({"y": [5.0] * 50}, (), 1, "nothing to predict"),
        ({"a": ["x"] * 50}, (), 1, "no column is left"),
        ({}, ("--environment", "none"), 1, "no environment column 'none'"),
        ({"b": [*range(49), None]}, ("--weight", "b"), 1, "must hold numbers that are not"),
        ({"b": [None] * 50}, ("--hint", "b"), 1, "no value in any row"),
        ({}, ("--dask", "tcp://127.0.0.1:1"), 2, "no dask scheduler answers"),
    ],
)
def test_what_cannot_be_done_in_blocks(
    tmp_path, change, arguments, code, match, monkeypatch, small_memory
):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=50), "y": rng.normal(size=50)}).assign(**change)
    table.to_parquet(tmp_path / "part.parquet", index=False)
    if "--dask" in arguments:
        monkeypatch.setattr("hetrisk.cli.arguments.SECONDS_TO_ANSWER", 1)
    monkeypatch.setattr(inputs, "memory_limit", lambda: 100)
    result = run("fit", tmp_path, *(("-t", "y") if "-t" not in arguments else ()), *arguments)
    assert result.exit_code == code, result.output
    assert match in result.stderr
    assert "unforeseen" not in result.stderr


def test_a_mistyped_cell_beyond_the_sample_names_its_place(tmp_path, monkeypatch, small_memory):
    rng = np.random.default_rng(0)
    texts = [f"{value:.3f}" for value in rng.normal(size=60)]
    texts[-1] = "seven"
    table = pd.DataFrame({"a": texts, "b": rng.normal(size=60), "y": rng.normal(size=60)})
    table.to_parquet(tmp_path / "part.parquet", index=False)
    monkeypatch.setattr(large, "SAMPLED_ROWS", 30)
    result = run("fit", tmp_path, "-t", "y")
    assert result.exit_code == 1
    assert "row group 0, rows counted from 0: column 'a', row 60: 'seven' is not" in result.stderr


def test_a_cluster_gives_the_same_answer(folder, tmp_path):
    from dask.distributed import Client, LocalCluster

    place, table = folder
    arguments = ("fit", place, "-t", "sales", "-d", "label", "-e", "town", "--hint", "when")
    arguments = (*arguments, "--weight", "row_id")
    run(*arguments, "--out", tmp_path / "here.hetrisk")
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster),
    ):
        address = cluster.scheduler_address
        result = run(*arguments, "--dask", address, "--out", tmp_path / "there.hetrisk")
    assert result.exit_code == 0, result.output
    here, there = (modelfile.load(tmp_path / f"{name}.hetrisk") for name in ("here", "there"))
    np.testing.assert_allclose(there.predict(table), here.predict(table), rtol=1e-6, atol=1e-8)


def as_text(table, path):
    """Write a table as a person would: numbers with commas, dates of a country, gaps."""
    table = table.assign(y=[f"{value:.6f}".replace(".", ",") for value in table["y"]])
    table.loc[::97, "y"] = "NA"
    table.loc[::31, "z"] = None
    table.to_csv(path, index=False, sep=";")
    return path


@pytest.mark.parametrize(
    "options",
    [
        ("-t", "y", "-e", "year"),
        ("-t", "y", "--hint", "day", "--weight", "w"),
        ("-t", "y"),
        ("-t", "label", "-d", "y", "-e", "year", "--hint", "site"),
    ],
)
def test_text_larger_than_memory_gives_the_answer_of_memory(
    shifting, tmp_path, monkeypatch, options
):
    data = as_text(shifting[1], tmp_path / ("t.csv.gz" if "--hint" in options else "t.csv"))
    told = {name for flag, name in pairwise(options)}
    others = set(shifting[1].columns) - told - {"x", "s", "z", "site"}
    arguments = ("fit", data, *options, *(part for c in others for part in ("-d", c)), "--json")
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    records, models = [], []
    for name, limit in (("memory", 10**9), ("blocks", 1000)):
        monkeypatch.setattr(inputs, "memory_limit", lambda limit=limit: limit)
        result = run(*arguments, "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        records.append(json.loads(result.stdout))
        models.append(modelfile.load(tmp_path / name))
    assert list(spool.iterdir()) == []
    memory, blocks = models
    assert [record["source"] for record in records] == [data.name] * 2
    assert records[0]["rows"] == records[1]["rows"]
    assert records[0]["left_out"] == records[1]["left_out"]
    np.testing.assert_array_equal(blocks[-1].support_, memory[-1].support_)
    np.testing.assert_allclose(blocks[-1].coef_, memory[-1].coef_, rtol=1e-10, atol=1e-10)
    notes = [note["note"] for note in records[1]["notes"]]
    assert "fields separated by semicolons" in notes
    if "-d" not in options:
        assert "13 rows without a value of 'y' left out: it is the target" in notes


def test_text_larger_than_memory_is_predicted_in_pieces(shifting, tmp_path, monkeypatch):
    data = as_text(shifting[1], tmp_path / "t.csv")
    assert run("fit", data, "-t", "label", "-d", "y", "-o", tmp_path / "m").exit_code == 0
    whole = run("predict", tmp_path / "m", data)
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    monkeypatch.setattr("hetrisk.tables.spooled.MOST_PIECE_ROWS", 70)
    assert run("predict", tmp_path / "m", data).stdout == whole.stdout
    bad = data.read_text().splitlines()
    bad[101] = bad[101].replace(bad[101].split(";")[0], "seven", 1)
    data.write_text("\n".join(bad))
    result = run("predict", tmp_path / "m", data)
    assert result.exit_code == 1
    assert "'t.csv', rows counted from 70: column 'x', row 31: 'seven' is not" in result.stderr


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda text: text.replace("seven", "1.5"), None),
        (lambda text: text, "file 't.csv', row group 0, rows counted from 0: column 'a', row 60"),
        (lambda text: text.replace("y", "u", 1), "no column 'y' to predict"),
        (lambda text: text + "1,2\n", "line 62: 2 fields where the header has 3"),
        (lambda text: text.splitlines()[0] + "\n", "has column names but no rows"),
        (lambda text: "a,b,y\n" + "1,2,NA\n" * 40, "every value of the target 'y' is missing"),
        (lambda text: text + '{"a": 1}\n', "line 62: 1 field where"),
    ],
)
def test_what_is_wrong_with_a_large_text_is_said_of_it(tmp_path, monkeypatch, change, match):
    rng = np.random.default_rng(0)
    texts = [f"{value:.3f}" for value in rng.normal(size=60)]
    texts[-1] = "seven"
    table = pd.DataFrame({"a": texts, "b": rng.normal(size=60), "y": rng.normal(size=60)})
    (tmp_path / "t.csv").write_text(change(table.to_csv(index=False)))
    monkeypatch.setattr(large, "SAMPLED_ROWS", 30)
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1)
    result = run("fit", tmp_path / "t.csv", "-t", "y")
    assert result.exit_code == (match is not None), result.output
    assert match is None or match in result.stderr


def test_a_cluster_reads_parquet_alone(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "1,2\n" * 30)
    result = run("fit", tmp_path / "t.csv", "-t", "y", "--dask", "tcp://127.0.0.1:1")
    assert result.exit_code == 2
    assert "--dask needs Parquet data" in result.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_sample_of_a_large_table_is_checked(shifting, tmp_path, monkeypatch, kind):
    place, table = shifting
    data = as_text(table, tmp_path / "t.csv") if kind == "csv" else place
    model = tmp_path / "m"
    assert run("fit", data, "-t", "y", "-e", "year", "-o", model).exit_code == 0
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    result = run("check", model, data)
    assert result.exit_code == 0, result.output
    assert "a random sample of 1,200 of 1,200 rows" in result.stderr
    assert "a random sample" in json.loads(run("check", model, data, "--json").stdout)["notes"][0]
