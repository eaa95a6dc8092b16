"""Rows have the same sums, samples and labels wherever they live."""

from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from hetrisk.blocks import ArrayBlocks, Blocks, DaskBlocks, ParquetBlocks, as_blocks
from hetrisk.blocks.base import codes_in
from hetrisk.blocks.sampling import content
from hetrisk.blocks.stream import in_order, read_ahead
from hetrisk.blocks.weights import WeightScale, as_counts
from hetrisk.columns.sampling import chosen_rows
from hetrisk.core.numerics.moments import Moments, moments
from hetrisk.core.numerics.rows import Rows
from hetrisk.estimators import inputs

NAMES = ["a", "b", "c"]


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        rng.normal(size=(n, 3)) * [1.0, 5.0, 0.1] + [0.0, 1e3, -3.0], columns=NAMES
    )
    frame["y"] = frame["a"] - 2 * frame["c"] + rng.normal(size=n)
    frame["w"] = rng.uniform(1.0, 3.0, size=n)
    frame["place"] = rng.choice(["north", "south", "west"], size=n)
    return frame


def one_hot(labels: pd.Series) -> np.ndarray:
    return (labels.to_numpy()[:, None] == np.unique(labels)).astype(float)


def in_memory(frame: pd.DataFrame, block_rows: int) -> Blocks:
    source = ArrayBlocks(
        frame[NAMES].to_numpy(),
        frame["y"].to_numpy(),
        frame["w"].to_numpy(),
        one_hot(frame["place"]),
    )
    source.block_rows = block_rows
    return source


