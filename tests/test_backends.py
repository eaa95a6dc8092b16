"""Estimators do not know where their rows live: the same fit, the same predictions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from hetrisk import (
    EnvironmentMixture,
    HRMClassifier,
    HRMRegressor,
    InvariantClassifier,
    InvariantRegressor,
    StableClassifier,
    StableRegressor,
)
from hetrisk.blocks import ParquetBlocks

N = 1200
NAMES = ["cause", "helper", "proxy", "noise"]


def table(labels: bool = False) -> pd.DataFrame:
    """A cause that always works and a proxy whose sign differs in a fifth of the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N)
    X[:, 2] = np.where(rng.random(N) < 0.2, -1.0, 1.0) * y + 0.3 * X[:, 2]
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, w=rng.uniform(0.5, 1.5, size=N))
    return frame.assign(y=np.where(y > 0, "up", "down")) if labels else frame


def known_homes(frame: pd.DataFrame, folder) -> dict[str, tuple]:
    """The same with the place of every row known."""
    place = np.where(np.sign(frame["proxy"]) * np.sign(frame["cause"]) > 0, "north", "south")
    frame = frame.assign(place=place)
    frame.to_parquet(folder / "t.parquet", row_group_size=170)
    lazy = dd.from_pandas(frame, npartitions=3)
    return {
        "memory": (frame[NAMES], frame["y"], frame["place"]),
        "parquet": (ParquetBlocks(folder, "y", NAMES, environments="place", block_rows=130),),
        "dask": (lazy[NAMES], lazy["y"], lazy["place"]),
    }


@pytest.mark.parametrize("kind", [InvariantRegressor, InvariantClassifier])
def test_invariant_prediction(kind, tmp_path):
    places = known_homes(table(labels=kind is InvariantClassifier), tmp_path)
    fits = {}
    for name, (X, *known) in places.items():
        keys = {"environments": known[1]} if known else {}
        fits[name] = kind().fit(X, *known[:1], **keys)
    for name in ("parquet", "dask"):
        names = ("coef_", "intercept_", "support_", "gates_", "environment_names_")
        assert_same(fits["memory"], fits[name], *names)
        got = fits[name].predict(places[name][0])
        assert_same_values(got, fits["memory"].predict(places["memory"][0]))
    assert fits["parquet"].environment_names_.tolist() == ["north", "south"]


def backends(frame: pd.DataFrame, folder) -> dict[str, tuple]:
    """The arguments of ``fit`` for the same rows in memory, in Parquet and on dask."""
    frame[:500].to_parquet(folder / "a.parquet", row_group_size=170)
    frame[500:].to_parquet(folder / "b.parquet")
    lazy = dd.from_pandas(frame, npartitions=3)
    parquet = ParquetBlocks(folder, "y", NAMES, weight="w", block_rows=130)
    return {
        "memory": (frame[NAMES], frame["y"], frame["w"]),
        "parquet": (parquet,),
        "dask": (lazy[NAMES], lazy["y"], lazy["w"]),
    }


def fitted(model, rows: tuple):
    """Fit to the rows of a backend: blocks name their own columns, others come with weights."""
    if len(rows) == 1:
        return model.fit(rows[0])
    return model.fit(rows[0], rows[1], sample_weight=rows[2])


def assert_same(model, other, *names: str) -> None:
    for name in names:
        assert_same_values(getattr(model, name), getattr(other, name), name)


def assert_same_values(ours, theirs, name: str = "") -> None:
    if np.asarray(ours).dtype.kind == "f":
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8, err_msg=name)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_regression(tmp_path):
    fits = {
        name: fitted(StableRegressor(), rows) for name, rows in backends(table(), tmp_path).items()
    }
    for name in ("parquet", "dask"):
        assert_same(fits["memory"], fits[name], "coef_", "intercept_", "support_", "verdict_")
        assert_same(fits["memory"], fits[name], "feature_names_in_", "n_features_in_")


