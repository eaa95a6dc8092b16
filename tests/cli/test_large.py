"""Tables that do not fit in memory: read in blocks, with the answer of memory."""

import json

import numpy as np
import pandas as pd
import pytest

from hetrisk.tables import inputs

from .conftest import FEW, frame, run

ARGUMENTS = ("-t", "y", "--time", "year", "--environment", "place", "-d", "key,label", *FEW)


@pytest.fixture
def small_memory(monkeypatch):
    """A machine on which nothing fits."""
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)


@pytest.fixture
def folder(tmp_path):
    """A table in two Parquet files."""
    place = tmp_path / "data"
    place.mkdir()
    table = frame(0, 400)
    table.iloc[:150].to_parquet(place / "one.parquet")
    table.iloc[150:].to_parquet(place / "two.parquet")
    return place


def fitted(data, *more):
    result = run("fit", data, *ARGUMENTS, "--json", *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_blocks_and_memory_agree(folder, tmp_path, monkeypatch):
    whole = fitted(folder, "--out", tmp_path / "whole.hetrisk")
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    blocks = fitted(folder, "--out", tmp_path / "blocks.hetrisk")
    assert any("read in blocks" in note["text"] for note in blocks["notes"])
    assert blocks["n_rows"] == whole["n_rows"]
    assert blocks["decision"]["candidate"] == whole["decision"]["candidate"]
    for a, b in zip(whole["ranking"], blocks["ranking"], strict=True):
        assert a["candidate"] == b["candidate"]
        assert a["mean"] == pytest.approx(b["mean"], rel=1e-6)


def test_the_folder_one_stands_in_has_a_name(folder, small_memory, monkeypatch):
    monkeypatch.chdir(folder)
    assert fitted(".")["source"] == "."
    assert "column 'none'" in run("fit", ".", "-t", "none").stderr


def test_text_larger_than_memory_goes_the_same_way(tmp_path, small_memory):
    frame(0, 400).to_csv(tmp_path / "t.csv", index=False)
    record = fitted(tmp_path / "t.csv")
    assert record["decision"]["action"] == "use"
    assert record["source"] == "t.csv"


def test_dates_in_blocks_are_dates(tmp_path, small_memory):
    days = pd.to_datetime(frame(0, 400)["year"].astype(str) + "-07-01")
    frame(0, 400).assign(year=days).to_parquet(tmp_path / "t.parquet")
    record = fitted(tmp_path / "t.parquet")
    assert any(line["environment"].startswith("2015-07-01") for line in record["backtest"])


def test_quarters_in_blocks_are_called_as_in_memory(tmp_path, monkeypatch):
    table = frame(0, 400)
    table["year"] = [f"{2010 + k // 4}Q{k % 4 + 1}" for k in np.arange(400) * 16 // 400]
    table.to_parquet(tmp_path / "t.parquet")
    whole = fitted(tmp_path / "t.parquet")
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    blocks = fitted(tmp_path / "t.parquet")
    cuts = [{line["cut"] for line in record["backtest"]} for record in (blocks, whole)]
    assert cuts[0] == cuts[1]
    assert all("Q" in cut for cut in cuts[0])
    assert blocks["decision"]["expect"] == whole["decision"]["expect"]


def test_predictions_of_pieces_are_those_of_the_whole(folder, workshop, tmp_path, monkeypatch):
    arguments = ("predict", workshop / "y.hetrisk", folder, "--id", "key", "--out")
    assert run(*arguments, tmp_path / "whole.csv").exit_code == 0
    monkeypatch.setattr(inputs, "memory_limit", lambda: 1000)
    assert run(*arguments, tmp_path / "pieces.csv").exit_code == 0
    whole, pieces = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("whole", "pieces"))
    assert whole["key"].tolist() == pieces["key"].tolist()
    assert np.allclose(whole["prediction"], pieces["prediction"])


def test_a_sample_of_a_large_table_is_checked(folder, workshop, small_memory):
    result = run("check", workshop / "y.hetrisk", folder)
    assert result.exit_code in (0, 3, 4)
    assert "a sample of 400" in result.stderr


def test_what_is_wrong_in_blocks_is_a_sentence(folder, small_memory):
    result = run("fit", folder, "-t", "none", "--time", "year")
    assert result.exit_code == 2
    assert "there is no column 'none'" in result.stderr
