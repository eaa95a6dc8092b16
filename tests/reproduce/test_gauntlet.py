"""The gauntlet: who runs what, errors relative to ERM, forecasts, and the page."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from hetrisk.datasets import natural_names
from hetrisk.reproduce.cases import Case
from hetrisk.reproduce.gauntlet import page as page_module
from hetrisk.reproduce.gauntlet import run_gauntlet
from hetrisk.reproduce.gauntlet.cases import (
    DESIGNS,
    FIRST_SEED,
    REAL,
    Stage,
    gauntlet_cases,
    groups,
)
from hetrisk.reproduce.gauntlet.forecast import FORECASTER, calibration, forecasts, missed
from hetrisk.reproduce.gauntlet.measure import N_RESAMPLES, evaluate, peer_versions
from hetrisk.reproduce.gauntlet.methods import GAUNTLET, OURS
from hetrisk.reproduce.gauntlet.page import write_gauntlet
from hetrisk.reproduce.gauntlet.published import mean_error, published, unit_stages
from hetrisk.reproduce.gauntlet.ratios import record_of, split_ratio, table_ratio, tallies, tally
from hetrisk.reproduce.gauntlet.tables import gap_closed, group_lines
from hetrisk.reproduce.methods import HINTED
from hetrisk.reproduce.records import OK, REFUSED, Records


def made_up(case: Case, level: float = 1.0) -> dict:
    """A record whose errors depend on the case alone, about ``level`` high."""
    digest = hashlib.sha256(case.key.encode()).digest()
    errors = {f"e{i}": level * (1 + byte / 2550) for i, byte in enumerate(digest[:3])}
    values = np.array(list(errors.values()))
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(N_RESAMPLES)
    record = {
        "key": case.key,
        "task": case.task,
        "setting": dict(case.setting),
        "seed": case.seed,
        "method": case.method,
        "versions": {"hetrisk": "0"},
        "status": OK,
        "errors": errors,
        "resampled": {w: list(v * noise) for w, v in (("worst", values.max()), ("mean", 1.0))},
        "seconds": 0.5,
        "shape": [100, 3, 2],
    }
    if case.method == FORECASTER:
        grid = [0.0, 1.0, 2.0, 4.0]
        slope = digest[5] / 2550
        line = [float(level * np.sqrt(1 + slope * k**2)) for k in grid]
        band = {"low": [0.9 * v for v in line], "high": [1.2 * v for v in line]}
        record["curve"] = {
            "reach": grid,
            "unit": "RMSE",
            **band,
            "error": line,
            **{f"{name}_erm": values for name, values in {**band, "error": line}.items()},
        }
    return record


def refused(case: Case) -> dict:
    kept = {k: v for k, v in made_up(case).items() if k not in ("errors", "resampled", "seconds")}
    return {**kept, "status": REFUSED, "reason": "too many sets"}


@pytest.fixture(scope="module")
def found():
    levels = {"erm": 1.0, "trees": 0.8, "columns-4": 0.9, "irm": 1.3}
    records = {}
    for case in gauntlet_cases(2):
        make = refused if case.method == "icp" else made_up
        level = {} if case.method == "icp" else {"level": levels.get(case.method, 1.0)}
        records[case.key] = make(case, **level)
    return records


def test_every_table_split_and_design_is_run_by_every_method_that_applies():
    cases = gauntlet_cases(2)
    assert len({case.key for case in cases}) == len(cases)
    real = [case for case in cases if case.task == "natural"]
    assert {dict(case.setting)["table"] for case in real} == set(natural_names())
    assert {case.seed for case in real} == {0}
    assert not any(GAUNTLET[case.method].given == HINTED for case in real)
    assert not any(case.method == "oracle" for case in real)
    designed = [case for case in cases if case.task != "natural"]
    assert {case.seed for case in designed} == {FIRST_SEED, FIRST_SEED + 1}
    assert {case.method for case in designed} == set(GAUNTLET)
    rotated = [case for case in designed if dict(case.setting).get("rotated")]
    assert rotated
    assert not any(case.method == "oracle" for case in rotated)
    only = gauntlet_cases(1, ["erm", "irm"])
    assert {case.method for case in only} == {"erm", "irm"}
    assert {"hrm", "hinted-columns", "columns-4", "directions-10", "told-trees"} <= set(OURS)
    assert not {"erm", "trees", "anchor-5", "irm", "oracle"} & set(OURS)


def test_ratios_are_relative_to_erm(found):
    stage = REAL[0]
    ours, erm = record_of(stage, "irm", found), record_of(stage, "erm", found)
    expected = max(ours["errors"].values()) / max(erm["errors"].values())
    assert split_ratio(stage, "irm", found, "worst") == pytest.approx(expected)
    assert split_ratio(stage, "icp", found, "worst") is None
    assert split_ratio(stage, "oracle", found, "worst") is None
    assert table_ratio(stage.name, "erm", found, "worst").value == pytest.approx(1.0)


def test_the_interval_of_a_table_compares_resample_by_resample(found):
    ratio = table_ratio(REAL[0].name, "irm", found, "worst")
    # Both were given the same noise, so that the ratio has none.
    assert ratio.low == pytest.approx(ratio.value, rel=1e-6)
    assert ratio.high == pytest.approx(ratio.value, rel=1e-6)
    assert table_ratio(REAL[0].name, "icp", found, "worst") is None


def test_harm_and_help_are_counted(found):
    counted = {one.method: one for one in tallies(found)}
    n = len(REAL)
    assert (counted["erm"].harmed, counted["erm"].helped, counted["erm"].n) == (0, 0, n)
    assert counted["irm"].harmed == n
    assert counted["trees"].helped == n
    assert counted["trees"].worst_error == pytest.approx(0.8, rel=0.05)
    assert counted["trees"].low < counted["trees"].worst_error < counted["trees"].high
    assert "icp" not in counted
    assert tally("icp", found) is None


def test_the_gap_is_measured_between_erm_and_the_stable_columns():
    rows = {
        "a": {"erm": 2.0, "oracle": 1.0, "x": 1.25},
        "b": {"erm": 2.0, "oracle": 1.0, "x": 9.0},
        "no gap": {"erm": 1.0, "oracle": 1.0, "x": 0.5},
        "rotated": {"erm": 2.0, "x": 1.0},
        "did not run": {"erm": 2.0, "oracle": 1.0, "x": "why"},
    }
    assert gap_closed(rows, "x") == pytest.approx((0.75 - 1.0) / 2)
    assert gap_closed(rows, "oracle") == pytest.approx(1.0)
    assert gap_closed({}, "x") is None


def test_forecasts_are_compared_with_what_came_true(found):
    made = forecasts(found)
    assert len(made) == len(REAL)
    low, line, high = made[0].foretold(1.0)
    assert (low / line, high / line) == pytest.approx((0.9, 1.2))
    curve = record_of(REAL[0], FORECASTER, found)["curve"]
    assert line == curve["error_erm"][1]
    assert made[0].foretold(0.5)[1] == pytest.approx(np.mean(curve["error_erm"][:2]))
    measured = calibration(made)
    came = np.array([max(record_of(s, "erm", found)["errors"].values()) for s in REAL])
    expected, upper = np.array([f.foretold(1.0)[1:] for f in made]).T
    assert measured.ratio == pytest.approx(np.median(came / expected))
    assert measured.covered == pytest.approx(np.mean(came <= upper))
    assert len(missed(made)) == np.sum(came > upper)
    assert measured.correlation == pytest.approx(
        np.corrcoef(rankdata(expected), rankdata(came))[0, 1]
    )
    flat = [replace(f, erm=made[0].erm) for f in made]
    assert np.isnan(calibration(flat).correlation)
    assert calibration(made[:2]) is None


def test_only_curves_in_units_of_the_error_are_compared(found):
    stage = REAL[0]
    told = record_of(stage, FORECASTER, found)
    other = {**told, "curve": {**told["curve"], "unit": "deviance"}}
    assert forecasts({**found, told["key"]: other}, [stage]) == []
    bare = {key: value for key, value in told.items() if key != "curve"}
    assert forecasts({**found, told["key"]: bare}, [stage]) == []


def test_published_figures_have_a_stage_each(found):
    assert set(unit_stages()) == set(published()["rows"])
    assert published()["rows"]["small_margin"]["Oracle"]["mean"] == pytest.approx(0.0126)
    stage = unit_stages()["cause_and_effect"]
    records = [record_of(stage, "erm", found, FIRST_SEED + s) for s in range(2)]
    squared = np.mean([np.square(list(r["errors"].values())) for r in records])
    assert mean_error(stage, "erm", found, 2) == pytest.approx(squared)
    assert mean_error(stage, "icp", found, 2) is None


def test_the_page_shows_it_all(found, tmp_path):
    target = tmp_path / "docs" / "gauntlet.md"
    write_gauntlet(found, 2, target)
    text = target.read_text()
    assert "| erm: ERM | not told |" in text
    assert "rank correlation" in text
    assert f"icp, {sum(r['method'] == 'icp' for r in found.values())} runs: too many sets" in text
    assert "computer_prices" in text
    assert "`trees` has the lowest worst error" in text
    assert (target.parent / "gauntlet" / "harm-and-help.png").exists()
    assert (target.parent / "gauntlet" / "reach-curves.png").exists()
    assert "{{" not in text


def test_a_page_of_almost_nothing_can_be_written(tmp_path):
    target = tmp_path / "page.md"
    write_gauntlet({}, 1, target)
    text = target.read_text()
    assert "Too few curves were drawn to say" in text
    assert "No figure: no real table was run" in text


def test_without_matplotlib_the_page_says_so(found, tmp_path, monkeypatch):
    def missing(*arguments):
        raise page_module.PlottingUnavailable("figures need matplotlib: install it")

    monkeypatch.setattr(page_module, "harm_and_help", missing)
    monkeypatch.setattr(page_module, "foretold_and_came_true", missing)
    write_gauntlet(found, 2, tmp_path / "page.md")
    assert "No figure: figures need matplotlib" in (tmp_path / "page.md").read_text()


SMALL = Case("copied_label", (("n_samples", 60), ("n_test", 80)), 1000, "erm")


def test_a_record_holds_resamples_that_all_methods_share():
    record = evaluate(SMALL)
    assert record["status"] == OK, record.get("reason")
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    worst = record["resampled"]["worst"]
    assert len(worst) == N_RESAMPLES
    assert np.mean(worst) == pytest.approx(max(record["errors"].values()), rel=0.15)
    assert evaluate(SMALL)["resampled"] == record["resampled"]
    assert set(peer_versions()) <= set(record["versions"])


def test_a_method_that_does_not_apply_is_settled_and_one_that_fails_is_not(tmp_path):
    pytest.importorskip("causalicp", reason="pip install 'hetrisk[peers]'")
    record = evaluate(Case(SMALL.task, SMALL.setting, 1000, "icp"))
    assert record["status"] == REFUSED
    assert record["reason"] == "causalicp tests residuals of numbers, not of labels."
    failed = evaluate(Case("natural", (("table", "nothing"),), 0, "erm"))
    assert failed["status"] == "failed"
    records = Records(tmp_path / "records.jsonl")
    with records.appending() as append:
        append(record)
        append(failed)
    assert records.finished() == {record["key"]}


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    stages = [Stage("tiny", "copied_label", {"n_samples": 40, "n_test": 40})]
    monkeypatch.setattr("hetrisk.reproduce.gauntlet.cases.DESIGNS", stages)
    monkeypatch.setattr("hetrisk.reproduce.gauntlet.cases.REAL", [])
    first = run_gauntlet(tmp_path, seeds=1, jobs=1, methods=["erm", "ridge-cv"])
    assert first == tmp_path / "gauntlet.md"
    lines = (tmp_path / "gauntlet.jsonl").read_text().splitlines()
    assert len(lines) == 2
    run_gauntlet(tmp_path, seeds=1, jobs=1, methods=["erm", "group-dro"])
    assert len((tmp_path / "gauntlet.jsonl").read_text().splitlines()) == 3
    run_gauntlet(tmp_path, seeds=1, jobs=1, methods=["erm"], redo=["erm"])
    again = (tmp_path / "gauntlet.jsonl").read_text().splitlines()
    assert len(again) == 3
    assert json.loads(again[-1])["method"] == "erm"
    assert (tmp_path / "gauntlet.csv").read_text().startswith("table,split,method")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["magic"]}, "methods must be among erm, .*; got magic"),
        ({"redo": ["magic"]}, "redo must be among erm, .*; got magic"),
        ({"seeds": 0}, "seeds must be at least 1; got 0"),
    ],
)
def test_errors(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run_gauntlet(tmp_path, **options)


def test_every_split_is_in_one_group_of_each_kind():
    shown = groups()
    assert len(shown["tried on before"]) == 36
    assert len(shown["tried on before"]) + len(shown["fresh tables"]) == len(REAL)
    assert sum(len(stages) for name, stages in shown.items() if "half" in name) == len(REAL)


def test_groups_are_tallied_apart(found):
    lines = group_lines(found)
    trees = next(line for line in lines if line[0] == "trees")
    assert trees[1].startswith("0 / 36 of 36, 0.")


def test_designs_have_names_of_their_own():
    assert len({stage.name for stage in DESIGNS}) == len(DESIGNS)
