"""The command line as a whole: help, the demo, progress, faults, and text a terminal can show."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hetrisk.cli import app, terminal
from hetrisk.cli.app import cli
from hetrisk.report.stored import plain_record

from .conftest import frame, run


def test_help_lists_the_commands_without_importing_them():
    code = (
        "import sys; from hetrisk.cli.app import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'rich', 'skops'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in app.COMMANDS:
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_explains_itself_with_examples(name):
    result = run(name, "--help")
    assert result.exit_code == 0, result.output
    assert f"hetrisk {name}" in result.output.split("Examples:")[1]
    assert "--debug" in result.output


def test_version_and_no_arguments():
    assert run("--version").output.startswith("hetrisk, version ")
    assert "Usage: hetrisk" in run().output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    complete = kind(cli, {}, "hetrisk", "_HETRISK_COMPLETE")
    assert "_HETRISK_COMPLETE" in complete.source()
    assert {item.value for item in complete.get_completions([], "")} == set(app.COMMANDS)
    options = {item.value for item in complete.get_completions(["fit"], "--")}
    assert {"--target", "--out", "--report"} <= options
    tasks = [item.value for item in complete.get_completions(["fit", "--task"], "")]
    assert tasks == ["auto", "regression", "classification"]


def test_debug_shows_the_traceback(tmp_path):
    (tmp_path / "t.csv").write_text("")
    for arguments in (
        ("--debug", "fit", tmp_path / "t.csv", "-t", "y"),
        ("fit", tmp_path / "t.csv", "-t", "y", "--debug"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert result.stderr.rstrip().endswith("Error: 't.csv' is empty")


def test_a_fault_of_ours_is_called_one(workshop, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("so\x1b[31m it goes")

    monkeypatch.setattr("hetrisk.cli.fitting.fit_table", broken)
    result = run("fit", workshop / "table.csv", "-t", "y")
    assert result.exit_code == 1
    assert (
        "something unforeseen went wrong (ZeroDivisionError: so\\x1b[31m it goes)" in result.stderr
    )
    assert "Traceback" not in result.stderr


def test_too_little_memory_is_a_sentence(workshop, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("hetrisk.cli.fitting.fit_table", greedy)
    result = run("fit", workshop / "table.csv", "-t", "y")
    assert result.stderr.endswith("Error: there is not enough memory for this table\n")


def test_an_interrupt_leaves_nothing_behind(workshop, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("hetrisk.cli.fitting.fit_table", interrupted)
    (tmp_path / "m.hetrisk").write_bytes(b"old")
    result = run("fit", workshop / "table.csv", "-t", "y", "--out", tmp_path / "m.hetrisk")
    assert result.exit_code == 130
    assert result.stderr.strip() == "Stopped. No file was changed."
    assert (tmp_path / "m.hetrisk").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.hetrisk"]


def test_a_pipe_that_closes_early_is_no_error(workshop):
    command = f"{sys.executable} -m hetrisk.cli predict {workshop}/y.hetrisk {workshop}/table.csv"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "prediction\n"
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_no_progress_where_nobody_looks(capsys):
    with terminal.progress("thinking"):
        pass
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_is_a_spinner(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with terminal.progress("[red]thinking"):
        time.sleep(0)
    assert "[red]thinking" in capsys.readouterr().err


def test_json_has_no_nan():
    record = {1: np.array([1.0, np.nan]), "b": (np.int64(3), np.bool_(True), None, np.inf, {"s"})}
    assert plain_record(record) == {
        "1": [1.0, None],
        "b": [3, True, None, None, "{'s'}"],
    }


def test_notes_are_cut_short(capsys):
    terminal.say_notes(f"note {i}" for i in range(20))
    said = capsys.readouterr().err
    assert "Note: note 11" in said
    assert "note 12" not in said
    assert "8 more notes" in said


def test_hostile_names_reach_the_terminal_as_text(tmp_path):
    table = frame().rename(columns={"a": "[red]a\x1b[31m", "kind": "<script>", "b": "=1+1"})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "-t", "y", "-d", "label", "--report", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "[red]a\\x1b[31m" in result.stdout
    assert "<script>" in result.stdout
    assert "=<script>" not in (tmp_path / "r").read_text()