def in_parquet(frame: pd.DataFrame, block_rows: int, folder) -> Blocks:
    half = len(frame) // 2
    frame[:half].to_parquet(folder / "a.parquet", row_group_size=max(1, half // 3))
    frame[half:].to_parquet(folder / "b.parquet", row_group_size=max(1, half))
    roles = {"target": "y", "weight": "w", "environments": "place"}
    return ParquetBlocks(folder, **roles, block_rows=block_rows)


def on_dask_array(frame: pd.DataFrame, block_rows: int) -> Blocks:
    X = da.from_array(frame[NAMES].to_numpy(), chunks=(block_rows, 2))
    y = da.from_array(frame["y"].to_numpy(), chunks=7)
    place = da.from_array(frame["place"].to_numpy(dtype="U5"), chunks=11)
    return DaskBlocks(X, y, weight=frame["w"].to_numpy(), environments=place)


def on_dask_frame(frame: pd.DataFrame, block_rows: int) -> Blocks:
    lazy = dd.from_pandas(frame, npartitions=max(1, len(frame) // block_rows), sort=False)
    return DaskBlocks(lazy[NAMES], lazy["y"], weight=lazy["w"], environments=lazy["place"])


@pytest.mark.parametrize("size", [1e300, 1e160, 1.0, 1e-160, 1e-200])
def test_weights_of_any_size_compare_as_they_did(backend, size):
    frame = table(60)
    frame.loc[:29, "w"] *= 1e-150  # in some blocks every weight is tiny
    expected = in_memory(frame, 10).sample(60, 0).weight
    frame["w"] *= size
    source = checked(backend(frame, 10))
    weight = source.sample(60, 0).weight
    assert 1e-100 <= weight.max() <= 1e100
    np.testing.assert_allclose(weight / weight.max(), expected / expected.max(), 1e-12, 1e-140)
    assert np.isfinite(source.sum(_squared))
    assert source.without_target().sample(60, 0).weight.tolist() == [1.0] * 60


def checked(source: Blocks) -> Blocks:
    """Blocks as estimators use them."""
    return inputs.as_blocks(BaseEstimator(), source, None)


def _squared(rows: Rows) -> float:
    with np.errstate(over="raise"):
        return (rows.weight**2).sum()


def test_weights_that_are_all_zero_are_refused(backend):
    with pytest.raises(ValueError, match=r"must (have a positive|contain at least one non-zero)"):
        checked(backend(table(20).assign(w=0.0), 10))


def weighted_moments(rows: Rows) -> Moments:
    return moments(rows, rows.environments)


def assert_same_moments(got: Moments, expected: Moments) -> None:
    np.testing.assert_allclose(got.weight, expected.weight, rtol=1e-12)
    spread = np.array([1.0, 5.0, 0.1, 1.5])  # what the columns of `table` vary by
    size = spread + np.abs(expected.mean)
    np.testing.assert_allclose(got.mean / size, expected.mean / size, rtol=0, atol=1e-12)
    unit = expected.weight.sum() * np.outer(spread, spread)
    np.testing.assert_allclose(got.scatter / unit, expected.scatter / unit, rtol=0, atol=1e-12)


@pytest.fixture(params=["memory", "parquet", "dask array", "dask frame"])
def backend(request, tmp_path):
    """A function that gives a frame one of the backends."""
    return {
        "memory": in_memory,
        "parquet": partial(in_parquet, folder=tmp_path),
        "dask array": on_dask_array,
        "dask frame": on_dask_frame,
    }[request.param]


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(n=st.integers(2, 60), block_rows=st.integers(1, 40), seed=st.integers(0, 99))
def test_moments_do_not_depend_on_the_backend_or_the_block_size(backend, n, block_rows, seed):
    frame = table(n, seed)
    rows = Rows(
        frame[NAMES].to_numpy(),
        frame["y"].to_numpy(),
        frame["w"].to_numpy(),
        one_hot(frame["place"]),
    )
    assert_same_moments(backend(frame, block_rows).sum(weighted_moments), weighted_moments(rows))


def test_sums_are_the_same_to_the_last_bit_every_time(backend):
    source = backend(table(500), 37)
    first = source.sum(weighted_moments)
    for _ in range(3):
        np.testing.assert_array_equal(source.sum(weighted_moments).scatter, first.scatter)


@pytest.mark.parametrize("size", [50, 1000])
def test_a_sample_is_the_same_rows_in_every_backend_and_any_order(backend, size):
    frame = table(300)
    frame.loc[100:199, [*NAMES, "y"]] = frame.loc[0, [*NAMES, "y"]].to_numpy(float)  # copies
    expected = in_memory(frame, 41).sample(size, seed=3)
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    rows = backend(shuffled, 41).sample(size, seed=3)
    np.testing.assert_array_equal(rows.X, expected.X)
    np.testing.assert_array_equal(rows.y, expected.y)
    assert len(rows) == min(size, 300)
    if size == 50:  # a third of the table is one row, and so is a third of its sample
        assert 8 <= (rows.y == frame["y"][0]).sum() <= 26
    held = {
        tuple(row) for row in np.column_stack([frame[[*NAMES, "y", "w"]], one_hot(frame.place)])
    }
    carried = np.column_stack([rows.X, rows.y, rows.weight, rows.environments])
    assert {tuple(row) for row in carried[:, :4]} <= {row[:4] for row in held}
    np.testing.assert_allclose(np.sort(carried[:, 4]), np.sort(expected.weight), rtol=1e-12)


def test_the_order_of_columns_does_not_choose_rows():
    frame = table(300)
    other = ArrayBlocks(frame[NAMES[::-1]].to_numpy(), frame["y"].to_numpy())
    chosen = ArrayBlocks(frame[NAMES].to_numpy(), frame["y"].to_numpy()).sample(40, 1)
    np.testing.assert_array_equal(other.sample(40, 1).X[:, ::-1], chosen.X)


def test_another_seed_is_another_sample(backend):
    source = backend(table(100), 30)
    again = source.sample(10, seed=1)
    np.testing.assert_array_equal(source.sample(10, seed=1).X, again.X)
    assert not np.array_equal(source.sample(10, seed=2).X, again.X)
    assert np.isnan(source.without_target().sample(10, seed=1).y).all()


def test_collect_keeps_the_order_of_rows(backend):
    frame = table(200)
    np.testing.assert_array_equal(backend(frame, 13).collect(_first_feature), frame["a"])


def _first_feature(rows: Rows) -> np.ndarray:
    return rows.X[:, 0]


def test_standardised_view_has_unit_moments(backend):
    source = backend(table(400), 50)
    m = source.sum(moments)
    view = source.standardised(m.mean, np.sqrt(np.diag(m.covariance)))
    seen = view.sum(moments)
    np.testing.assert_allclose(seen.mean, 0, atol=1e-9)
    np.testing.assert_allclose(np.diag(seen.covariance), 1, rtol=1e-9)
    np.testing.assert_allclose(
        view.collect(_first_feature).mean(), view.sample(400, 0).X[:, 0].mean()
    )
    assert (view.n_rows, view.n_features) == (400, 3)


def test_labels_and_their_codes(tmp_path):
    frame = table(60)
    frame.to_parquet(tmp_path / "t.parquet")
    X, y = frame[NAMES].to_numpy(), frame["place"].to_numpy(dtype="U5")
    expected = np.searchsorted(np.unique(y), y)
    sources = [
        ArrayBlocks(X, y),
        ParquetBlocks(tmp_path / "t.parquet", target="place", features=NAMES),
        DaskBlocks(da.from_array(X, chunks=(20, 3)), da.from_array(y, chunks=20)),
    ]
    for source in sources:
        classes = source.labels()
        np.testing.assert_array_equal(classes, ["north", "south", "west"])
        coded = source.encoded(classes)
        np.testing.assert_array_equal(coded.collect(_target), expected)
        assert coded.has_target


def _target(rows: Rows) -> np.ndarray:
    return rows.y


def test_unknown_label_is_named():
    with pytest.raises(ValueError, match=r"among the 2 classes \['a', 'b'\]; got 'z'\.$"):
        codes_in(np.array(["a", "b"]), np.array(["a", "z"]))


def test_codes_follow_the_order_of_classes():
    np.testing.assert_array_equal(
        codes_in(np.array([3, 1, 2]), np.array([1, 2, 3, 3])), [1, 2, 0, 0]
    )


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 50), st.randoms())
@settings(max_examples=50, deadline=None)
def test_chosen_rows_are_as_many_as_asked_and_the_same_in_any_order(values, size, random):
    def chosen(held):
        held = np.asarray(held, dtype=float)
        rows = Rows(held[:, None], np.zeros(len(held)), np.ones(len(held)))
        places = chosen_rows(content(rows), size, 1, lambda: content(rows))
        assert len(set(places)) == len(places) == min(size, len(held))
        return held[places].tolist()

    assert chosen(values) == chosen(random.sample(values, len(values)))


def test_chosen_rows_are_uniform():
    rows = Rows(np.arange(20.0)[:, None], np.zeros(20), np.ones(20))
    counts = np.zeros(20)
    for seed in range(4000):
        counts[chosen_rows(content(rows), 5, seed, lambda: content(rows))] += 1
    np.testing.assert_allclose(counts, 1000, rtol=0.12)


@given(st.lists(st.floats(0, 1e300), min_size=2, max_size=20), st.integers(1, 19))
def test_weights_are_counts_however_they_are_split(weights, cut):
    weight = np.asarray([*weights, 1.0])
    scale = WeightScale.of(weight[:cut]) + WeightScale.of(weight[cut:])
    np.testing.assert_allclose(scale.scaled(weight), as_counts(weight), rtol=1e-9, atol=1e-300)


def test_a_weight_of_two_is_a_row_twice_and_shares_are_brought_to_a_mean_of_one():
    assert as_counts(np.array([2.0, 2.0, 0.0, 5.0])).tolist() == [2, 2, 0, 5]
    assert as_counts(np.array([0.25, 0.5, 0.25, 0.0])).tolist() == [0.75, 1.5, 0.75, 0.0]
    assert as_counts(np.array([1e-150, 1e-150])).tolist() == [1.0, 1.0]
    assert as_counts(np.array([1e300, 1e300])).tolist() == [1.0, 1.0]


def test_as_blocks_finds_the_home(tmp_path):
    frame = table(20)
    frame.to_parquet(tmp_path / "t.parquet")
    parquet = ParquetBlocks(tmp_path, target="y", features=NAMES)
    assert as_blocks(parquet) is parquet
    X = da.from_array(frame[NAMES].to_numpy(), chunks=5)
    assert isinstance(as_blocks(X, frame["y"].to_numpy()), DaskBlocks)
    assert isinstance(as_blocks(frame[NAMES].to_numpy(), frame["y"].to_numpy()), ArrayBlocks)
    with pytest.raises(ValueError, match="sample_weight must be None when X is ParquetBlocks"):
        as_blocks(parquet, weight=np.ones(20))
    with pytest.raises(ValueError, match="y must be given when X is an array; got None"):
        as_blocks(frame[NAMES].to_numpy())


def test_classes_must_be_distinct(tmp_path):
    with pytest.raises(ValueError, match="classes must be distinct labels"):
        ArrayBlocks(np.ones((2, 1)), np.array([0, 1])).encoded(np.array([1, 1]))


def test_streams_keep_order_and_pass_errors_on():
    assert list(read_ahead(range(20), depth=3)) == list(range(20))
    assert list(in_order(lambda i: i * i, range(20))) == [i * i for i in range(20)]

    def broken():
        yield 1
        raise RuntimeError("no more")

    stream = read_ahead(broken())
    assert next(stream) == 1
    with pytest.raises(RuntimeError, match="no more"):
        next(stream)


def test_a_stream_left_early_reads_no_further():
    read = []

    def items():
        for i in range(1000):
            read.append(i)
            yield i

    stream = read_ahead(items(), depth=2)
    assert next(stream) == 0
    stream.close()
    assert len(read) <= 4


def test_blas_threads_come_back_after_blocks_that_overlap():
    """Each that ends must not put back the limit it found: another's."""
    from threadpoolctl import threadpool_info, threadpool_limits

    from hetrisk.blocks.stream import single_blas_thread

    def threads():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = single_blas_thread(), single_blas_thread()
        first.__enter__()
        second.__enter__()
        assert set(threads()) == {1}
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before
    assert before


@pytest.mark.parametrize("place", ["parquet", "dask"])
def test_several_columns_of_labels_are_side_columns(tmp_path, place):
    frame = table(60).assign(when=np.arange(60.0) / 7, clinic=np.arange(60) % 5)
    names = ["place", "clinic"]
    if place == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
        source = ParquetBlocks(tmp_path, "y", NAMES, environments=names, aside="when")
    else:
        lazy = dd.from_pandas(frame, npartitions=3)
        source = DaskBlocks(lazy[NAMES], lazy["y"], environments=lazy[names], aside=lazy[["when"]])
    kinds = [(column.name, column.kind) for column in source.side_columns]
    assert kinds == [("when", "number"), ("place", "category"), ("clinic", "category")]
    held = np.vstack(list(source.map(lambda rows: rows.aside)))
    np.testing.assert_array_equal(held[:, 2], frame["clinic"])
    np.testing.assert_array_equal(held[:, 1], np.unique(frame["place"], return_inverse=True)[1])
    assert source.environment_labels is None
