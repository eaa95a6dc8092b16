"""The four records of a model file, as data: every field, its kind, its bounds, its default.

A new field gets ``Field(kind, since=version, default=...)`` and its record the next version below:
files of before take the default; versions of before refuse files that hold it, in a sentence. A
field is never renamed, nor given another meaning. Dimensions: d columns of the predictor, K scores
of a row (1 for numbers), E known environments; p columns of the table, for what `check` compares.

=========  ======================================================================================
encoder    how a table becomes numbers: what each column meant, how time is read
predictor  what is predicted, and from what: coefficients, levels and trees as arrays
summary    what the page is made of
reference  what later rows are held against
=========  ======================================================================================
"""

from __future__ import annotations

from typing import Any

from hetrisk.core.drift.columns import Columns
from hetrisk.core.drift.rise import Misses
from hetrisk.core.predictor import PARTS, Predictor
from hetrisk.core.result import (
    ColumnEvidence,
    Expected,
    Forecast,
    Horizon,
    Ranked,
    ReachLine,
    Tested,
)
from hetrisk.modelfile.kinds import (
    Array,
    Field,
    Kind,
    Labels,
    Many,
    Maybe,
    Named,
    Number,
    OneOf,
    Plain,
    Record,
    Text,
    Truth,
    Whole,
)
from hetrisk.modelfile.trees import DEEPEST_TREE, MOST_FEATURES, wrong_level, wrong_trees

VERSIONS = {"encoder": 1, "predictor": 1, "summary": 1, "reference": 1}
KINDS = ("numbers", "labels")
LARGEST = 1e300  # of a number that is added to others: sums of a few stay finite

NAME = Text(10_000)
SENTENCE = Text(100_000)
FIGURE = Number(nan=True, inf=True)
SHARE = Number(0.0, 1.0, nan=True)
COUNT = Whole(0)

# The predictor.

LINEAR = Record(
    {
        "coef": Array("number", ("d", "K"), -LARGEST, LARGEST),
        "intercept": Array("number", ("K",), -LARGEST, LARGEST),
        "slope": Array("number", ("K",), -LARGEST, LARGEST),
        "origin": Number(-LARGEST, LARGEST),
    },
    PARTS["linear"],
)
LEVEL = Record(
    {
        "level": Array("number", ("E", "K"), -LARGEST, LARGEST),
        "other": Array("number", ("K",), -LARGEST, LARGEST),
    },
    PARTS["level"],
    wrong_level,
)
TREES = Record(
    {
        "n_features": Whole(0, MOST_FEATURES, dim="d"),
        "uses_time": Truth(),
        "depth": Whole(0, DEEPEST_TREE),
        "base": Array("number", ("K",), -LARGEST, LARGEST),
        "root": Array("whole", ("trees",), 0),
        "output": Array("whole", ("trees",), 0),
        "feature": Array("whole", ("nodes",), 0),
        "threshold": Array("number", ("nodes",), inf=True),
        "left": Array("whole", ("nodes",), 0),
        "right": Array("whole", ("nodes",), 0),
        "missing_left": Array("whole", ("nodes",), 0, 1),
        "value": Array("number", ("nodes",), -LARGEST, LARGEST),
    },
    PARTS["trees"],
    wrong_trees,
)
PART = OneOf({"linear": LINEAR, "level": LEVEL, "trees": TREES})
MODEL = Record(
    {
        "link": Text(words=("identity", "softmax")),
        "weight": Array("number", ("members",), 0.0, 1.0),
        "members": Many(Many(PART, least=1, most=100), dim="members", least=1, most=1_000),
    },
    Predictor,
    lambda made: "" if abs(made.weight.sum() - 1) < 1e-6 else "have weights that sum to one",
)
ADAPTATION = Record({"sentence": SENTENCE, "figures": Plain()})
INTERVALS = Record(
    {
        "levels": Array("number", ("levels",), 0.0, 1.0),
        "horizons": Array("number", ("horizons",), 0.0, LARGEST, nan=True),
        "quantiles": Array("number", ("horizons", "levels"), 0.0, LARGEST),
    }
)
PREDICTOR = Record(
    {
        "kind": Text(words=KINDS),
        "target": NAME,
        "columns": Many(NAME, dim="d", most=MOST_FEATURES, differ=True),
        "scores": Whole(1, 10_000, dim="K"),
        "classes": Maybe(Labels("K", least=2)),
        "environment_name": Maybe(NAME),
        "environment_levels": Many(NAME, dim="E", differ=True),
        "model": MODEL,
        "intervals": Maybe(INTERVALS),
        "adaptation": Maybe(ADAPTATION),
    }
)

