"""Rows in blocks: the same choice, figures and predictions as in memory."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from hetrisk import BacktestClassifier, BacktestRegressor
from hetrisk.blocks import ArrayBlocks, DaskBlocks, ParquetBlocks
from hetrisk.core.backtest import prepare
from hetrisk.estimators import trees

N = 400
LINEAR = ["ridge", "trend", "within", "levels", "level", "stable"]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setitem(trees.SETTINGS, "max_iter", 4)


def table(labels: bool = False, holes: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    X["when"] = rng.permutation(np.arange(N) * 8 // N) + 2010
    X["where"] = rng.integers(0, 6, N) + 1_000_001.0
    if holes:
        X["where"] = X["where"].where(rng.random(N) > 0.2)
    y = X["a"] + 0.5 * (X["when"] - 2010) + rng.normal(size=N)
    X["y"] = np.where(y > 2, "yes", "no") if labels else y
    return X


def parquet(data: pd.DataFrame, folder, words: bool = False) -> ParquetBlocks:
    if words:
        data = data.assign(where=data["where"].map("site {:.0f}".format))
    for k, part in enumerate(np.array_split(np.arange(N), 3)):
        data.iloc[part].to_parquet(folder / f"{k}.parquet", row_group_size=60)
    classes = ["no", "yes"] if data["y"].iloc[0] in ("no", "yes") else None
    sides = ["when", "where"]
    return ParquetBlocks(
        folder, target="y", features=["a", "b"], aside=sides, classes=classes, block_rows=77
    )


def dask(data: pd.DataFrame) -> DaskBlocks:
    frame = dd.from_pandas(data, npartitions=4)
    return DaskBlocks(frame[["a", "b"]], frame["y"], aside=frame[["when", "where"]])


def same(found, model, blocks, data) -> None:
    assert found.weights_ == model.weights_
    for one, other in zip(found.ranking_, model.ranking_, strict=True):
        assert one.criterion == pytest.approx(other.criterion, rel=1e-9)
    X = data.drop(columns="y")
    np.testing.assert_array_equal(found.environment_levels_, model.environment_levels_)
    if type(model) is BacktestRegressor:
        np.testing.assert_allclose(found.predict(blocks), model.predict(X), rtol=1e-8)
    else:
        p = model.predict_proba(X)
        np.testing.assert_allclose(found.predict_proba(blocks), p, rtol=1e-8)
    assert {t.environment for t in found.backtest_} == {t.environment for t in model.backtest_}


SIDES = [{"time": "when"}, {"environment": "where"}, {"time": "when", "environment": "where"}]


@pytest.mark.parametrize("sides", SIDES, ids="+".join)
def test_parquet_gives_the_same_answer(sides, tmp_path) -> None:
    data = table()
    blocks = parquet(data, tmp_path)
    memory = data.drop(columns=[c for c in ("when", "where") if c not in sides.values()])
    model = BacktestRegressor(**sides).fit(memory.drop(columns="y"), data["y"])
    same(BacktestRegressor(**sides).fit(blocks), model, blocks, memory)


@pytest.mark.parametrize("holes", [False, True])
def test_dask_gives_the_same_answer(holes) -> None:
    data = table(holes=holes)
    blocks = dask(data)
    options = {"time": "when", "environment": "where", "candidates": LINEAR}
    model = BacktestRegressor(**options).fit(data.drop(columns="y"), data["y"])
    same(BacktestRegressor(**options).fit(blocks), model, blocks, data)


def test_labels_and_sites_that_are_words(tmp_path) -> None:
    data = table(labels=True)
    blocks = parquet(data, tmp_path, words=True)
    memory = data.assign(where=data["where"].map("site {:.0f}".format))
    options = {"environment": "where", "candidates": ["ridge", "level"]}
    X = memory.drop(columns=["when", "y"])
    model = BacktestClassifier(**options).fit(X, data["y"])
    same(BacktestClassifier(**options).fit(blocks), model, blocks, memory.drop(columns="when"))


def test_new_levels_missing_columns_and_rows_in_memory(tmp_path) -> None:
    data = table()
    blocks = parquet(data, tmp_path)
    by_time = BacktestRegressor(time="when", candidates=["trend"]).fit(blocks)
    assert by_time.best_name_ == "trend"
    lacking = ArrayBlocks(data[["a", "b"]].to_numpy(), np.zeros(N))
    with pytest.raises(ValueError, match="needs the time column; X has none"):
        by_time.predict(lacking)
    with pytest.raises(ValueError, match="needs the column of time 'when': pass blocks"):
        by_time.predict(data[["a", "b"]])
    with pytest.raises(ValueError, match="X has 1 features, but the model is expecting 2"):
        by_time.predict(ParquetBlocks(tmp_path, target="y", features=["a"]))
    plain = BacktestRegressor(environment="where", candidates=["plain"]).fit(blocks)
    rows = plain.predict(data[["a", "b"]])
    np.testing.assert_allclose(rows, plain.predict(blocks))
    with pytest.raises(ValueError, match="predict_interval and adapt need a table in memory"):
        plain.predict_interval(blocks)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"time": "whem"}, r"a column that the blocks hold aside, \['when', 'where'\]; got 'whem'"),
        ({"environment": "x"}, "environment must be a column that the blocks hold aside"),
        ({"time": "where"}, "missing in"),
    ],
)
def test_bad_blocks_are_refused(options, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        BacktestRegressor(**options).fit(dask(table(holes=True)))


def test_blocks_hold_their_own_target() -> None:
    blocks = dask(table())
    with pytest.raises(ValueError, match="blocks hold the target and the weights"):
        BacktestRegressor(time="when").fit(blocks, np.zeros(N))
    with pytest.raises(ValueError, match="the blocks hold no target"):
        BacktestRegressor(time="when").fit(blocks.without_target())
    fitted = BacktestRegressor(time="a", candidates=["ridge"]).fit(
        table().drop(columns=["y", "where"]).assign(a=table()["when"]), table()["y"]
    )
    with pytest.raises(ValueError, match="fitted to a table in memory"):
        fitted.predict(blocks)


def test_more_rows_than_are_held(monkeypatch) -> None:
    """Linear candidates are fitted to all rows; judged on a sample by content, in any order."""
    monkeypatch.setattr(prepare, "MOST_ROWS", 150)
    data = table()
    options = {"time": "when", "candidates": ["trend", "level"]}
    X = data.drop(columns=["y", "where"])
    model = BacktestRegressor(**options).fit(X, data["y"])
    order = np.random.default_rng(1).permutation(N)
    again = BacktestRegressor(**options).fit(X.iloc[order], data["y"].iloc[order])
    assert again.weights_ == model.weights_
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-8)
    assert model.n_rows_ == N
