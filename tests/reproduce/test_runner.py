"""Cases in parallel, resumable, and unharmed by a kill."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import joblib
import pytest
from dask.distributed import Client
from rich.console import Console

from hetrisk.reproduce.records import Records
from hetrisk.reproduce.runner import run, run_with_progress

from .made_up import cases, measure, tables

HERE = Path(__file__).parent


def counted(case, log):
    with log.open("a") as file:
        file.write(case.key + "\n")
    return measure(case)


def where(case):
    return {**measure(case), "pid": os.getpid(), "thread": threading.current_thread().name}


def test_every_case_is_run_once(tmp_path):
    log = tmp_path / "log"
    records = Records(tmp_path / "records.jsonl")
    assert run([*cases(), *cases()], records, 1, measure=partial(counted, log=log)) == 16
    assert run(cases(5), records, 1, measure=partial(counted, log=log)) == 4
    assert run(cases(5), records, 1, measure=partial(counted, log=log)) == 0
    assert len(log.read_text().splitlines()) == len(set(log.read_text().splitlines())) == 20


def test_processes_give_the_same_table(tmp_path):
    run(cases(), Records(tmp_path / "one.jsonl"), 1, measure=measure)
    run(cases(), Records(tmp_path / "two.jsonl"), 2, measure=measure)
    assert tables(tmp_path / "one.jsonl") == tables(tmp_path / "two.jsonl")


def test_the_parallel_backend_in_force_is_used(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        run(cases(), records, measure=where)
    found = records.read().values()
    assert {record["pid"] for record in found} == {os.getpid()}
    assert threading.current_thread().name not in {record["thread"] for record in found}


def on_worker(case):
    from distributed import get_worker

    return {**measure(case), "worker": get_worker().address}


def test_a_dask_cluster_takes_the_cases(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    in_process = {"processes": False, "n_workers": 1, "threads_per_worker": 2}
    with (
        Client(**in_process, dashboard_address="127.0.0.1:0") as client,
        joblib.parallel_config(backend="dask"),
    ):
        run(cases(), records, measure=on_worker)
        workers = set(client.scheduler_info()["workers"])
    assert {record["worker"] for record in records.read().values()} == workers
    assert len(records.read()) == 16


def test_watcher_sees_each_record_after_it_is_on_disk(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    seen = []

    def watch(record):
        seen.append(record["key"])
        assert record["key"] in records.read()

    run(cases(1), records, 1, watch, measure=measure)
    assert len(seen) == 4


def test_progress_counts_what_was_done_before(tmp_path):
    records = Records(tmp_path / "records.jsonl")
    run(cases(1), records, 1, measure=measure)
    with (tmp_path / "screen").open("w") as screen:
        run_with_progress(cases(2), records, 1, Console(file=screen, width=100))
    assert "8/8" in (tmp_path / "screen").read_text()
    assert "left" in (tmp_path / "screen").read_text()


SCRIPT = """
    import os, signal, sys
    sys.path.insert(0, {tests!r})
    from reproduce.made_up import cases, measure
    from hetrisk.reproduce import records as module
    from hetrisk.reproduce.runner import run

    whole = module._line
    written = 0

    def line(record):
        global written
        written += 1
        return whole(record)

    def die(record):
        if written == {after}:
            os.kill(os.getpid(), signal.SIGKILL)

    module._line = line
    if {half}:
        def cut(record):
            data = line(record)
            if written == {after} + 1:
                with open({path!r}, "ab") as file:
                    file.write(data[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return data
        module._line = cut
        die = None
    run(cases(), module.Records({path!r}), 1, die, measure=measure)
"""


@pytest.mark.parametrize(("after", "half"), [(1, False), (9, True)])
def test_a_killed_run_goes_on_to_the_same_table(tmp_path, after, half):
    undisturbed = tmp_path / "undisturbed.jsonl"
    run(cases(), Records(undisturbed), 1, measure=measure)
    path = tmp_path / "records.jsonl"
    script = SCRIPT.format(tests=str(HERE.parent), after=after, half=half, path=str(path))
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert path.read_bytes().endswith(b"\n") is not half
    log = tmp_path / "log"
    run(cases(), Records(path), 1, measure=partial(counted, log=log))
    assert len(log.read_text().splitlines()) == 16 - after  # none lost but the one in flight
    assert len(path.read_text().splitlines()) == 16  # and none repeated
    assert tables(path) == tables(undisturbed)


def test_real_cases_killed_in_mid_fit_give_the_same_errors(tmp_path):
    """The same with real fits, processes and a kill from outside while a case is in flight."""
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(HERE.parent)!r})
        from reproduce.made_up import SETTING
        from hetrisk.reproduce.cases import grid
        from hetrisk.reproduce.evaluation import evaluate
        from hetrisk.reproduce.records import Records
        from hetrisk.reproduce.runner import run

        def fatal(case):
            if case.seed == 1 and case.method == "irm":
                os.kill(os.getpid(), signal.SIGKILL)
            return evaluate(case)

        run(grid("selection_bias", [SETTING], range(2), ("mean", "erm", "irm", "oracle")),
            Records({str(tmp_path / "records.jsonl")!r}), 1, measure=fatal)
    """
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    from hetrisk.reproduce.cases import grid

    from .made_up import SETTING

    all_cases = grid("selection_bias", [SETTING], range(2), ("mean", "erm", "irm", "oracle"))
    records = Records(tmp_path / "records.jsonl")
    assert len(records.read()) == 6
    assert run(all_cases, records, 2) == 2
    fresh = Records(tmp_path / "fresh.jsonl")
    run(all_cases, fresh, 1)
    assert tables(records.path, 2) == tables(fresh.path, 2)
