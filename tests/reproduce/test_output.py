import builtins

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from hetrisk.cli.app import cli
from hetrisk.cli.reproduce import reproduce as command
from hetrisk.reproduce import Records, reproduce
from hetrisk.reproduce.output import write_section
from hetrisk.reproduce.targets import TARGETS

from .made_up import measure

PNG = b"\x89PNG\r\n\x1a\n"
ENVIRONMENTS = {
    "car_insurance": lambda setting: [f"r=-{setting['r']}"],
    "income": lambda setting: ["White-Male", "White-Female", "Black-Male"],
    "house_price": lambda setting: ["1920-1939", "1940-1959"],
}


def made_up(name, n_seeds=2):
    found = {}
    for case in TARGETS[name].cases(n_seeds):
        record = measure(case)
        if case.method == "distances":
            matrix = [[0.0, 0.1 + 0.1 * case.seed], [0.1 + 0.1 * case.seed, 0.0]]
            names = ("true", "first round", "learned")
            record["distances"] = {
                features: dict(
                    zip(
                        names,
                        [matrix, matrix, (2 * np.array(matrix)).tolist()],
                        strict=True,
                    )
                )
                for features in ("variant features", "all features")
            }
        elif case.task in ENVIRONMENTS:
            names = ENVIRONMENTS[case.task](dict(case.setting))
            record["errors"] = dict(zip(names, record["errors"].values(), strict=False))
        found[case.key] = record
    return found


@pytest.mark.parametrize("name", [name for name in TARGETS if name.startswith("figure")])
def test_figures_are_written(tmp_path, name):
    section = write_section(name, made_up(name), 2, tmp_path)
    assert section.problem == ""
    assert (tmp_path / section.image).read_bytes().startswith(PNG)


def test_the_distance_figure_prints_the_ratio(tmp_path):
    section = write_section("figure-task2vec", made_up("figure-task2vec"), 2, tmp_path)
    assert "environments are 2.00 times as far apart" in section.caption


@pytest.mark.parametrize("name", ["table1", "table2", "table3"])
def test_tables_are_written(tmp_path, name):
    section = write_section(name, made_up(name), 2, tmp_path)
    assert len(section.tables) == len(TARGETS[name].panels)
    assert "HRM (default)" in (tmp_path / f"{name}.md").read_text()


def test_a_figure_whose_data_is_missing_says_so(tmp_path):
    found = made_up("figure-house")
    for record in found.values():
        record.update(status="failed", reason="FileNotFoundError: get it at openml.org")
    section = write_section("figure-house", found, 2, tmp_path)
    assert section.image is None
    assert "get it at openml.org" in section.problem
    assert section.problem in (tmp_path / "figure-house.md").read_text()


def test_without_matplotlib_tables_are_still_written(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    section = write_section("figure-house", made_up("figure-house"), 2, tmp_path)
    assert "pip install 'hetrisk[plot]'" in section.problem
    assert (tmp_path / "figure-house.md").exists()


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    arguments = ["table2", "--out", str(out), "--seeds", "2", "--jobs", "1"]
    chosen = ["--methods", "erm", "--methods", "oracle", "--document", str(out / "doc.md")]
    result = CliRunner().invoke(command, [*arguments, *chosen])
    assert result.exit_code == 0, result.output
    return out, arguments


def test_the_command_writes_everything(small_run):
    out, _ = small_run
    assert {"records.jsonl", "table2.md", "doc.md"} <= {path.name for path in out.iterdir()}
    records = Records(out / "records.jsonl").read().values()
    assert len(records) == 2 * 2 * 2
    short, every = (out / "doc.md").read_text(), (out / "doc" / "records.md").read_text()
    assert "| table2, Scenario 1: n_phi = 9, n_psi = 1 |" in short
    assert "doc/records.md" in short
    assert "## Table 2" in every
    assert "| ERM |" in every
    assert "(../doc.md)" in every


def test_the_command_goes_on_where_it_ended(small_run):
    out, arguments = small_run
    before = (out / "records.jsonl").read_bytes()
    again = CliRunner().invoke(command, [*arguments, "--methods", "erm"])
    assert again.exit_code == 0
    assert (out / "records.jsonl").read_bytes() == before
    redone = CliRunner().invoke(command, [*arguments, "--methods", "erm", "--redo", "erm"])
    assert redone.exit_code == 0
    after = (out / "records.jsonl").read_bytes()
    assert after != before
    assert len(after.splitlines()) == len(before.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "'table9' is not one of"),
        ([], "Missing argument"),
        (["table1", "--seeds", "0"], "0 is not in the range"),
        (["table1", "--jobs", "0"], "must not be 0"),
        (["table1", "--methods", "svm"], "there is no method 'svm'"),
        (["table1", "--redo", "svm"], "there is no method 'svm'"),
    ],
)
def test_wrong_usage(arguments, message, tmp_path):
    result = CliRunner().invoke(command, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert message in result.output


def test_damaged_records_end_in_a_sentence(tmp_path):
    (tmp_path / "records.jsonl").write_text("nonsense\nmore\n")
    result = CliRunner().invoke(command, ["table2", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "line 1: not a record" in result.output


def test_distances_are_run_again_with_the_methods_that_learn_them(tmp_path, monkeypatch):
    records = Records(tmp_path / "records.jsonl")
    with records.appending() as append:
        for record in made_up("figure-task2vec").values():
            append(record)
    asked = []
    monkeypatch.setattr(
        "hetrisk.reproduce.run_with_progress", lambda cases, *rest: asked.extend(cases)
    )
    where = {"out": tmp_path, "seeds": 2, "console": Console(quiet=True)}
    reproduce(["figure-task2vec"], methods=["erm"], redo=["erm"], **where)
    assert len(records.read()) == 2
    assert asked == []
    reproduce(["figure-task2vec"], methods=["hrm"], redo=["hrm"], **where)
    assert records.read() == {}
    assert [case.method for case in asked] == ["distances", "distances"]


def test_stopped_by_the_user_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("hetrisk.reproduce.run_with_progress", stop)
    result = CliRunner().invoke(cli, ["reproduce", "table2", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert f"Started again with --out {tmp_path}, it goes on" in result.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ["table9"]}, "targets must be among table1.*got table9"),
        ({"methods": ["svm"]}, "methods must be among mean.*got svm"),
        ({"redo": ["svm"]}, "redo must be among mean.*got svm"),
        ({"seeds": 0}, "seeds must be at least 1; got 0"),
    ],
)
def test_wrong_arguments(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce(
            **{"targets": ["table1"], "out": tmp_path, "console": Console(quiet=True), **changes}
        )


def test_the_command_names_every_target():
    from hetrisk.cli.reproduce import TARGETS as names

    assert set(names) == {*TARGETS, "all", "real"}
