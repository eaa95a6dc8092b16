"""Models made by hand, one of each kind, and files with something changed in them."""

import io
import json
import zipfile

import numpy as np
import pandas as pd

from hetrisk.core.backtest.adaptation import Drift
from hetrisk.core.drift.columns import summarise
from hetrisk.core.drift.rise import misses
from hetrisk.core.predictor import HingesPart, LevelPart, LinearPart, Predictor, TreesPart, single
from hetrisk.core.result import (
    ColumnEvidence,
    Expected,
    Forecast,
    Horizon,
    Ranked,
    ReachLine,
    Tested,
)
from hetrisk.modelfile import FORMAT_VERSION, Deployed
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.time import TimeColumn

COLUMNS = ("a", "b", "c")
LABEL = json.dumps({"format": FORMAT_VERSION, "hetrisk": "0.3.0"})


def linear(K=1, d=3):
    rng = np.random.default_rng(K)
    return LinearPart(rng.normal(size=(d, K)), rng.normal(size=K), np.zeros(K))


def level(K=1):
    return LevelPart(np.arange(2.0 * K).reshape(2, K), np.full(K, 0.5))


def hinges(K=1, d=3):
    coef = np.arange(4.0 * K).reshape(4, K)
    knots = np.array([-1.0, 0.0, 0.5, 0.0])
    return HingesPart(np.array([0, 0, 0, 2]), knots, coef, np.zeros(K), d)


def trees(K=1, d=3):
    """Two trees of three and five nodes; the second asks whether column b is missing."""
    leaf = 0
    return TreesPart(
        feature=np.array([0, leaf, leaf, 1, 2, leaf, leaf, leaf]),
        threshold=np.array([0.0, 0, 0, np.inf, 0.5, 0, 0, 0]),
        left=np.array([1, 1, 2, 4, 6, 5, 6, 7]),
        right=np.array([2, 1, 2, 5, 7, 5, 6, 7]),
        missing_left=np.array([1, 0, 0, 0, 1, 0, 0, 0]),
        value=np.array([0.0, -1, 1, 0, 0, 4, 2, 3]),
        root=np.array([0, 3]),
        output=np.array([0, K - 1]),
        base=np.zeros(K),
        depth=2,
        n_features=d,
    )


def summary():
    expected = Expected(1.0, 0.5, float("inf"))
    ahead = Horizon(1.0, "1 year ahead", expected, expected, expected, 4)
    return {
        "origin": {
            "source": "t.csv",
            "target": "y",
            "task": "regression",
            "reason": "numbers",
            "n_rows": 7,
            "n_columns": 4,
            "notes": (("a", "read as a number"),),
        },
        "reach": 2.0,
        "verdict": "columns left out",
        "verdict_reason": "they move",
        "ranking": (Ranked("ridge", 1.0, 2.0, 4.0, 0.5, 0.4, float("nan"), True, ""),),
        "backtest": (Tested("ridge", "2001", "2000", float("nan"), False, 7, 1.5),),
        "forecast": Forecast(1.0, 0.5, 2.0, expected, expected, (ahead,), 3.0, "RMSE", 4),
        "reach_curve": (ReachLine(0.0, 1.0, 2.0, 3.0), ReachLine(1.0, 1.0, 2.0, 3.0)),
        "break_even": float("inf"),
        "columns": (
            {"name": "a", "weight": 1.0, "p_slope": 0.5, "slopes": (0.1, 0.9), "reason": "steady"},
        ),
        "evidence": (ColumnEvidence("a", True, (1.0, -1.0), 0.2, float("nan"), 0.9, "stays"),),
        "differences": ({"environment": "p", "n_rows": 3, "sentences": ("a is higher",)},),
        "cautions": ("rows are few",),
        "advice": ("name a time",),
        "quality": {
            "outcome": "",
            **dict.fromkeys(("predicted", "observed", "low", "high"), (0.1, 0.5)),
            "count": (3, 4),
            "held_out": True,
        },
    }