# The encoder.

# A zone is a name of the tz database or an offset: pandas would also take the path of a file.
ZONE = r"(?!dateutil)[A-Za-z]*|[A-Z][A-Za-z_]+(/[A-Z][A-Za-z0-9_+-]+){1,2}|(UTC)?[+-]\d\d:?(\d\d)?"
TIME = Record(
    {
        "version": Whole(1, 1),
        "name": NAME,
        "kind": Text(words=("date", "number", "period")),
        "form": Text(200),
        "unit": Text(words=("", "Q", "M", "W")),
        "zone": Text(200, pattern=ZONE),
    }
)
ENCODER = Record(
    {
        "table": Maybe(Plain()),
        "time_name": Maybe(NAME),
        "time": Maybe(TIME),
    }
)

# The summary.

EXPECTED = Record({"mean": FIGURE, "lower": FIGURE, "upper": FIGURE}, Expected)
RANKED = Record(
    {
        "candidate": NAME,
        **dict.fromkeys(("mean", "worst", "criterion"), FIGURE),
        **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), FIGURE),
        "chosen": Truth(),
        "note": SENTENCE,
    },
    Ranked,
)
TESTED = Record(
    {
        "candidate": NAME,
        "environment": NAME,
        "cut": NAME,
        "horizon": FIGURE,
        "known": Truth(),
        "n_rows": COUNT,
        "error": FIGURE,
    },
    Tested,
)
BY_HORIZON = Record(
    {
        "horizon": FIGURE,
        "label": NAME,
        **dict.fromkeys(("chosen", "plain", "constant"), EXPECTED),
        "n_environments": COUNT,
    },
    Horizon,
)
FORECAST = Record(
    {
        **dict.fromkeys(("mean", "lower", "upper"), FIGURE),
        **dict.fromkeys(("plain", "constant"), EXPECTED),
        "by_horizon": Many(BY_HORIZON),
        "plain_fails_at": FIGURE,
        "unit": NAME,
        "n_environments": COUNT,
    },
    Forecast,
)
REACH_LINE = Record(dict.fromkeys(("reach", "chosen", "plain", "constant"), FIGURE), ReachLine)
EVIDENCE = Record(
    {
        "column": NAME,
        "kept": Truth(),
        "coefficients": Many(FIGURE),
        **dict.fromkeys(("p_slope", "p_column", "stability"), SHARE),
        "reason": SENTENCE,
    },
    ColumnEvidence,
)
PAIRS = Many(Many(SENTENCE, least=2, most=2))
SENTENCES = Many(SENTENCE)
ORIGIN = Record(
    {
        **dict.fromkeys(("source", "target", "task"), NAME),
        "reason": SENTENCE,
        **dict.fromkeys(("n_rows", "n_columns"), COUNT),
        **dict.fromkeys(("time", "environment", "weight"), Field(NAME, default="")),
        **dict.fromkeys(("notes", "left_out"), Field(PAIRS, default=())),
        "leaks": Field(SENTENCES, default=()),
        **dict.fromkeys(("command", "version"), Field(SENTENCE, default="")),
    }
)
COLUMN_LINE = Record(
    {
        "name": NAME,
        "weight": FIGURE,
        "p_slope": SHARE,
        "slopes": Many(FIGURE, least=2, most=2),
        "reason": SENTENCE,
    }
)
DIFFERENCE = Record({"environment": NAME, "n_rows": COUNT, "sentences": SENTENCES})
QUALITY = Record(
    {
        "outcome": NAME,
        **dict.fromkeys(("predicted", "observed", "low", "high"), Many(FIGURE, dim="groups")),
        "count": Many(COUNT, dim="groups"),
        "held_out": Truth(),
    }
)


