"""The benchmark's own arithmetic: metrics, pages, the guard, and every case at a tiny size."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from hetrisk.bench import (
    CASES,
    Metric,
    Run,
    Size,
    backends,
    clock,
    cluster,
    constants,
    fits,
    footprint,
    gates,
    iteration,
    others,
    run_suite,
)
from hetrisk.bench.adapters import YARDSTICKS, Flexmix, Missing
from hetrisk.bench.adapters import flexmix as flexmix_adapter
from hetrisk.bench.baseline import compare, sentences
from hetrisk.bench.isolation import isolated, peak_bytes, resident_bytes
from hetrisk.bench.page import target, value, write_benchmarks
from hetrisk.bench.rows import chunks, table, true_mixture, write_parquet
from hetrisk.bench.scale import estimate, scale_page
from hetrisk.blocks import ArrayBlocks, ParquetBlocks
from hetrisk.cli.bench import bench
from hetrisk.core.numerics.moments import moments

TINY = Size(
    quick=True,
    rows=3000,
    rows_path=(1000, 2000),
    features=4,
    features_path=(3, 6),
    parquet_rows=3000,
    throughput_rows=3000,
    dask_rows=1600,
    backend_rows=1000,
    wide_features=12,
    repeats=1,
)
CONSTANTS = {
    "features": 20.0,
    "sent_bytes": 1000.0,
    "received_bytes": 12_000.0,
    "row_ns": 400.0,
    "task_ms": 0.5,
    "read_bytes_per_second": 5e8,
    "fit_passes": 12.0,
}


def run_of(*metrics: Metric, **fields) -> Run:
    machine = {"processor": "p", "machine": "m", "cores": 2, "system": "s", "memory_gb": 8.0}
    return Run(metrics, machine, {"python": "3"}, 60.0, True, **fields)


# Metrics and runs


@pytest.mark.parametrize(
    ("metric", "met"),
    [
        (Metric("c", "n", 1.9, bound=2.0), True),
        (Metric("c", "n", 2.1, bound=2.0), False),
        (Metric("c", "n", 0.5, bound=0.4, sense="at least"), True),
        (Metric("c", "n", 0.3, bound=0.4, sense="at least"), False),
        (Metric("c", "n", 0.3), None),
        (Metric("c", "n", math.nan, bound=1.0), None),
    ],
)
def test_targets(metric, met):
    assert metric.met is met


def test_a_run_survives_its_file(tmp_path):
    run = run_of(Metric("c", "a", 1.5, bound=2.0), Metric("c", "b", math.nan, note="missing: R"))
    run.save(tmp_path / "run.json")
    json.loads((tmp_path / "run.json").read_text(), parse_constant=lambda text: pytest.fail(text))
    again = Run.load(tmp_path / "run.json")
    assert again.metrics[0] == run.metrics[0]
    assert math.isnan(again.metrics[1].value)
    assert again.machine == run.machine


def test_shortest_takes_turns():
    order = []
    times = clock.shortest({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert set(times) == {"a", "b"}


# The guard


def test_the_guard_names_what_got_slower():
    before = run_of(
        Metric("c", "ratio", 1.0, guarded=True),
        Metric("c", "throughput", 0.8, sense="at least", guarded=True),
        Metric("c", "steady", 2.0, guarded=True),
        Metric("c", "seconds", 1.0, "s"),
        Metric("c", "gone", 1.0, guarded=True),
    )
    now = run_of(
        Metric("c", "ratio", 1.5, guarded=True),
        Metric("c", "throughput", 0.4, sense="at least", guarded=True),
        Metric("c", "steady", 2.2, guarded=True),
        Metric("c", "seconds", 99.0, "s"),
    )
    told = sentences(compare(now, before))
    assert told == [
        "ratio: was 1, now 1.5 (+50% for the worse).",
        "throughput: was 0.8, now 0.4 (+100% for the worse).",
        "gone: was 1, now not measured.",
    ]
    assert sentences(compare(before, before)) == []


def test_the_guard_compares_runs_of_one_size():
    run = run_of()
    with pytest.raises(ValueError, match="the baseline is full and the run quick"):
        compare(run, replace(run, quick=False))


# Pages


def test_values_and_targets_as_text():
    assert value(Metric("c", "n", 12345.6, "ms")) == "12,346 ms"
    assert value(Metric("c", "n", math.nan)) == "not measured"
    assert target(Metric("c", "n", 1.0, "GB", bound=1.0)) == "≤ 1 GB"
    assert target(Metric("c", "n", 1.0, bound=0.4, sense="at least")) == "≥ 0.4"
    assert target(Metric("c", "n", 1.0)) == ""


def test_the_page_says_what_is_met_and_what_is_not(tmp_path):
    series = {
        "by_rows": {"rows": [1e5, 1e6], "ns_per_row": [400.0, 410.0]},
        "by_features": {"features": [20, 40], "ns_per_row": [400.0, 900.0]},
    }
    run = run_of(
        Metric("iteration", "good", 1.0, bound=2.0),
        Metric("iteration", "bad", 3.0, bound=2.0, note="a | b"),
        Metric("others", "flexmix", math.nan, note="missing: R"),
        series=series,
    )
    page = write_benchmarks(run, tmp_path).read_text()
    assert "| good | 1 | ≤ 2 | yes |  |" in page
    assert "| bad | 3 | ≤ 2 | **no** | a / b |" in page
    assert "| flexmix | not measured |  |  | missing: R |" in page
    assert "quick sizes" in page
    assert (tmp_path / "benchmarks.svg").read_text().startswith("<?xml")


def test_scale_by_hand():
    e = estimate(1e11, CONSTANTS)
    assert e.data == 168e11
    assert not e.held
    assert e.read == 168e9
    assert e.read_seconds == pytest.approx(336.0)
    assert e.compute_seconds == pytest.approx(400.0)
    assert e.tasks == pytest.approx(50_000 * 8 / 7)
    assert e.slowest == "computing"
    assert e.seconds == pytest.approx(736.0)
    assert estimate(1e9, CONSTANTS).held
    page = scale_page(CONSTANTS)
    assert "| rows in all | 168 GB | 16.8 TB |" in page
    assert "{" not in page


# Rows and processes


def test_rows_are_the_same_in_memory_and_in_parquet(tmp_path):
    X, y = table(500, 3)
    source = ParquetBlocks(write_parquet(tmp_path, 500, 3), target="y")
    rows = source.sample(500, 0)
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)
    assert not np.array_equal(next(chunks(500, 3, part=1))[0], X)


def test_rows_follow_their_mixture():
    X, y = table(20_000, 4)
    share = true_mixture(4).responsibilities(X, y).mean(axis=0)
    np.testing.assert_allclose(share, [0.6, 0.3, 0.1], atol=0.02)


def hold(megabytes: int) -> dict[str, int]:
    before = resident_bytes()
    held = np.ones(megabytes << 17)
    return {"peak": peak_bytes() - before, "held": int(held.nbytes)}


def test_the_peak_of_a_process_is_its_own():
    record = isolated(footprint.iterate_in_memory, n=2000, d=3)
    assert record["input"] == 2000 * 4 * 8
    assert hold(64)["peak"] >= 60 << 20


def test_a_failure_in_another_process_is_told():
    with pytest.raises(RuntimeError, match=r"fit_parquet failed: .*nothing at"):
        isolated(footprint.fit_parquet, folder="/nowhere/at/all")


def test_passes_are_counted():
    X, y = table(1000, 3)
    counted = iteration.CountedPasses(ArrayBlocks(X, y))
    counted.sum(moments)
    counted.sum(moments)
    assert counted.passes == 2
    assert (counted.n_rows, counted.n_features, len(counted.sample(5, 0))) == (1000, 3, 5)
    assert iteration.climb(ArrayBlocks(X, y), iteration.away_from(true_mixture(3)), 3) >= 4


# Every case, small


@pytest.mark.parametrize(
    "function",
    [
        iteration.gram_ratio,
        iteration.by_rows,
        iteration.by_features,
        fits.small_fits,
        fits.long_fit,
        fits.wide_fit,
        backends.same_answer,
        footprint.throughput,
        others.yardsticks,
    ],
)
def test_cases_measure_something(function):
    found = function(TINY)
    metrics = found[0] if isinstance(found, tuple) else found
    assert metrics
    for metric in metrics:
        # A busy machine may hide the difference of two short runs: said, and no failure.
        assert math.isfinite(metric.value) or metric.note.startswith("missing: the machine")
        assert metric.case in CASES
        assert metric.note


def test_the_three_homes_agree():
    gap, same = backends.same_answer(TINY)
    assert gap.met
    assert same.met


def test_a_default_fit_makes_few_passes():
    assert constants.fit_passes(40_000, 4) <= 60


def test_gates_from_moments(monkeypatch):
    monkeypatch.setattr(gates, "ROWS", (400, 800))
    monkeypatch.setattr(gates, "DRAWS", 1)
    (metric,) = gates.gate_optimisation(TINY)
    assert metric.value > 0


def test_every_case_names_functions_that_exist():
    modules = {m.__name__.rsplit(".")[-1]: m for m in (iteration, fits, gates, backends, footprint)}
    modules |= {"cluster": cluster, "others": others, "constants": constants}
    for case in CASES.values():
        for function in case.functions:
            module, name = function.split(".")
            assert callable(getattr(modules[module], name))


def test_a_case_that_fails_is_told_and_the_run_goes_on(monkeypatch):
    def broken(size):
        raise RuntimeError("no room")

    monkeypatch.setattr(backends, "same_answer", broken)
    monkeypatch.setattr(others, "flexmix", lambda size: [Metric("others", "fine", 1.0)])
    monkeypatch.setattr(others, "yardsticks", lambda size: [])
    heard = []
    run = run_suite(TINY, ["backends", "others"], report=heard.append)
    assert [m.name for m in run.metrics] == ["same answer", "fine"]
    assert run.metrics[0].note == "failed: RuntimeError: no room"
    assert heard == list(run.metrics)
    assert run.versions["numpy"] == np.__version__


def test_unknown_case():
    with pytest.raises(ValueError, match=r"cases must be among backends, .*; got 'speed'"):
        run_suite(TINY, ["speed"])


# Other libraries


def test_a_missing_library_is_reported_as_missing(monkeypatch):
    monkeypatch.setattr(flexmix_adapter.shutil, "which", lambda name: None)
    (metric,) = others.flexmix(TINY)
    assert math.isnan(metric.value)
    assert metric.note.startswith("missing: Rscript is not installed")

    class Absent(type(YARDSTICKS[0])):
        def version(self):
            raise Missing("not here")

    monkeypatch.setattr(others, "YARDSTICKS", (Absent(),))
    (metric,) = others.yardsticks(TINY)
    assert metric.note == "missing: not here"


def test_flexmix_agrees(monkeypatch):
    try:
        Flexmix().version()
    except Missing as missing:
        pytest.skip(str(missing))
    monkeypatch.setattr(others, "FLEXMIX_ROWS", 4000)
    time, gap = others.flexmix(TINY)
    assert "flexmix" in time.note
    assert gap.value < 1e-5


# The command


def test_the_command(tmp_path, monkeypatch):
    record = [Metric("backends", "ratio", 1.0, bound=2.0, guarded=True)]
    monkeypatch.setattr(backends, "same_answer", lambda size: record)
    run = CliRunner().invoke(
        bench, ["--quick", "--only", "backends", "--save", str(tmp_path / "b.json")]
    )
    assert run.exit_code == 0
    assert "ratio" in run.output
    record[0] = replace(record[0], value=1.9)
    again = ["--quick", "--only", "backends", "--check", str(tmp_path / "b.json")]
    slower = CliRunner().invoke(bench, again)
    assert slower.exit_code == 1
    assert "Slower: ratio: was 1, now 1.9 (+90% for the worse)." in slower.output
    wrong = CliRunner().invoke(bench, again[1:])
    assert wrong.exit_code == 2
    assert "a baseline of the same size" in wrong.output


def test_the_command_writes_the_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "measured_constants", lambda size: ([], CONSTANTS))
    done = CliRunner().invoke(
        bench, ["--quick", "--only", "constants", "--docs", str(tmp_path / "docs")]
    )
    assert done.exit_code == 0
    assert {p.name for p in (tmp_path / "docs").iterdir()} == {"benchmarks.md", "scale.md"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metrics": [1]}', '{"metrics": [{}]}'])
def test_a_baseline_that_is_none(text, tmp_path):
    (tmp_path / "b.json").write_text(text)
    refused = CliRunner().invoke(bench, ["--check", str(tmp_path / "b.json")])
    assert refused.exit_code == 2
    assert "is not a run that --save wrote" in refused.output


def test_the_command_lists_and_refuses():
    listed = CliRunner().invoke(bench, ["--list"])
    assert [line.split()[0] for line in listed.output.splitlines()] == list(CASES)
    refused = CliRunner().invoke(bench, ["--only", "speed"])
    assert refused.exit_code == 2
    assert "'speed' is not a case" in refused.output


@pytest.mark.parametrize("library", ["dask", "distributed", "pyarrow"])
def test_a_case_a_plain_installation_cannot_run_says_what_to_install(monkeypatch, library):
    def absent(size):
        raise ModuleNotFoundError(f"No module named '{library}'", name=f"{library}.array")

    monkeypatch.setattr("hetrisk.bench.backends.same_answer", absent)
    (metric,) = run_suite(Size.small(), ["backends"]).metrics
    assert metric.note.startswith(f"not run: needs {library}, pip install 'hetrisk[")
    assert "failed" not in metric.note


def test_the_suite_says_how_much_is_done(monkeypatch):
    for function in ("gram_ratio", "by_rows", "by_features"):
        monkeypatch.setattr(f"hetrisk.bench.iteration.{function}", lambda size: [])
    told = []
    run_suite(Size.small(), ["iteration"], starting=lambda title, done: told.append(done))
    assert told == [0, 1 / 3, 2 / 3]
