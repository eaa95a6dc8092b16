"""Rows on dask: alignment, errors, and a worker that dies in the middle."""

import os
import signal
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster

from hetrisk.blocks import ArrayBlocks, DaskBlocks
from hetrisk.core.mixture.mixture import fit_mixture
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.moments import moments

N = 600


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two environments: the slope of the first feature flips in a third of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    sign = np.where(rng.random(N) < 0.33, -2.0, 1.5)
    return X, sign * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=N)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on loopback, closed when the module is done."""
    settings = {
        "distributed.worker.daemon": True,
        "distributed.comm.timeouts.connect": "30s",
        "distributed.admin.low-level-log-length": 0,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as local,
    ):
        yield local


def test_empty_partitions_are_passed_over():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})
    lazy = dd.from_pandas(frame, npartitions=4)
    lazy = lazy[lazy["a"] > 2]
    source = DaskBlocks(lazy[["a"]], lazy["y"])
    assert source.n_rows == 2
    np.testing.assert_allclose(source.sum(moments).mean, [3.5, 3.5])
    np.testing.assert_array_equal(source.sample(1, 0).X.shape, (1, 1))
    assert source.feature_names == ("a",)


def test_rows_to_predict_have_no_target():
    source = DaskBlocks(da.ones((10, 2), chunks=5))
    assert not source.has_target
    assert np.isnan(source.sample(3, 0).y).all()
    with pytest.raises(ValueError, match="y must be given to find its labels; got None"):
        source.labels()


def test_responsibilities_may_be_given_as_a_matrix():
    X, y = table()
    share = np.random.default_rng(0).dirichlet([1, 1], size=N)
    source = DaskBlocks(
        da.from_array(X, chunks=(100, 3)), y, environments=da.from_array(share, chunks=(70, 1))
    )
    np.testing.assert_array_equal(np.vstack(list(source.map(lambda r: r.environments))), share)
    assert source.environment_labels is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DaskBlocks(np.ones((3, 2))), "X must be a dask array or dataframe; got ndarray"),
        (lambda: DaskBlocks(da.ones(3)), "X must have 2 dimensions; got 1"),
        (lambda: DaskBlocks(da.ones((3, 1)).astype(str)), "X must hold numbers; got <U"),
        (lambda: DaskBlocks(da.ones((0, 2))), "X must have rows; got none"),
        (
            lambda: DaskBlocks(da.ones((10, 2)), da.ones(9)),
            "y must have length n_samples=10; got 9",
        ),
        (
            lambda: DaskBlocks(da.ones((10, 2)), np.ones(10), weight=np.ones(3)),
            "sample_weight must have length n_samples=10; got 3",
        ),
        (
            lambda: DaskBlocks(
                dd.from_pandas(pd.DataFrame({"a": ["u", "v"]}), npartitions=1), np.ones(2)
            ),
            "column 'a' must hold numbers; it holds",
        ),
        (
            lambda: DaskBlocks(
                da.ones((4, 1), chunks=2), dd.from_pandas(pd.Series([1.0] * 4), npartitions=1)
            ),
            r"y must have the partitions of X \(2 of them\); got 1",
        ),
    ],
)
def test_what_is_refused(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinite")])
def test_bad_value_names_the_partition(value, kind):
    X, y = table()
    X[250, 1] = value
    source = DaskBlocks(da.from_array(X, chunks=(100, 3)), y)
    with pytest.raises(ValueError, match=f"partition 2: X is {kind} in row 50, column 1"):
        source.sum(moments)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_label_names_the_partition(missing):
    labels = np.array(["u", "v"] * (N // 2), dtype=object)
    labels[401] = missing
    source = DaskBlocks(da.from_array(table()[0], chunks=(100, 3)), labels)
    with pytest.raises(ValueError, match="partition 4: y is missing in row 1"):
        source.labels()


def test_labels_of_text_are_text():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["u", "v", "u"]})
    lazy = dd.from_pandas(frame, npartitions=2)
    labels = DaskBlocks(lazy[["a"]], lazy["y"]).labels()
    assert labels.dtype.kind == "U"
    assert labels.tolist() == ["u", "v"]


def test_negative_weight_names_the_partition():
    X, y = table()
    weight = np.append(np.ones(N - 1), -1)
    with pytest.raises(ValueError, match="partition 5: sample_weight must not be negative"):
        DaskBlocks(da.from_array(X, chunks=(100, 3)), y, weight=weight)


@pytest.mark.parametrize("chunks", [200, 300])
def test_labels_of_two_kinds_are_refused(chunks):
    X, _ = table()
    labels = np.array([1] * 300 + ["no"] * 300, dtype=object)
    source = DaskBlocks(da.from_array(X, chunks=(chunks, 3)), da.from_array(labels, chunks=chunks))
    with pytest.raises(ValueError, match=r"y must hold labels of one kind, .* got 1 and 'no'"):
        source.labels()


def test_series_of_another_length_names_the_partition():
    X = da.ones((4, 1), chunks=2)
    y = dd.from_pandas(pd.Series([1.0, 2.0, 3.0, 4.0, 5.0]), npartitions=2)
    with pytest.raises(ValueError, match=r"partition \d: y must have length 2; got"):
        DaskBlocks(X, y).sum(moments)


def fitted(source):
    return fit_mixture(source, 2, Gaussian(), n_init=4, seed=0, sample_size=300).value


def killing(block: np.ndarray, marker: str, visits: int, block_info=None) -> np.ndarray:
    """Pass a block on; end the worker the ``visits``-th time the third one is asked for."""
    if block_info[0]["chunk-location"][0] == 2:
        seen = len(list(Path(marker).iterdir()))
        (Path(marker) / str(seen)).touch()
        if seen == visits:
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_cluster_gives_the_answer_of_local_threads(cluster):
    X, y = table()
    with Client(cluster):
        remote = fitted(DaskBlocks(da.from_array(X, chunks=(100, 3)), y))
    local = fitted(DaskBlocks(da.from_array(X, chunks=(100, 3)), y))
    np.testing.assert_array_equal(remote.coef, local.coef)
    np.testing.assert_allclose(remote.coef, fitted(ArrayBlocks(X, y)).coef, rtol=1e-8)


def persisted_source() -> DaskBlocks:
    X, y = table()
    return DaskBlocks(
        da.from_array(X, chunks=(100, 3)).map_blocks(np.sin).persist(),
        da.from_array(y, chunks=100).persist(),
    )


def test_persisted_rows_live_as_long_as_their_blocks(cluster):
    X, y = table()
    with Client(cluster):
        source = persisted_source()
        for _ in range(3):
            got = source.sum(moments)
    np.testing.assert_allclose(got.mean, np.append(np.sin(X).mean(axis=0), y.mean()))


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, tmp_path):
    X, y = table()
    lazy = da.from_array(X, chunks=(100, 3))
    # One visit counts the rows, one draws the sample; a later one is an iteration of EM.
    fragile = lazy.map_blocks(partial(killing, marker=str(tmp_path), visits=5), dtype=float)
    with Client(cluster) as client:
        before = set(client.scheduler_info()["workers"])
        survived = fitted(DaskBlocks(fragile, y))
        client.wait_for_workers(2)
        after = set(client.scheduler_info()["workers"])
    assert len(list(tmp_path.iterdir())) > 6  # the fit went on after the kill
    assert before != after  # a worker was lost and replaced
    np.testing.assert_array_equal(survived.coef, fitted(DaskBlocks(lazy, y)).coef)