def wrong_summary(made: dict[str, Any]) -> str:
    """Say what is wrong between the fields of a summary."""
    chosen = sum(line.chosen for line in made["ranking"])
    if made["ranking"] and (chosen != 1 or made["forecast"] is None):
        return "choose one candidate and foretell its error"
    return ""


SUMMARY = Record(
    {
        "origin": Field(Maybe(ORIGIN), default=None),
        "asked": Field(Maybe(NAME), default=None),
        "reach": Field(FIGURE, default=1.0),
        "verdict": Field(NAME, default=""),
        "verdict_reason": Field(SENTENCE, default=""),
        "ranking": Field(Many(RANKED), default=()),
        "backtest": Field(Many(TESTED), default=()),
        "forecast": Field(Maybe(FORECAST), default=None),
        "reach_curve": Field(Many(REACH_LINE), default=()),
        "break_even": Field(FIGURE, default=float("inf")),
        "columns": Field(Many(COLUMN_LINE), default=()),
        "evidence": Field(Many(EVIDENCE), default=()),
        "differences": Field(Many(DIFFERENCE), default=()),
        **dict.fromkeys(("cautions", "advice"), Field(SENTENCES, default=())),
        "quality": Field(Maybe(QUALITY), default=None),
    },
    check=wrong_summary,
)

# The reference.

ANY = {"nan": True, "inf": True}
COLUMNS = Record(
    {
        "n_rows": COUNT,
        **dict.fromkeys(("mean", "sd", "low", "high"), Array("number", ("p",), **ANY)),
        "missing": Array("number", ("p",), 0.0, 1.0),
        "points": Array("number", ("q", "p"), **ANY),
        "cdf": Array("number", ("q", "p"), 0.0, 1.0, nan=True),
        "indicator": Array("truth", ("p",)),
    },
    Columns,
)
MISSES = Record(
    {
        "n": COUNT,
        "products": Array("number", ("z", "z"), **ANY),
        "line": Array("number", ("z", "K"), **ANY),
        "loss": FIGURE,
        "noise": FIGURE,
        "error": Array("number", ("z", "K"), **ANY),
    },
    Misses,
)


def wrong_reference(made: dict[str, Any]) -> str:
    """Say what is wrong between the fields of a reference."""
    lines, missed, centre = made["misses"], made["missed"], made["centre"]
    if lines is None:
        return ""
    if not len(lines.line) - 1 == len(missed) == len(centre):
        return "have a line for each of its columns"
    return "" if set(missed) <= set(made["names"]) else "have lines of its own columns"


REFERENCE = Record(
    {
        "names": Many(NAME, dim="p", differ=True),
        "groups": Many(NAME, dim="p"),
        "columns": COLUMNS,
        "levels": Named(Many(NAME)),
        "weights": Named(FIGURE),
        "constant": Array("number", ("K",), -LARGEST, LARGEST),
        "misses": Maybe(MISSES),
        "missed": Many(NAME, differ=True),
        "centre": Array("number", ("m",), -LARGEST, LARGEST),
        "environments": Many(Record({"name": NAME, "share": SHARE})),
        **dict.fromkeys(("last_time", "period"), FIGURE),
    },
    check=wrong_reference,
)
RECORDS: dict[str, Kind] = {
    "encoder": ENCODER,
    "predictor": PREDICTOR,
    "summary": SUMMARY,
    "reference": Maybe(REFERENCE),
}