def reference(names=COLUMNS):
    rng = np.random.default_rng(0)
    d = len(names)
    X = rng.normal(size=(50, d))
    X[:9, 1] = np.nan
    return {
        "names": names,
        "groups": names,
        "columns": summarise(X),
        "weights": {"a": 0.5, "b": 0.0, "c": 1.0},
        "constant": np.zeros(1),
        "missed": names,
        "centre": np.zeros(d),
        "drift": Drift(np.zeros(d), np.full(d, np.inf), np.ones(d + 1), 0.5, 7),
        "misses": misses(rng.normal(size=(50, d)), rng.normal(size=(50, 1)), np.zeros(d)),
        "environments": ({"name": "p", "share": 0.5}, {"name": "q", "share": 0.5}),
    }


def deployed(**changes):
    """Return a model of numbers, with each kind of part."""
    whole = {
        "kind": "numbers",
        "target": "y",
        "predictor": Predictor(((linear(),), (hinges(), trees(), level())), np.array([0.25, 0.75])),
        "columns": COLUMNS,
        "environment_name": "site",
        "environment_levels": ("p", "q"),
        "intervals": np.array([[1.0, 1, 1, 1, 2, 3, 4, 5], [3.0, 3, 3, 3, 4, 5, 6, 7]]),
        "adaptation": {"sentence": "it moved", "figures": {"shift": 0.5, "n_rows": 7}},
        "summary": summary(),
        "reference": reference(),
    }
    return Deployed(**{**whole, **changes})


def timed():
    """Return a model with a slope in time."""
    line = LinearPart(np.ones((3, 1)), np.zeros(1), np.ones(1), 18_000.0)
    when = TimeColumn(np.empty(0), "when", "date", "ISO8601")
    return deployed(
        predictor=Predictor(((line, trees()),), np.ones(1)), time_name="when", time=when
    )


def messy(n=80):
    """A table of every kind of column."""
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "kind": rng.choice(["p", "q", "r"], n),
            "sold": rng.choice(["yes", "no"], n),
            "built": pd.date_range("2001-02-03", periods=n).strftime("%d.%m.%Y"),
            "opens": [f"{h % 24:02}:30" for h in range(n)],
        }
    )
    made.loc[::3, "size"] = None
    return made


def encoded():
    """Return a model of a table, with its encoder."""
    encoder = TableEncoder().fit(messy())
    names = encoder.encoding_.feature_names
    line = LinearPart(np.ones((len(names), 1)), np.zeros(1), np.zeros(1))
    return deployed(
        predictor=single(line), columns=names, encoder=encoder.encoding_, reference=None
    )


def labelled():
    """Return a model of three labels."""
    members = ((linear(3), hinges(3)), (trees(3), linear(3)))
    return deployed(
        kind="labels",
        predictor=Predictor(members, np.array([0.5, 0.5]), "softmax"),
        classes=np.array(["no", "perhaps", "yes"]),
        intervals=None,
        reference=None,
    )


def frame(n=20):
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(n, 3)), columns=COLUMNS)
    dates = pd.date_range("2019-04-14", periods=n).strftime("%Y-%m-%d")
    return made.assign(when=dates, site=rng.choice(["p", "q", "new"], n))


def packed(compression=zipfile.ZIP_STORED, **files):
    """Return an archive; ``records_json`` stands for records.json and so on."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_", "."), data)
    return buffer.getvalue()


def parts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.replace(".", "_"): archive.read(name) for name in archive.namelist()}


def relabelled(data, **label):
    return packed(**{**parts(data), "hetrisk_json": json.dumps(label)})


def edited(data, change):
    """Return a model file whose records went through ``change`` in place."""
    whole = parts(data)
    records = json.loads(whole["records_json"])
    change(records)
    return packed(**{**whole, "records_json": json.dumps(records)})


def part(records, kind):
    """The first part of a kind in the predictor of a file."""
    members = records["predictor"]["predictor"]["members"]
    return next(part for member in members for part in member if part["kind"] == kind)


def with_numbers(data, kind, name, change):
    """Return a file where ``change`` went over an array of a part, in place."""
    whole = parts(data)
    array = part(json.loads(whole["records_json"]), kind)[name]
    raw = bytearray(whole["arrays_bin"])
    whole_numbers = name in ("feature", "left", "right", "root", "output", "missing_left")
    dtype = np.dtype("<i8" if whole_numbers else "<f8")
    change(np.frombuffer(raw, dtype, int(np.prod(array["shape"])), array["at"]))
    return packed(**{**whole, "arrays_bin": bytes(raw)})
