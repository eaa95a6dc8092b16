"""Tables by lot: the rule, the split, the methods, a run that goes on, and its page."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hetrisk.reproduce.real import judging, run_real
from hetrisk.reproduce.real import lot as drawing
from hetrisk.reproduce.real import split as parting
from hetrisk.reproduce.real.designs import designs
from hetrisk.reproduce.real.judging import Trial, judge, trials
from hetrisk.reproduce.real.lot import Lot
from hetrisk.reproduce.real.page import geometric, judged, write
from hetrisk.reproduce.real.split import prepare, split
from hetrisk.reproduce.records import Records

SALES = Lot("shops", "sales", "sold", "year", None, "numbers")


def sales(n=900, seed=0):
    """A level that rises by the year, and shops that differ in their level."""
    rng = np.random.default_rng(seed)
    year, shop = rng.integers(2010, 2020, n), rng.integers(0, 9, n)
    price, colour = rng.normal(10, 2, n), rng.choice(["red", "green"], n)
    sold = 3 * (year - 2010) + shop - price + rng.normal(0, 1, n)
    return pd.DataFrame(
        {
            "rownames": np.arange(n),
            "year": year,
            "shop": np.array(list("abcdefghi"))[shop],
            "price": price,
            "colour": colour,
            "empty": np.where(rng.random(n) < 0.5, np.nan, 1.0),
            "sold": sold,
            "copy": 2 * sold,
            "much": np.where(sold > 10, "yes", "no"),
        }
    )


@pytest.fixture(autouse=True)
def table(monkeypatch):
    for module in (drawing, parting):
        monkeypatch.setattr(module, "read", lambda package, item: sales())
    judging._prepared.cache_clear()


def judge_all(lot, *methods):
    return {name: judge(Trial(lot, name)) for name in methods}


@pytest.mark.parametrize(
    ("name", "time", "site"),
    [
        ("year", True, False),
        ("survey_year", True, False),
        ("State", False, True),
        ("shopName", False, True),
        ("yearly", False, False),
        ("estate", False, False),
    ],
)
def test_ways_to_shift_go_by_their_names(name, time, site):
    assert drawing._named(name, drawing.TIMES) == time
    assert drawing._named(name, drawing.SITES) == site


def test_lots_are_drawn_by_seed():
    lots = drawing._lots("shops", "sales", 0)
    assert lots == drawing._lots("shops", "sales", 0)
    assert {lot.kind for lot in lots} == {"numbers", "labels"}
    assert all(lot.target not in ("year", "shop", "rownames") for lot in lots)
    assert all(lot.time == "year" or lot.site == "shop" for lot in lots)


def test_columns_that_repeat_the_target_or_number_the_rows_are_dropped():
    rows = prepare(replace(SALES, target="sold"))
    # Price, colour, nine shops and much; neither a number of rows, a copy nor an empty column.
    assert rows.X.shape == (900, 1 + 1 + 8 + 1)
    assert rows.site is None
    assert len(rows.y) == len(rows.time) == 900


@pytest.mark.parametrize(
    ("time", "site", "way"),
    [("year", None, "time"), (None, "shop", "site"), ("year", "shop", "both")],
)
def test_no_environment_is_learned_from_and_judged(time, site, way):
    lot = replace(SALES, time=time, site=site)
    assert lot.way == way
    parted = split(lot)
    train, test = parted.train, parted.test
    if time:
        assert train.time.max() < test.time.min()
    else:
        assert not set(train.site) & set(test.site)
    assert set(train.frame) >= {"when"} if time else {"where"}
    assert len(parted.errors(np.ones(len(test.y)))) == len(np.unique(test.environment))


def test_too_small_a_table_says_so(monkeypatch):
    monkeypatch.setattr(parting, "read", lambda package, item: sales(100))
    with pytest.raises(parting.LeftOutError, match="too few rows"):
        split(SALES)
    assert judge(Trial(SALES, "plain"))["status"] == "left out"


def test_methods_are_asked_where_they_apply():
    labels = replace(SALES, target="much", kind="labels")
    sites = replace(SALES, time=None, site="shop")
    asked = {lot: set() for lot in (SALES, labels, sites)}
    for trial in trials(asked):
        asked[trial.lot].add(trial.method)
    assert asked[SALES] == set(judging.METHODS)
    assert set(judging.METHODS) - asked[labels] == {*judging.NUMBERS_ONLY, "AutoML (FLAML)"}
    assert set(judging.METHODS) - asked[sites] == {*judging.TIMED, "AutoML (FLAML)"}
    assert {t.method for t in trials([next(designs())])} == set(judging.ON_DESIGNS)


ORDINARY = (
    *("plain", "constant", "last period", "ridge", "boosted trees", "boosted trees with time"),
    *("plain, recent periods", "random cross-validation", "grouped cross-validation"),
)


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_ordinary_models_are_what_their_names_say(kind):
    lot = SALES if kind == "numbers" else replace(SALES, target="much", kind="labels")
    found = judge_all(lot, *ORDINARY)
    assert {r["status"] for r in found.values()} == {"ok"}
    assert found["last period"]["mean"] < found["constant"]["mean"]
    if kind == "numbers":
        assert found["grouped cross-validation"]["mean"] < found["constant"]["mean"]
        assert found["plain, recent periods"]["mean"] < found["plain"]["mean"]


@pytest.mark.parametrize(
    "method",
    ["DRIG", "IRM", "V-REx", "GroupDRO", "invariant prediction", "stabilised regression"],
)
def test_peers_run_or_say_why_not(method):
    record = judge(Trial(replace(SALES, time=None, site="shop"), method))
    assert record["status"] == "ok" or record["reason"]
    assert record["status"] in ("ok", "not applicable")


def test_stabilised_regression_leaves_out_what_is_not_stable():
    """A cause with one slope, and an effect whose noise and slope differ between environments."""
    rng = np.random.default_rng(0)
    environment = np.repeat(np.arange(4.0), 400)
    cause = rng.normal(size=1600)
    y = 2 * cause + rng.normal(size=1600)
    effect = np.array([1.0, 0.5, 2.0, -1.0])[environment.astype(int)] * y + rng.normal(size=1600)
    half = parting.Half(np.column_stack([cause, effect]), y, None, environment)
    made = parting.Table(False, half, half)
    predict = judging.METHODS["stabilised regression"](made, half)
    ones = replace(half, X=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    zero, by_cause, by_effect = predict(ones)
    assert by_cause - zero == pytest.approx(2, abs=0.1)
    assert by_effect == zero
    # Where no set of columns is stable, all are used.
    unstable = replace(half, y=y * environment + environment)
    plain = judging.METHODS["plain"](made, unstable)(half)
    stabilised = judging.METHODS["stabilised regression"](made, unstable)(half)
    np.testing.assert_allclose(stabilised, plain)


def test_what_goes_wrong_becomes_the_record(monkeypatch):
    def broken(*_):
        raise ValueError("no such thing")

    monkeypatch.setitem(judging.FITS, "ridge", broken)
    record = judge(Trial(SALES, "ridge"))
    assert record["status"] == "failed"
    assert record["reason"] == "ValueError: no such thing"


def test_a_library_that_is_missing_is_a_failure_that_is_tried_again(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "flaml.automl", None)
    record = judge(Trial(SALES, "AutoML (FLAML)"))
    assert record["status"] == "failed"
    assert "flaml" in record["reason"]


def made_up(table, **errors):
    about = {"table": table, "way": "time", "kind": "numbers", "status": "ok", "seconds": 0.1}
    about |= {"environments": 4, "spent": 0.2}
    ours = {"best": "trend", "foretold": {"mean": 1.0, "lower": 0.5, "upper": 2.0}}
    ours |= {"covered": 0.9, "width": 2.0, "adapted": {"5": 0.9, "20": 0.8, "100": None}}
    return [
        {**about, "key": f"{table}: {name}", "method": name, "mean": e, "worst": 2 * e}
        | (ours if name == "backtest" else {})
        for name, e in errors.items()
    ]


def test_the_page_counts_what_was_harmed_and_helped(tmp_path):
    found = made_up("a/b:y|year", plain=1.0, constant=2.0, backtest=0.5)
    found += made_up("c/d:y|year", plain=1.0, constant=0.9, backtest=1.1)
    for name in ("plain", "backtest"):
        found.append({"table": "e/f:y|year", "method": name, "status": "left out", "reason": "few"})
    text = write(found, tmp_path / "real.md", 4).read_text()
    assert "**2 tables** of 4 drawn" in text
    assert "1 others had too little" in text
    assert "| **backtest** | 2 | 0.742 | 1 / 1 | 1.10 | 0.742 | 0.742 | 0.10 |" in text
    assert "| **backtest** | 0.742, 1 / 1 |" in text
    assert "| 2 with time | 0.80 | 0.56 to 1.04 | 100% | 90% | 0 | 2.00 |" in text
    assert "| c/d:y, by year | 1.10 | trend | 1 | 1.1 | within the band" in text
    assert "| a/b:y, by year |" not in text
    assert (tmp_path / "real" / "foretold.png").exists()
    far = judged(made_up("t", plain=1.0, constant=30.0))
    assert list(far.mean_ratio) == [1.0, 30.0]
    assert geometric(far.mean_ratio) == pytest.approx(20.0**0.5)
    assert "No table is judged yet" in write([], tmp_path / "none.md", 4).read_text()


@pytest.mark.parametrize(
    ("best", "true", "why"),
    [
        ("plain", 3.0, "plain itself"),
        ("trend", 3.0, "unlike all"),
        ("trend", 0.1, "easier"),
        ("trend", 1.0, "chance"),
    ],
)
def test_every_harm_has_a_reason(best, true, why, tmp_path):
    found = made_up("a/b:y|year", plain=true / 2, constant=9.0, backtest=true)
    found[-1]["best"] = best
    assert why in write(found, tmp_path / "real.md", 1).read_text()


def test_a_run_goes_on_where_it_ended_and_renews_one_method(tmp_path):
    lots = [replace(SALES, target=name) for name in ("sold", "price")]
    path = tmp_path / "real.jsonl"
    run_real(tmp_path, jobs=1, lots=lots, methods=["plain"])
    run_real(tmp_path, jobs=1, lots=lots, methods=["plain", "constant"], minutes=0)
    assert [record["method"] for record in Records(path).read().values()] == ["plain", "plain"]
    with path.open("a") as file:
        file.write('{"key": "half a li')
    asked = {"methods": ["constant"], "document": tmp_path / "docs.md"}
    page = run_real(tmp_path, jobs=1, lots=lots, **asked)
    assert "**2 tables** of 2 drawn" in page.read_text()
    assert (tmp_path / "docs" / "foretold.png").exists()
    before = Records(path).read()
    run_real(tmp_path, jobs=1, lots=lots, methods=["constant"], redo=["constant"])
    after = Records(path).read()
    assert set(before) == set(after)
    plain = f"{lots[0].name}: plain"
    assert before[plain] == after[plain]
    assert list(after)[:2] == [f"{lot.name}: plain" for lot in lots]


def test_designs_are_scored_against_the_minimax_predictor(tmp_path):
    found = judge_all(next(designs()), "plain", "DRIG", judging.MINIMAX)
    assert found[judging.MINIMAX]["worst"] < found["plain"]["worst"]
    made = made_up("a/b:y|year", plain=1.0, backtest=0.5)
    text = write([*made, *found.values()], tmp_path / "real.md", 1).read_text()
    assert "| selection on the target | 1." in text
    assert "**1 tables** of 1 drawn" in text
