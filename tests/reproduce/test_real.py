"""Tables by lot: the rule, the split, the methods, a run that goes on, and its page."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hetrisk.reproduce.real import judging, records, run_real
from hetrisk.reproduce.real import lot as drawing
from hetrisk.reproduce.real.designs import designs
from hetrisk.reproduce.real.lot import Lot, prepare
from hetrisk.reproduce.real.ordinary import Ordinary
from hetrisk.reproduce.real.page import geometric, ratios, write
from hetrisk.reproduce.real.split import split

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
    monkeypatch.setattr(drawing, "read", lambda package, item: sales())


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
    assert set(rows.X) == {"price", "colour_red", *(f"shop_{s}" for s in "bcdefghi")} | {"much_yes"}
    assert rows.site is None
    assert len(rows.X) == len(rows.y) == len(rows.time)


@pytest.mark.parametrize(
    ("time", "site", "way"),
    [("year", None, "time"), (None, "shop", "site"), ("year", "shop", "both")],
)
def test_no_environment_is_learned_from_and_judged(time, site, way):
    parted = split(replace(SALES, time=time, site=site))
    assert parted.way == way
    train, test = parted.train, parted.test
    if time:
        assert train.time.max() < test.time.min()
    else:
        assert not set(train.site) & set(test.site)
    assert set(train.frame) >= {"when"} if time else {"where"}
    assert len(parted.errors(np.ones(len(test.y)))) == len(np.unique(test.environment))


def test_too_small_a_table_says_so(monkeypatch):
    monkeypatch.setattr(drawing, "read", lambda package, item: sales(100))
    assert "too few rows" in split(SALES)
    (record,) = judging.judge(SALES)
    assert record["status"] == "left out"


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_ordinary_models_are_what_their_names_say(kind):
    lot = SALES if kind == "numbers" else replace(SALES, target="much", kind="labels")
    found = {r["method"]: r for r in judging.judge(lot, ("plain", *judging.ORDINARY))}
    assert {r["status"] for r in found.values()} == {"ok"}
    assert found["last period"]["mean"] < found["constant"]["mean"]
    if kind == "numbers":
        assert found["grouped cross-validation"]["mean"] < found["constant"]["mean"]
        assert found["plain, recent periods"]["mean"] < found["plain"]["mean"]
    sites = replace(lot, time=None, site="shop")
    found = {r["method"]: r for r in judging.judge(sites, ("plain", "last period"))}
    assert (
        found["last period"] | {"status": "not applicable", "reason": "no time"}
        == found["last period"]
    )


def test_both_choices_say_what_they_chose():
    ordinary = Ordinary(split(SALES))
    ordinary.random_choice(ordinary.split.train)
    ordinary.group_choice(ordinary.split.train)
    assert set(ordinary.chosen) == {"random", "groups"}
    assert set(ordinary.chosen.values()) <= set(ordinary.candidates)


@pytest.mark.parametrize("method", ["DRIG", "IRM", "V-REx", "GroupDRO", "invariant prediction"])
def test_peers_run_or_say_why_not(method):
    _, record = judging.judge(replace(SALES, time=None, site="shop"), ("plain", method))
    assert record["status"] in ("ok", "not applicable")
    assert record["status"] == "ok" or record["reason"]


def test_what_goes_wrong_becomes_the_record(monkeypatch):
    def broken(*_):
        raise ValueError("no such thing")

    monkeypatch.setitem(judging.ORDINARY, "ridge", broken)
    _, record = judging.judge(SALES, ("plain", "ridge"))
    assert record["status"] == "failed"
    assert record["reason"] == "ValueError: no such thing"


def made_up(table, **errors):
    about = {"table": table, "way": "time", "kind": "numbers", "status": "ok", "seconds": 0.1}
    about |= {"environments": 4}
    ours = {"best": "trend", "foretold": {"mean": 1.0, "lower": 0.5, "upper": 2.0}}
    ours |= {"covered": 0.9, "width": 2.0, "adapted": {"5": 0.9, "20": 0.8, "100": None}}
    return [
        {**about, "method": name, "mean": e, "worst": 2 * e, **(ours if name == "backtest" else {})}
        for name, e in errors.items()
    ]


def test_the_page_counts_what_was_harmed_and_helped(tmp_path):
    found = made_up("a/b:y|year", plain=1.0, constant=2.0, backtest=0.5)
    found += made_up("c/d:y|year", plain=1.0, constant=0.9, backtest=1.1)
    found.append({"table": "e/f:y|year", "method": "table", "status": "left out", "reason": "few"})
    text = write(found, tmp_path / "real.md", 4).read_text()
    assert "**2 tables so far** of 4 drawn; 1 others" in text
    assert "| **backtest** | 2 | 0.742 | 1 / 1 | 1.10 | 0.742 | 0.742 | 0.10 |" in text
    assert "| 2 with time | 0.80 | 0.56 to 1.04 | 100% |" in text
    assert (tmp_path / "real" / "foretold.png").exists()
    judged = {"t": {r["method"]: r for r in made_up("t", plain=1.0, constant=30.0)}}
    assert ratios(judged)["constant"]["t"] == 30.0
    assert geometric([30.0]) == pytest.approx(20.0)


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    asked = []

    def quick(lot):
        asked.append(lot.target)
        return made_up(lot.name, plain=1.0, backtest=0.9)

    class Here:
        """A pool that computes at once."""

        def __init__(self, jobs): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def submit(self, function, lot):
            from concurrent.futures import Future

            future = Future()
            future.set_result(quick(lot))
            return future

    monkeypatch.setattr("hetrisk.reproduce.real.ProcessPoolExecutor", Here)
    lots = [replace(SALES, target=name) for name in ("sold", "price")]
    run_real(tmp_path, minutes=1, lots=lots[:1])
    with (tmp_path / "real.jsonl").open("a") as file:
        file.write('{"table": "half a li')
    assert len(records(tmp_path / "real.jsonl")) == 2
    page = run_real(tmp_path, minutes=1, lots=lots, document=tmp_path / "docs.md")
    assert asked == ["sold", "price"]
    assert "**2 tables** of 2 drawn" in page.read_text()
    assert (tmp_path / "docs" / "foretold.png").exists()
    assert json.loads((tmp_path / "real.jsonl").read_text().splitlines()[1])["method"] == "plain"


def test_designs_are_scored_against_the_minimax_predictor(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "ON_DESIGNS", ("plain", "DRIG"))
    lot = next(designs())
    found = {r["method"]: r for r in judging.judge(lot)}
    assert found[judging.MINIMAX]["worst"] < found["plain"]["worst"]
    assert set(found) == {*judging.ON_DESIGNS, judging.MINIMAX}
    made = made_up("a/b:y|year", plain=1.0, backtest=0.5)
    text = write([*made, *found.values()], tmp_path / "real.md", 1).read_text()
    assert "| selection on the target | 1." in text
    assert "**1 tables** of 1 drawn" in text
