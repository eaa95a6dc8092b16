import numpy as np
import pytest

from hetrisk.reproduce.methods import methods_for
from hetrisk.reproduce.panels import Panel, fill
from hetrisk.reproduce.paper import paper
from hetrisk.reproduce.tables import markdown, markdown_table, table_rows
from hetrisk.reproduce.targets import TARGETS

from .made_up import PANEL, cases, measure


def records(**changes):
    return {case.key: {**measure(case), **changes} for case in cases()}


def test_cells_average_over_seeds():
    found = records()
    row = fill(PANEL, found, range(4)).row("erm")
    errors = [list(r["errors"].values()) for r in found.values() if r["method"] == "erm"]
    spread = np.std(errors, axis=1, ddof=1)
    assert row.cells["mean"].ours == pytest.approx(np.mean(errors))
    assert row.cells["std"].ours == pytest.approx(spread.mean())
    assert row.cells["max"].ours == pytest.approx(np.max(errors, axis=1).mean())
    assert row.cells["std"].error == pytest.approx(spread.std(ddof=1) / 2)
    assert row.cells["mean"].difference == pytest.approx(np.mean(errors) - 0.5)
    oracle = [list(r["errors"].values()) for r in found.values() if r["method"] == "oracle"]
    assert row.cells["mean"].oracle == pytest.approx(np.mean(oracle))
    assert row.n_seeds == 4


def test_only_the_seeds_asked_for_count():
    assert fill(PANEL, records(), range(2)).row("erm").n_seeds == 2
    assert fill(PANEL, records(), range(1)).row("erm").cells["mean"].error is None


def test_methods_that_were_not_run_are_left_out():
    assert fill(PANEL, records(), range(4)).row("irm") is None
    assert fill(PANEL, {}, range(4)).rows == ()


def test_a_method_that_failed_says_why():
    found = records()
    for record in found.values():
        if record["method"] == "erm":
            record.update(status="failed", reason="ValueError: a | b\nc")
    filled = fill(PANEL, found, range(4))
    assert filled.row("erm").cells == {}
    text = markdown([filled])
    assert "4 of 4 runs failed: ValueError: a \\| b c" in text
    assert len({line.count(" | ") for line in text.splitlines() if line.startswith("| ")}) == 1


def test_a_method_that_failed_once_keeps_its_other_seeds():
    found = records()
    key = next(key for key, record in found.items() if record["method"] == "erm")
    found[key].update(status="failed", reason="MemoryError: no")
    row = fill(PANEL, found, range(4)).row("erm")
    assert row.n_seeds == 3
    assert row.note == "1 of 4 runs failed: MemoryError: no"


def test_exact_sets_are_counted():
    found = records(recovered=True)
    next(r for r in found.values() if r["method"] == "hrm")["recovered"] = False
    filled = fill(PANEL, found, range(4))
    assert filled.row("hrm").exact == 3
    assert table_rows(filled)[0][-1] == "exact set"


def test_a_method_with_fewer_draws_says_so():
    found = {k: r for k, r in records().items() if r["method"] != "erm" or r["seed"] < 3}
    labels = [line[0] for line in table_rows(fill(PANEL, found, range(4)))]
    assert "ERM (3 of 4 draws)" in labels
    assert "Constant" in labels


def test_columns_of_each_kind():
    record = next(iter(records().values()))
    for kind, columns in {
        "spread": ["mean", "std", "max"],
        "environments": list(record["errors"]),
        "train and test": ["train", *record["errors"]],
        "all": ["train", *record["errors"], "mean", "std", "max"],
    }.items():
        panel = Panel("Tiny", PANEL.task, PANEL.setting, kind)
        assert list(fill(panel, records(), range(4)).columns) == columns


def test_markdown_cells_cannot_break_the_table():
    text = markdown_table([["a", "b"], ["x|y", "1\n2"]])
    assert text.splitlines()[2] == "| x\\|y | 1 2 |"


@pytest.mark.parametrize("table", ["table1", "table3"])
def test_selection_bias_panels_are_the_papers_settings(table):
    panels = iter(TARGETS[table].panels)
    for scenario in (v for k, v in paper()[table].items() if k.startswith("scenario")):
        for i, value in enumerate(scenario["values"]):
            panel = next(panels)
            wanted = {"d": 10, "n_b": 1, "n": 2000, "kappa": 0.95, **scenario["fixed"]}
            names = scenario["vary"].split(",")
            wanted.update(zip(names, value if len(names) > 1 else [value], strict=True))
            if wanted["n_b"] == "0.1 d":
                wanted["n_b"] = wanted["d"] // 10
            renamed = {"d": "n_features", "n_b": "n_biased", "n": "n_samples"}
            assert panel.setting == {renamed.get(k, k): v for k, v in wanted.items()}
            for row, values in scenario["rows"].items():
                assert panel.paper[row] == values[i]
    assert next(panels, None) is None


def test_anti_causal_panels_are_the_papers_settings():
    for panel, name in zip(TARGETS["table2"].panels, ("scenario1", "scenario2"), strict=True):
        scenario = paper()["table2"][name]
        assert panel.setting == {k: scenario[k] for k in ("n_phi", "n_psi")}
        for row, values in scenario["rows"].items():
            assert list(panel.paper[row].values()) == values


def test_settings_shared_by_tables_are_run_once():
    listed = [c.key for name in ("table1", "table3") for c in TARGETS[name].cases(1)]
    assert len(listed) == 12 * len(methods_for("selection_bias"))
    assert len(set(listed)) == 9 * len(methods_for("selection_bias"))


def test_real_tasks_have_no_oracle():
    assert all(case.method != "oracle" for case in TARGETS["figure-house"].cases(10))
    assert {case.seed for case in TARGETS["figure-house"].cases(10)} == {0}
    assert {case.seed for case in TARGETS["nonlinear"].cases(10)} == {0, 1, 2}
    assert {case.seed for case in TARGETS["table1"].cases(10)} == set(range(10))
