"""The process around a command: signals, streams, and outputs that must not destroy anything."""

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from hetrisk import atomic
from hetrisk.cli.process import Terminated, ending_on_signals

from .conftest import frame, run


@pytest.fixture
def parts(tmp_path):
    """A folder of Parquet files."""
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(2):
        frame(i).to_parquet(folder / f"part-{i:03}.parquet")
    return folder


@pytest.mark.parametrize("out", ["part-000.parquet", "new.parquet", "below/new.csv", "../link"])
def test_an_output_among_the_inputs_is_refused(out, parts, workshop):
    (parts / "below").mkdir()
    (parts.parent / "link").symlink_to(parts / "part-001.parquet")
    before = {path: path.read_bytes() for path in sorted(parts.glob("*.parquet"))}
    for command in (("predict", workshop / "y.hetrisk", parts), ("fit", parts, "--target", "y")):
        result = run(*command, "--out", parts / out)
        assert result.exit_code == 2
        assert "among the data" in result.stderr or "overwrite the data" in result.stderr
    assert {path: path.read_bytes() for path in sorted(parts.glob("*.parquet"))} == before


def test_a_second_name_of_an_input_is_refused(parts, workshop, tmp_path):
    os.link(parts / "part-000.parquet", tmp_path / "other.parquet")
    result = run("predict", workshop / "y.hetrisk", parts, "--out", tmp_path / "other.parquet")
    assert result.exit_code == 2
    assert "overwrite the data" in result.stderr


def test_two_outputs_with_one_name_are_refused(workshop, tmp_path):
    (tmp_path / "folder").mkdir()
    out, report = tmp_path / "x", tmp_path / "folder" / ".." / "x"
    result = run("fit", workshop / "table.csv", "-t", "y", "--out", out, "--report", report)
    assert result.exit_code == 2
    assert "--out writes the same file" in result.stderr
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("label", ["prediction", "probability of high"])
def test_an_id_column_must_not_be_called_as_a_prediction_is(label, workshop, tmp_path):
    frame().rename(columns={"key": label}).to_csv(tmp_path / "t.csv", index=False)
    arguments = ("predict", workshop / "label.hetrisk", tmp_path / "t.csv", "--probabilities")
    result = run(*arguments, "--id", label)
    assert result.exit_code == 1
    assert f"'{label}' is what a column of the predictions is called" in result.stderr


