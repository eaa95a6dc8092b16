"""A table of bad inputs: one sentence each, no traceback, nothing lost, nothing half-written."""

import contextlib
import gzip
import os
import pickle
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from .conftest import frame, run

N = 30


def table(**columns):
    """A small sound table, with columns replaced or added; None removes one."""
    rng = np.random.default_rng(0)
    base = {"a": rng.normal(size=N), "b": rng.normal(size=N), "y": rng.normal(size=N)}
    base.update(columns)
    return pd.DataFrame({name: values for name, values in base.items() if values is not None})


def csv(**columns):
    return table(**columns).to_csv(index=False).encode()


ONE = [0.0] * 3 + [2.0] + [0.0] * (N - 4)
FIT = ("fit", "{data}", "--target", "y", "--out", "{out}")

# name: (content of the data file, arguments, exit code, what the error must say)
FIT_CASES = {
    "one row with weight": (
        csv(w=ONE),
        (*FIT, "--weight", "w"),
        1,
        "two of them positive at least",
    ),
    "one label with weight": (
        csv(w=ONE, y=["p", "q", "r"] * 10),
        (*FIT, "--weight", "w"),
        1,
        "two of them positive at least; 1 of them are",
    ),
    "empty file": (b"", FIT, 1, "'data.csv' is empty"),
    "blank lines": (b"\n\n\n", FIT, 1, "only one column"),
    "header only": (b"a,b,y\n", FIT, 1, "column names but no rows"),
    "one row": (b"a,b,y\n1,2,3\n", FIT, 1, "nothing to predict|at least 10"),
    "three rows": (b"a,b,y\n1,2,3\n2,3,4.5\n3,1,5.5\n", FIT, 1, "3 rows; at least 10"),
    "duplicate columns": (b"a,a,y\n1,2,3\n", FIT, 1, "more than one column named 'a'"),
    "unnamed columns": (b",,y\n1,2,3\n", FIT, 1, "more than one column named ''"),
    "one column": (b"y\n1\n2\n", FIT, 1, "only one column"),
    "strange delimiter": (csv().replace(b",", b"^"), FIT, 1, "say which with --delimiter"),
    "wrong delimiter given": (csv(), (*FIT, "--delimiter", ";"), 2, "no column 'y'"),
    "long delimiter": (csv(), (*FIT, "--delimiter", "::"), 2, "one character is needed"),
    "ragged line": (csv() + b"1,2\n", FIT, 1, "line 32: 2 fields where the header has 3"),
    "long line": (csv() + b"1,2,3,4\n", FIT, 1, "line 32: 4 fields where the header has 3"),
    "open quote": (csv() + b'1,"2,3\n', FIT, 1, "quotation mark is opened and never closed"),
    "text after quote": (csv() + b'1,"2"2,3\n', FIT, 1, "text follows a closing quotation mark"),
    "latin-1": (b"a,y\ncaf\xe9,1\n", FIT, 1, "byte 0xe9 is not utf-8; .*say --encoding latin-1"),
    "unknown encoding": (csv(), (*FIT, "--encoding", "klingon"), 2, "'klingon' is not an encoding"),
    "nul bytes": (b"a,y\n1,2\n\x00,3\n", FIT, 1, "line 3 holds a NUL byte"),
    "random bytes": (np.random.default_rng(0).bytes(500), FIT, 1, "NUL byte|is not utf-8"),
    "zip archive": (b"PK\x03\x04" + b"x" * 50, FIT, 1, "is not a readable zip archive"),
    "pickle": (pickle.dumps(table()), FIT, 1, "is a pickle"),
    "xz": (b"\xfd7zXZ\x00" + b"x" * 50, FIT, 1, "only gzip is read"),
    "truncated gzip": (gzip.compress(csv())[:-20], FIT, 1, "truncated gzip"),
    "false parquet": (b"PAR1" + b"x" * 50 + b"PAR1", FIT, 1, "not a readable Parquet file"),
    "target not there": (csv(y=None), FIT, 2, "no column 'y'; the columns are 'a', 'b'"),
    "target missing": (csv(y=[""] * N), FIT, 1, "every value of the target 'y' is missing"),
    "target constant": (csv(y=[7] * N), FIT, 1, "is 7 in every row: there is nothing to predict"),
    "target one class": (csv(y=["a"] * N), FIT, 1, "is 'a' in every row"),
    "class of one": (csv(y=["a", *["b"] * (N - 1)]), FIT, 1, "only one row of the class 'a'"),
    "two rows, a class each": (
        csv(y=["a", "b", *[""] * (N - 2)]),
        FIT,
        1,
        "only one row of the classes 'a', 'b'",
    ),
    "target mostly missing": (
        csv(y=[1.5, 2.5, 3.5, *[""] * (N - 3)]),
        FIT,
        1,
        "3 rows with a value of 'y'; at least 10",
    ),
    "target of names": (csv(y=[f"n{i}" for i in range(N)] * 1), FIT, 1, "only one row of the cl"),
    "target with a word": (
        csv(y=[*np.arange(N - 1) / 7, "oops"]),
        FIT,
        1,
        "holds numbers but also 'oops'",
    ),
    "target infinite": (csv(y=[*np.arange(N - 1) / 7, "inf"]), FIT, 1, "'inf' is not a finite"),
    "target 1e308": (csv(y=[*np.arange(N - 1) / 7, "1e308"]), FIT, 1, "not a finite number"),
    "target a date": (
        csv(y=pd.date_range("2020-01-01", periods=N)),
        FIT,
        1,
        "only one row|is a date",
    ),
    "regression on text": (
        csv(y=["a", "b"] * (N // 2)),
        (*FIT, "--task", "regression"),
        1,
        "row 1: 'a' is not a finite number",
    ),
    "features all missing": (csv(a=[""] * N, b=["NA"] * N), FIT, 1, "no column .*is left to learn"),
    "features constant": (csv(a=[1] * N, b=["x"] * N), FIT, 1, "constant: '1' in every row"),
    "features 1e308": (csv(a=["1e308", "2e308"] * 15, b=[1] * N), FIT, 1, "no value is a finite"),
    "only the target": (
        csv(),
        (*FIT, "-d", "a", "-d", "b"),
        1,
        "left to learn from beside the target",
    ),
    "unknown feature": (csv(), (*FIT, "--feature", "zz"), 2, "there is no column 'zz'"),
    "unknown drop": (csv(), (*FIT, "--drop", "zz"), 2, "there is no column 'zz'"),
    "unknown category": (csv(), (*FIT, "--category", "zz"), 2, "there is no column 'zz'"),
    "target as feature": (
        csv(),
        (*FIT, "--feature", "y"),
        1,
        "--feature names 'y', which is the target",
    ),
    "unknown environment": (csv(), (*FIT, "--environment", "zz"), 2, "there is no column 'zz'"),
    "no target said": (csv(), ("fit", "{data}"), 2, "Missing option '--target'"),
    "unknown task": (csv(), (*FIT, "--task", "magic"), 2, "is not one of 'auto'"),
    "unknown option": (csv(), (*FIT, "--nope"), 2, "No such option"),
    "reach not a number": (csv(), (*FIT, "--reach", "x"), 2, "not a valid float"),
    "no such file": (None, FIT, 1, "No such file or directory"),
    "output overwrites data": (csv(), (*FIT[:-1], "{data}"), 2, "it would overwrite the data"),
    "output is a folder": (csv(), (*FIT[:-1], "{folder}"), 2, "is a folder"),
    "output in no folder": (csv(), (*FIT[:-1], "{folder}/none/m.hetrisk"), 2, "there is no folder"),
    "report in no folder": (csv(), (*FIT, "--report", "{folder}/no/r.html"), 2, "is no folder"),
    "a device": (None, ("fit", "/dev/zero", "--target", "y"), 1, "not a regular file"),
    "empty folder": (None, ("fit", "{folder}/empty", "--target", "y"), 1, "without Parquet files"),
    "hostile name": (csv(), ("fit", "{data}", "--target", "\x1b[31m\n"), 2, r"'\\x1b\[31m\\n'"),
    "unknown command": (None, ("fitt",), 2, "No such command"),
}


def check(result, code, match, folder):
    """One sentence, the right exit code, no traceback, the old output untouched."""
    said = result.stderr
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert "unforeseen" not in result.output
    errors = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, said
    assert re.search(match, errors[0]), errors[0]
    assert "\x1b" not in said
    assert (folder / "old.hetrisk").read_bytes() == b"precious"
    assert not [name for name in os.listdir(folder) if name.endswith(".part")]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "old.hetrisk").write_bytes(b"precious")
    return tmp_path


def filled(arguments, folder):
    """Put paths in the places of their names."""
    places = {"data": folder / "data.csv", "out": folder / "old.hetrisk", "folder": folder}
    return [argument.format(**places) for argument in arguments]


@pytest.mark.parametrize("case", FIT_CASES)
def test_bad_input_to_fit(case, folder):
    content, arguments, code, match = FIT_CASES[case]
    if content is not None:
        (folder / "data.csv").write_bytes(content)
    result = run(*filled(arguments, folder))
    check(result, code, match, folder)
    if content is not None:
        assert (folder / "data.csv").read_bytes() == content


PREDICT = ("predict", "{model}", "{data}", "--out", "{out}")

# name: (change to the table, arguments, exit code, what the error must say)
PREDICT_CASES = {
    "missing column": (lambda f: f.drop(columns="a"), PREDICT, 1, "lacks the column 'a'"),
    "text for a number": (
        lambda f: f.assign(a=["oops", *f.a[1:]]),
        PREDICT,
        1,
        "column 'a', row 1: 'oops' is not a number",
    ),
    "no rows": (lambda f: f.iloc[:0], PREDICT, 1, "column names but no rows"),
    "unknown id": (lambda f: f, (*PREDICT, "--id", "zz"), 2, "no column 'zz'"),
    "probabilities of numbers": (
        lambda f: f,
        (*PREDICT, "--probabilities"),
        2,
        "this one predicts numbers",
    ),
    "out is the model": (
        lambda f: f,
        ("predict", "{model}", "{data}", "--out", "{model}"),
        2,
        "would overwrite",
    ),
    "data for a model": (lambda f: f, ("predict", "{data}", "{data}"), 1, "not a hetrisk model"),
    "no model": (lambda f: f, ("predict", "{folder}/no.hetrisk", "{data}"), 1, "No such file"),
    "model is a folder": (lambda f: f, ("predict", "{folder}", "{data}"), 1, "Is a directory"),
    "check, foreign class": (
        lambda f: f.assign(label="medium"),
        ("check", "{labels}", "{data}", "--report", "{folder}/r.html"),
        1,
        "classes the model does not know: 'medium'",
    ),
}


@pytest.mark.parametrize("case", PREDICT_CASES)
def test_bad_input_to_predict_and_report(case, folder, workshop):
    change, arguments, code, match = PREDICT_CASES[case]
    for name in ("y", "label"):
        shutil.copy(workshop / f"{name}.hetrisk", folder / f"{name}.hetrisk")
    model = (folder / "y.hetrisk").read_bytes()
    change(frame()).to_csv(folder / "data.csv", index=False)
    places = {
        "{model}": folder / "y.hetrisk",
        "{labels}": folder / "label.hetrisk",
        "{data}": folder / "data.csv",
        "{out}": folder / "old.hetrisk",
    }
    filled_in = [str(places.get(a, a.replace("{folder}", str(folder)))) for a in arguments]
    check(run(*filled_in), code, match, folder)
    assert (folder / "y.hetrisk").read_bytes() == model
    assert not (folder / "r.html").exists()


@pytest.mark.parametrize("content", [b"\x80\x04\x95", b"PK\x03\x04half", b"", b"\x00" * 99])
def test_model_files_that_are_not(content, folder, workshop):
    (folder / "bad.hetrisk").write_bytes(content)
    result = run("predict", folder / "bad.hetrisk", workshop / "table.csv")
    check(result, 1, "'bad.hetrisk' is ", folder)


@contextlib.contextmanager
def nobody():
    """Give up the right to open everything, where the tests run with it."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_without_permission(folder, workshop):
    path = folder / "data.csv"
    path.write_bytes(csv())
    path.chmod(0)
    run("fit", workshop / "table.csv", "--target", "nope")  # what is imported late, is now
    with nobody():
        result = run("fit", path, "--target", "y")
    check(result, 1, "Permission denied", folder)


def test_a_folder_without_permission(folder, workshop):
    run("fit", workshop / "table.csv", "--target", "nope")
    with nobody():
        result = run("fit", folder / "data.csv", "--target", "y", "--out", "/proc/1/m.hetrisk")
    check(result, 1, "no permission to write in this folder|Permission denied", folder)


# The limit on the size of files stands in for a full disk: it fails in the middle of a write.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from hetrisk.cli.app import cli
cli(sys.argv[1:], prog_name="hetrisk")
"""


@pytest.mark.parametrize("command", ["fit", "predict", "report"])
def test_a_full_disk_leaves_the_old_file(command, folder, workshop):
    out = folder / "old.hetrisk"
    arguments = {
        "fit": ("fit", workshop / "table.csv", "--target", "y", "--out", out),
        "predict": ("predict", workshop / "y.hetrisk", workshop / "table.csv", "--out", out),
        "report": ("report", workshop / "y.hetrisk", "--out", out, "--force"),
    }[command]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert f"Error: {out}: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert out.read_bytes() == b"precious"
    assert sorted(os.listdir(folder)) == ["empty", "old.hetrisk"]


def test_a_device_without_space(folder, workshop):
    result = run("predict", workshop / "y.hetrisk", workshop / "table.csv", "--out", "/dev/full")
    check(result, 1, "No space left on device", folder)
    assert os.path.exists("/dev/full")


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("kind", ["map", "struct", "list"])
def test_a_column_of_things_is_not_copied(workshop, tmp_path, kind, out):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {
        "map": ([("k", 1)], pa.map_(pa.string(), pa.int64())),
        "struct": ({"k": 1}, pa.struct([("k", pa.int64())])),
        "list": ([1, 2], pa.list_(pa.int64())),
    }
    value, held = kinds[kind]
    table = pa.Table.from_pandas(frame())
    table = table.append_column("things", pa.array([value] * len(table), held))
    pq.write_table(table, tmp_path / "t.parquet")
    result = run(
        *("predict", workshop / "y.hetrisk", tmp_path / "t.parquet", "--id", "things"),
        *("--out", tmp_path / out),
    )
    assert result.exit_code == 1
    assert "column 'things' does not hold single values to copy" in result.output
    assert not (tmp_path / out).exists()
