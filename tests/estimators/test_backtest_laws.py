"""What must not change the answer: order of rows and columns, names, units, copies for weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk import BacktestClassifier, BacktestRegressor
from hetrisk.core.predictor import Inputs
from hetrisk.estimators import trees

N_SITES, N_PERIODS = 6, 8


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setitem(trees.SETTINGS, "max_iter", 4)


def table(n: int = 200, n_classes: int = 1, seed: int = 0) -> pd.DataFrame:
    """A drifting table with ties, a column of a few values and one that repeats others."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["d"] = rng.integers(0, 3, n).astype(float)
    X["sum"] = X["a"] + X["d"]
    X["when"] = rng.permutation(np.arange(n) * N_PERIODS // n) + 2000.0
    X["where"] = rng.permutation(np.arange(n) % N_SITES).astype(float)
    lift = rng.normal(size=N_SITES)[X["where"].astype(int)]
    score = X["a"] + np.abs(X["b"]) + 0.3 * (X["when"] - 2000) + lift + rng.normal(size=n)
    X["y"] = score if n_classes == 1 else np.digitize(score, np.quantile(score, [0.4, 0.8]))
    if n_classes == 2:
        X["y"] = np.minimum(X["y"], 1)
    return X


SIDES = [{"time": "when"}, {"environment": "where"}, {"time": "when", "environment": "where"}]
BOTH = SIDES[2]
FEW = [*((s, k) for s in SIDES for k in (1, 2)), (SIDES[0], 3)]  # three classes take long
KINDS = [pytest.param(s, k, id=f"{'+'.join(s)}-{k}") for s in SIDES for k in (1, 2, 3)]


def fitted(data: pd.DataFrame, sides: dict[str, str], n_classes: int, weight=None, **options):
    if n_classes > 2:  # curves of three classes take long
        options.setdefault("candidates", ["ridge", "trend", "recent", "within", "level", "trees"])
    model = (BacktestRegressor if n_classes == 1 else BacktestClassifier)(**sides, **options)
    return model.fit(data.drop(columns="y"), data["y"].to_numpy(), sample_weight=weight)


def answer(model, data: pd.DataFrame) -> np.ndarray:
    X = data.drop(columns="y")
    return model.predict(X) if model.__class__ is BacktestRegressor else model.predict_proba(X)


def same(model, changed, data, asked) -> None:
    """The same choice and predictions; the whole ranking and forecast with them."""
    assert changed.weights_ == model.weights_
    np.testing.assert_allclose(answer(changed, asked), answer(model, data), rtol=1e-8, atol=1e-8)
    for before, after in zip(model.ranking_, changed.ranking_, strict=True):
        np.testing.assert_allclose(after.criterion, before.criterion, rtol=1e-7)
    np.testing.assert_allclose(changed.forecast_.upper, model.forecast_.upper, rtol=1e-6)
    drift, moved = model._drift.variance, changed._drift.variance
    np.testing.assert_allclose(np.sort(moved), np.sort(drift), rtol=1e-4, atol=1e-10)


def rows_permuted(data):
    return data.sample(frac=1.0, random_state=1), None


def columns_permuted(data):
    return data[["where", "sum", "c", "y", "d", "when", "b", "a"]], None


def environments_renamed(data):
    names = np.array([" zeta", "10", "Ähre", "b", "2", "a"])
    return data.assign(where=names[data["where"].astype(int)]), None


def in_other_units(data):
    return data.assign(a=data["a"] * 25.4, c=32 + 1.8 * data["c"], b=data["b"] * 1e-3), None


def weights_that_sum_to_one(data):
    return data, np.full(len(data), 1.0 / len(data))


def all_at_once(data):
    for change in (in_other_units, rows_permuted, columns_permuted):
        data, _ = change(data)
    return weights_that_sum_to_one(data)


CHANGES = [
    rows_permuted,
    columns_permuted,
    environments_renamed,
    in_other_units,
    weights_that_sum_to_one,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("n_classes", [1, 2])
def test_what_must_change_nothing(n_classes, change) -> None:
    data = table(n_classes=n_classes)
    changed, weight = change(data)
    model = fitted(data, BOTH, n_classes)
    same(model, fitted(changed, BOTH, n_classes, weight), data, changed.loc[data.index])


@pytest.mark.parametrize(("sides", "n_classes"), KINDS)
def test_all_of_it_at_once(sides, n_classes) -> None:
    data = table(n=160, n_classes=n_classes, seed=3)
    changed, weight = all_at_once(data)
    if "environment" in sides:
        changed, _ = environments_renamed(changed)
    model = fitted(data, sides, n_classes)
    same(model, fitted(changed, sides, n_classes, weight), data, changed.loc[data.index])


@pytest.mark.parametrize("change", [rows_permuted, columns_permuted, in_other_units])
def test_rounding_chooses_nothing_where_fits_are_exact(change) -> None:
    data = table(seed=2)
    data["y"] = 2 * data["a"] - data["b"]
    options = {"candidates": ["within", "stable", "ridge"]}
    model = fitted(data, SIDES[0], 1, **options)
    changed = fitted(change(data)[0], SIDES[0], 1, **options)
    assert changed.weights_ == model.weights_ == {"plain": 1.0}


def test_rows_half_way_between_two_of_the_training_fall_to_the_left_in_every_unit() -> None:
    low = np.repeat(np.arange(0.0, 40.0, 2.0), 30)
    y, weight = np.sin(low), np.ones(len(low))
    for unit, zero in [(1.0, 0.0), (25.4, 32.0), (1e-3, 0.0), (1.8, 32.0), (0.1, 0.3)]:
        part = trees.grow((unit * low + zero)[:, None], y, weight, np.zeros(1, dtype=np.int64))
        asked = np.concatenate([np.arange(0.0, 37.0, 2.0), np.arange(1.0, 38.0, 2.0)])
        found = part.scores(Inputs((unit * asked + zero)[:, None], None, None))[:, 0]
        np.testing.assert_array_equal(found[19:], found[:19])


@pytest.mark.parametrize(("sides", "n_classes"), FEW)
def test_rows_twice_are_weight_two(sides, n_classes) -> None:
    data = table(n=160, n_classes=n_classes, seed=1)
    doubled = pd.concat([data, data]).sample(frac=1.0, random_state=2)
    weighted = fitted(data, sides, n_classes, np.full(len(data), 2.0))
    same(weighted, fitted(doubled, sides, n_classes), data, data)


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), copies=st.lists(st.integers(0, 3), min_size=90, max_size=90))
def test_a_weight_counts_rows(seed, copies) -> None:
    """Rows of weight 0, 1, 2, 3: left out, or there as often; with environments as well."""
    data = table(n=90, seed=seed)
    weight = np.array(copies, dtype=float)
    weight[:30] = 1.0  # weights whose mean is below one are scaled
    weight = weight + (weight.mean() < 1)
    repeated = data.loc[data.index.repeat(weight.astype(int))]
    if repeated["where"].nunique() < N_SITES:
        return
    linear = ["plain", "ridge"]
    sides = {"environment": "where"}
    given_weight = fitted(data, sides, 1, weight, candidates=linear)
    given_rows = fitted(repeated, sides, 1, candidates=linear)
    same(given_weight, given_rows, data, data)


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), order=st.permutations(range(N_SITES)), n=st.integers(170, 260))
def test_names_of_environments_have_no_say(seed, order, n) -> None:
    data = table(n=n, seed=seed)
    changed = data.assign(where=np.array(order)[data["where"].astype(int)])
    options = {"candidates": ["ridge", "within", "levels", "recent"]}
    for sides in SIDES[1:]:
        same(fitted(data, sides, 1, **options), fitted(changed, sides, 1, **options), data, changed)