def test_links_in_a_circle_are_a_sentence(workshop, tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for arguments in (
        ("fit", tmp_path / "a", "-t", "y"),
        ("fit", workshop / "table.csv", "-t", "y", "--out", tmp_path / "a"),
        ("predict", tmp_path / "a", workshop / "table.csv"),
    ):
        result = run(*arguments)
        assert result.exit_code in (1, 2)
        assert "unforeseen" not in result.stderr
        assert "'a'" in result.stderr or str(tmp_path / "a") in result.stderr


def test_stopped_says_what_was_written(workshop, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hetrisk.cli.summary.show", interrupted)
    out, report = tmp_path / "m.hetrisk", tmp_path / "m.html"
    result = run("fit", workshop / "table.csv", "-t", "y", "--out", out, "--report", report)
    assert result.exit_code == 130
    assert result.stderr.strip() == "Stopped. Already written: 'm.hetrisk', 'm.html'."


def test_a_file_without_space_is_named(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        atomic.write_bytes(tmp_path / "f", b"data")
    assert error.value.filename == str(tmp_path / "f")


def _ended_twice():
    with ending_on_signals():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # does not stop the cleaning up


def test_a_signal_to_end_is_raised_once_and_the_old_way_returns():
    with pytest.raises(Terminated) as ended:
        _ended_twice()
    assert ended.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


WRITES_SLOWLY = """
import sys, time
from hetrisk import atomic
from hetrisk.cli import app
from hetrisk.cli import predictions as home

def slow(predictions, out):
    with atomic.replacing(out) as temporary:
        temporary.write_bytes(b"x" * 1000)
        print("writing", flush=True)
        time.sleep(60)

home.write_predictions = slow
app.cli(sys.argv[1:], prog_name="hetrisk")
"""


def _listening():
    """Hear signals as a program in a terminal does: in the background some are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_no_part_of_a_file(number, workshop, tmp_path):
    out = tmp_path / "p.csv"
    out.write_bytes(b"old")
    arguments = ("predict", workshop / "y.hetrisk", workshop / "table.csv", "--out", out)
    with subprocess.Popen(
        [sys.executable, "-c", WRITES_SLOWLY, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listening,
    ) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert stderr.strip() == "Stopped. No file was changed."
    assert process.returncode == 128 + number
    assert out.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["p.csv"]


CASES_FOR_EVER = """
import os, time
from pathlib import Path
from types import SimpleNamespace

def measure(case):
    Path(os.environ["WHERE"], f"worker-{os.getpid()}").touch()
    time.sleep(120)

if __name__ == "__main__":
    from hetrisk.cli.process import ending_on_signals
    from hetrisk.reproduce import runner
    from hetrisk.reproduce.records import Records

    folder = Path(os.environ["WHERE"])
    cases = [SimpleNamespace(key=str(seed)) for seed in range(4)]
    with ending_on_signals():
        runner.run(cases, Records(folder / "records.jsonl"), jobs=2, measure=measure)
"""


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes in /proc")
def test_a_signal_to_end_ends_the_workers_too(tmp_path):
    script = tmp_path / "cases.py"
    script.write_text(CASES_FOR_EVER)
    with subprocess.Popen(
        [sys.executable, script],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "WHERE": str(tmp_path)},
    ) as process:
        end = time.monotonic() + 60
        while len(workers := list(tmp_path.glob("worker-*"))) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    pids = [int(path.name.removeprefix("worker-")) for path in workers]
    assert len(pids) == 2
    end = time.monotonic() + 20
    while any(map(_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(_alive, pids))


def test_a_terminal_that_is_not_utf_8_gets_codes():
    code = (
        "from hetrisk.cli.process import prepare_streams\n"
        "from hetrisk.cli.terminal import console\n"
        "prepare_streams(); console().print('5 – ∞')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        check=False,
    )
    assert done.stdout.split() == [b"5", b"\\u2013", b"\\u221e"]


def test_a_closed_output_is_a_sentence(workshop):
    command = f"{sys.executable} -m hetrisk.cli predict {workshop}/y.hetrisk {workshop}/table.csv"
    done = subprocess.run(
        ["bash", "-c", f"{command} >&-"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "Error: there is no standard output to write to: it is closed\n"


def test_ctrl_c_while_the_libraries_load_is_quiet():
    code = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def stopped(name, *rest, **more):\n"
        "    if name == 'click': raise KeyboardInterrupt\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = stopped\n"
        "from hetrisk.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "Stopped. No file was changed.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        (("--candidate", "tree\x1b"), 2, r"tree\x1b"),
        (("--encoding", "nonsense"), 2, "'nonsense' is not an encoding"),
        (("--encoding", "hex"), 2, "'hex' is not an encoding"),
        (("--encoding", "utf-8\x00"), 2, "is not an encoding"),
        (("--\x1b[31mred",), 2, r"--\x1b[31mred"),
        (("--task", "a\u200b"), 2, r"a\u200b"),
        (("--reach", "inf"), 2, "inf is not in the range"),
        (("--reach", "nan"), 1, "must be a float in the range"),
    ],
)
def test_what_a_user_mistypes_is_no_fault_of_ours(arguments, code, match, workshop):
    result = run("fit", workshop / "table.csv", "-t", "y", *arguments)
    assert result.exit_code == code
    assert match in result.stderr
    assert "unforeseen" not in result.stderr
    assert "\x1b" not in result.stderr


def test_an_encrypted_archive_is_a_sentence(workshop, tmp_path):
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("table.csv", "a,b\n1,2\n")
    data = bytearray(buffer.getvalue())
    data[6] |= 1  # the flag of encryption, in both headers
    data[data.index(b"PK\x01\x02") + 8] |= 1
    for name in ("t.zip", "t.csv"):
        (tmp_path / name).write_bytes(data)
        for arguments in (
            ("fit", tmp_path / name, "-t", "b"),
            ("predict", tmp_path / name, workshop / "table.csv"),
        ):
            result = run(*arguments)
            assert result.exit_code == 1
            assert f"'{name}'" in result.stderr
            assert "unforeseen" not in result.stderr


@pytest.mark.parametrize("top", [100, 1 << 63, (1 << 64) - 1])
def test_numbers_without_a_sign_can_be_targets(top, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    table["y"] = rng.integers(0, top, 80, dtype=np.uint64, endpoint=True)
    table.to_parquet(tmp_path / "t.parquet")
    result = run("fit", tmp_path / "t.parquet", "-t", "y")
    assert "unforeseen" not in result.stderr
    assert result.exit_code == 0, result.stderr


def test_names_that_differ_by_what_cannot_be_seen_are_told_apart(tmp_path):
    table = frame()[["a", "b", "y"]].rename(columns={"b": "a\u200b"})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "-t", "nope")
    assert r"'a', 'a\u200b', 'y'" in result.stderr


def test_a_model_of_a_later_version_says_so(workshop, tmp_path, monkeypatch):
    import hetrisk as package
    from hetrisk import modelfile

    model = modelfile.load(workshop / "y.hetrisk")
    monkeypatch.setattr(package, "__version__", "99.0")
    modelfile.save(tmp_path / "m.hetrisk", model)
    monkeypatch.undo()
    result = run("predict", tmp_path / "m.hetrisk", workshop / "table.csv")
    assert result.exit_code == 0
    assert "Note: the model was written by hetrisk '99.0', later than this version" in result.stderr


def test_text_that_does_not_begin_as_its_encoding_must_is_a_sentence(workshop):
    result = run("fit", workshop / "table.csv", "-t", "y", "--encoding", "utf-16")
    assert result.exit_code == 1
    assert "'table.csv' is not utf-16" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_a_library_turns_into_another_error_is_still_one(
    number, workshop, monkeypatch
):
    def loading(*arguments, **options):
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        except KeyboardInterrupt:
            # From here on nothing more can be imported.
            monkeypatch.setitem(sys.modules, "hetrisk.tables.errors", None)
            raise RecursionError("half loaded") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("hetrisk.cli.fitting.fit_table", loading)
    try:
        result = run("fit", workshop / "table.csv", "-t", "y")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.stderr.endswith("Stopped. No file was changed.\n")
    assert result.exit_code == 128 + number
