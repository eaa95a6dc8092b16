from dataclasses import replace

import pytest

from hetrisk.reproduce.agreement import (
    cells,
    erm_agreement,
    hrm_agreement,
    overview,
)
from hetrisk.reproduce.panels import Cell, Filled, Row
from hetrisk.reproduce.targets import TARGETS


def filled(**rows):
    """One panel of table 1 with the given (ours, paper) means."""
    panel = TARGETS["table1"].panels[0]
    made = [
        Row(
            method.replace("_", "-"),
            method,
            {"mean": Cell(ours, 0.001, paper, 0.447)},
            n_seeds=10,
            exact=None,
            note="",
        )
        for method, (ours, paper) in rows.items()
    ]
    return {"table1": [Filled(panel, ("mean",), tuple(made))]}


def test_erm_cells_beyond_the_tolerance_are_named():
    assert "1 of 1 cells within 0.03." in erm_agreement(filled(erm=(0.5, 0.52)))
    text = erm_agreement(filled(erm=(0.5, 0.54)))
    assert "0 of 1 cells" in text
    assert "Scenario 1: r = 1.5, mean (-0.040)" in text


@pytest.mark.parametrize(("ours", "met"), [(0.40, True), (0.4519, True), (0.4521, False)])
def test_hrm_may_exceed_the_paper_by_the_slack_alone(ours, met):
    text = hrm_agreement(filled(hrm=(ours, 0.447)), "hrm")
    assert text.startswith(f"HRM (default): {int(met)} of 1 cells")
    assert ("table1, Scenario 1: r = 1.5, mean" in text) is not met


def test_a_method_that_was_not_run_says_so():
    assert hrm_agreement(filled(), "hrm") == "HRM (default) was not run."


def test_cells_without_a_published_number_do_not_count():
    tables = filled(erm=(0.5, 0.5))
    (panel,) = tables["table1"]
    row = replace(panel.rows[0], cells={"mean": Cell(0.5, None, None, None)})
    assert not list(cells({"table1": [replace(panel, rows=(row,))]}, "erm"))


def test_the_overview_has_one_line_a_setting():
    lines = overview(filled(hrm=(0.45, 0.447)))
    assert lines[0][0] == "setting"
    assert len(lines) == 2
    assert lines[1][lines[0].index("HRM (default)")] == "0.450 (paper 0.447)"
    assert overview({"table1": []}) == lines[:1]