def test_classification(tmp_path):
    fits = {
        name: fitted(StableClassifier(), rows)
        for name, rows in backends(table(labels=True), tmp_path).items()
    }
    for name in ("parquet", "dask"):
        assert_same(fits["memory"], fits[name], "coef_", "intercept_", "support_", "classes_")


def test_mixture(tmp_path):
    places = backends(table(), tmp_path)
    fits = {
        name: fitted(EnvironmentMixture(2, family="gaussian", random_state=0), rows)
        for name, rows in places.items()
    }
    expected = fits["memory"].predict_proba(*places["memory"][:2])
    for name in ("parquet", "dask"):
        assert_same(fits["memory"], fits[name], "coef_", "intercept_", "weights_", "variance_")
        got = fits["memory"].predict_proba(*places[name][:2])
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_mixture_of_labels(tmp_path):
    """Two logistic relations far apart: a likelihood with one clear maximum."""
    rng = np.random.default_rng(0)
    frame = table()
    X = rng.normal(size=(N, 4))
    slopes = np.where(rng.random((N, 1)) < 0.7, [[4.0, 4.0, 0.0, 0.0]], [[-4.0, 0.0, 4.0, 0.0]])
    chance = 1 / (1 + np.exp(-(X * slopes).sum(axis=1)))
    frame[NAMES], frame["y"] = X, np.where(rng.random(N) < chance, "up", "down")
    fits = {
        name: fitted(EnvironmentMixture(2, family="bernoulli", random_state=0), rows)
        for name, rows in backends(frame, tmp_path).items()
    }
    for name in ("parquet", "dask"):
        assert_same(fits["memory"], fits[name], "coef_", "weights_", "classes_")


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    """A model fitted in memory, and the backends of its rows."""
    places = backends(table(), tmp_path_factory.mktemp("rows"))
    return fitted(HRMRegressor(random_state=0), places["memory"]), places


@pytest.fixture(scope="module")
def classification(tmp_path_factory):
    """A classifier fitted in memory, and the backends of its rows."""
    places = backends(table(labels=True), tmp_path_factory.mktemp("rows"))
    return fitted(HRMClassifier(random_state=0), places["memory"]), places


def test_predictions_block_by_block(regression, classification):
    for model, places in (regression, classification):
        X, y, _ = places["memory"]
        for name in ("parquet", "dask"):
            assert_same_values(model.predict(places[name][0]), model.predict(X))
            np.testing.assert_array_equal(
                model.predict_environments(*places[name][:2]), model.predict_environments(X, y)
            )
    np.testing.assert_allclose(
        model.predict_proba(places["parquet"][0]), model.predict_proba(X), rtol=1e-12
    )


def test_rows_out_of_core_are_not_held(tmp_path):
    model = fitted(HRMRegressor(random_state=0), backends(table(), tmp_path)["parquet"])
    with pytest.raises(AttributeError, match="are not held for rows out of core"):
        model.environments_  # noqa: B018


def test_any_final_model_out_of_core(tmp_path):
    places = backends(table(), tmp_path)
    final = HistGradientBoostingRegressor(max_iter=5, random_state=0)
    held = fitted(StableRegressor(final_estimator=final), places["memory"])
    read = fitted(StableRegressor(final_estimator=final), places["parquet"])
    np.testing.assert_allclose(
        read.predict(places["parquet"][0]), held.predict(places["memory"][0])
    )


def test_blocks_without_a_target_are_refused(tmp_path):
    backends(table(), tmp_path)
    source = ParquetBlocks(tmp_path, None, NAMES)
    with pytest.raises(ValueError, match="must carry a target"):
        HRMRegressor().fit(source)


def test_other_columns_are_refused_at_prediction(regression):
    model, places = regression
    with pytest.raises(ValueError, match="X has 2 features, but HRMRegressor is expecting 4"):
        model.predict(ParquetBlocks(places["parquet"][0].path, "y", NAMES[:2]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(ParquetBlocks(places["parquet"][0].path, "y", NAMES[::-1]))
    with pytest.raises(ValueError, match="expecting 4"):
        model.predict(da.ones((10, 3), chunks=5))
