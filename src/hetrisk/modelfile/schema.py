"""The four records of a model file, as data: every field, its kind, its bounds, its default.

A new field gets ``Field(kind, since=version, default=...)`` and its record the next version below:
files of before take the default; versions of before refuse files that hold it, in a sentence. A
field is never renamed, nor given another meaning. Dimensions: d columns of the predictor, K scores
of a row (1 for numbers), E known environments.

=========  ======================================================================================
encoder    how a table becomes numbers: what each column meant, how time is read
predictor  what is predicted, and from what: coefficients, levels and trees as arrays
summary    what the page is made of
reference  what later rows are held against
=========  ======================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk.columns.dates import DATE_FORMATS
from hetrisk.core import result
from hetrisk.core.backtest.adaptation import Drift
from hetrisk.core.backtest.foretell import LEVELS
from hetrisk.core.drift.columns import Columns
from hetrisk.core.drift.rise import Misses
from hetrisk.core.predictor import PARTS, Predictor
from hetrisk.modelfile import checks
from hetrisk.modelfile.kinds import (
    Array,
    Field,
    Kind,
    Label,
    Many,
    Maybe,
    Named,
    Number,
    OneOf,
    Record,
    Text,
    Truth,
    Whole,
)
from hetrisk.tables.category import CategoryColumn
from hetrisk.tables.columns import BooleanColumn, ClockColumn, DateColumn, NumberColumn
from hetrisk.tables.encoding import Encoding
from hetrisk.tables.notation import MARK_NAMES, Notation
from hetrisk.tables.time import PERIODS, TimeColumn

VERSIONS = {"encoder": 1, "predictor": 1, "summary": 1, "reference": 1}
MOST_FEATURES = 5_000
LARGEST = 1e300  # of a number that is added to others: sums of a few stay finite

NAME, SENTENCE = Text(10_000), Text(100_000)
FIGURE = Number(-1e150, 1e150, nan=True, inf=True)  # its square is a number too
SHARE = Number(0.0, 1.0, nan=True)
COUNT = Whole(0)
SENTENCES, PAIRS = Many(SENTENCE), Many(Many(SENTENCE, least=2, most=2))


def of(kind: Kind, names: str, **more: Any) -> dict[str, Field]:
    """Return fields of one kind; ``default=`` is what they are where nothing is said."""
    return dict.fromkeys(names.split(), Field(kind, **more))


def numbers(*shape: str) -> Array:
    """Return finite numbers that can be added up."""
    return Array("number", shape, -LARGEST, LARGEST)


def figures(*shape: str) -> Array:
    """Return numbers that are shown or compared, missing and infinite ones among them."""
    return Array("number", shape, -1e150, 1e150, nan=True, inf=True)


# The encoder.
TIME = Record(
    of(Whole(1, 1), "version")
    | of(Text(200), "name form")
    | of(Text(words=("date", "number", "period")), "kind")
    | of(Text(words=("", *PERIODS)), "unit"),
    lambda version, **rule: TimeColumn(np.empty(0), **rule),
    checks.wrong_time,
    parts=lambda time: {"version": 1, **{k: v for k, v in vars(time).items() if k != "value"}},
)
MEASURED = (
    of(SENTENCE, "name")
    | of(Number(-LARGEST, LARGEST), "fill")
    | of(SENTENCES, "excused")
    | of(Truth(), "gaps")
)
NUMBERS = Record(
    MEASURED
    | of(Text(words=(".", ",")), "decimal")
    | of(Text(words=("", *MARK_NAMES)), "thousands")
    | of(SENTENCE, "unit"),
    lambda decimal, thousands, unit, **fields: NumberColumn(
        **fields, notation=Notation(decimal, thousands, unit)
    ),
    parts=lambda column: (
        {name: value for name, value in vars(column).items() if name != "notation"}
        | vars(column.notation)
    ),
)
TRUTHS = Record(MEASURED | of(Many(SENTENCE, least=2, most=2), "words"), BooleanColumn)
DATES = Record(MEASURED | of(Text(words=tuple(DATE_FORMATS)), "form"), DateColumn)
CATEGORY = Record(
    of(SENTENCE, "name")
    | of(Many(SENTENCE, differ=True), "levels")
    | of(Many(Number(0.0, 1.0), least=2), "shares")
    | of(Truth(), "other absent")
    | of(Maybe(Many(SENTENCE)), "rare"),
    lambda rare, **fields: CategoryColumn(**fields, rare=None if rare is None else frozenset(rare)),
    checks.wrong_category,
    parts=lambda column: vars(column) | {"rare": column.rare and sorted(column.rare)},
)
COLUMN = OneOf(
    {
        "number": NUMBERS,
        "clock": Record(MEASURED, ClockColumn),
        "boolean": TRUTHS,
        "date": DATES,
        "category": CATEGORY,
    }
)
ENCODING = Record(
    of(Whole(1, 1), "version")
    | of(Many(SENTENCE, differ=True), "table_names")
    | of(Many(COLUMN, least=1), "columns"),
    lambda version, columns, table_names: Encoding(columns, table_names),
    checks.wrong_encoding,
    parts=lambda made: {"version": 1, "table_names": made.table_names, "columns": made.columns},
)
TABLE = Record(
    of(ENCODING, "columns"), lambda columns: columns, parts=lambda made: {"columns": made}
)
ENCODER = Record(
    of(Maybe(TABLE), "encoder") | of(Maybe(NAME), "time_name") | of(Maybe(TIME), "time")
)

# The predictor.
LINEAR = Record(
    of(numbers("d", "K"), "coef")
    | of(numbers("K"), "intercept slope")
    | of(Number(-LARGEST, LARGEST), "origin"),
    PARTS["linear"],
)
LEVEL = Record(
    of(numbers("E", "K"), "level") | of(numbers("K"), "other"), PARTS["level"], checks.wrong_level
)
HINGES = Record(
    of(Whole(0, MOST_FEATURES, dim="d"), "n_features")
    | of(Array("whole", ("hinges",), 0), "feature")
    | of(numbers("hinges"), "knot")
    | of(numbers("hinges", "K"), "coef")
    | of(numbers("K"), "intercept"),
    PARTS["hinges"],
    checks.wrong_hinges,
)
TREES = Record(
    of(Whole(0, MOST_FEATURES, dim="d"), "n_features")
    | of(Truth(), "uses_time")
    | of(Whole(0, checks.DEEPEST_TREE), "depth")
    | of(numbers("K"), "base")
    | of(Array("whole", ("trees",), 0), "root output")
    | of(Array("whole", ("nodes",), 0), "feature left right")
    | of(Array("whole", ("nodes",), 0, 1), "missing_left")
    | of(Array("number", ("nodes",), inf=True), "threshold")
    | of(numbers("nodes"), "value"),
    PARTS["trees"],
    checks.wrong_trees,
)
PART = OneOf({"linear": LINEAR, "level": LEVEL, "hinges": HINGES, "trees": TREES})
MODEL = Record(
    of(Text(words=("identity", "softmax")), "link")
    | of(Array("number", ("members",), 0.0, 1.0), "weight")
    | of(Many(Many(PART, least=1, most=100), dim="members", least=1, most=1_000), "members"),
    Predictor,
    lambda made: "" if abs(made.weight.sum() - 1) < 1e-6 else "have weights that sum to one",
)
ADAPTATION = Record(of(SENTENCE, "sentence") | of(Named(FIGURE), "figures"))
PREDICTOR = Record(
    of(Text(words=("numbers", "labels")), "kind")
    | of(NAME, "target")
    | of(Many(NAME, dim="d", most=MOST_FEATURES, differ=True), "columns")
    | of(Whole(1, 1_000, dim="K"), "n_scores")
    | of(Maybe(Many(Label(), dim="K", least=2, differ=True)), "classes")
    | of(Maybe(NAME), "environment_name")
    | of(Many(NAME, dim="E", differ=True), "environment_levels")
    | of(MODEL, "predictor")
    | of(Maybe(Array("number", ("horizons", 1 + len(LEVELS)), 0.0, LARGEST)), "intervals")
    | of(FIGURE, "last_time period")
    | of(Maybe(ADAPTATION), "adaptation")
)

# The summary.
EXPECTED = Record(of(FIGURE, "mean lower upper"), result.Expected)
RANKED = Record(
    of(NAME, "candidate")
    | of(FIGURE, "mean worst criterion ratio ratio_low ratio_high")
    | of(Truth(), "chosen")
    | of(SENTENCE, "note"),
    result.Ranked,
)
TESTED = Record(
    of(NAME, "candidate environment cut")
    | of(FIGURE, "horizon error")
    | of(Truth(), "known")
    | of(COUNT, "n_rows"),
    result.Tested,
)
BY_HORIZON = Record(
    of(FIGURE, "horizon")
    | of(NAME, "label")
    | of(EXPECTED, "chosen plain constant")
    | of(COUNT, "n_environments"),
    result.Horizon,
)
FORECAST = Record(
    of(FIGURE, "mean lower upper plain_fails_at")
    | of(EXPECTED, "plain constant")
    | of(Many(BY_HORIZON), "by_horizon")
    | of(NAME, "unit")
    | of(COUNT, "n_environments"),
    result.Forecast,
)
REACH_LINE = Record(of(FIGURE, "reach chosen plain constant"), result.ReachLine)
EVIDENCE = Record(
    of(NAME, "column")
    | of(Truth(), "kept")
    | of(Many(FIGURE), "coefficients")
    | of(SHARE, "p_slope p_column stability")
    | of(SENTENCE, "reason"),
    result.ColumnEvidence,
)
ORIGIN = Record(
    of(NAME, "source target task")
    | of(SENTENCE, "reason")
    | of(COUNT, "n_rows n_columns")
    | of(NAME, "time environment weight version", default="")
    | of(PAIRS, "notes left_out", default=())
    | of(SENTENCES, "leaks", default=())
    | of(SENTENCE, "command", default="")
)
COLUMN_LINE = Record(
    of(NAME, "name")
    | of(FIGURE, "weight")
    | of(SHARE, "p_slope")
    | of(Many(FIGURE, least=2, most=2), "slopes")
    | of(SENTENCE, "reason")
)
DIFFERENCE = Record(of(NAME, "environment") | of(COUNT, "n_rows") | of(SENTENCES, "sentences"))
QUALITY = Record(
    of(NAME, "outcome")
    | of(Many(FIGURE, dim="groups"), "predicted observed low high")
    | of(Many(COUNT, dim="groups"), "count")
    | of(Truth(), "held_out")
)
SUMMARY = Record(
    of(Maybe(ORIGIN), "origin", default=None)
    | of(FIGURE, "reach", default=1.0)
    | of(NAME, "verdict", default="")
    | of(SENTENCE, "verdict_reason", default="")
    | of(Many(RANKED), "ranking", default=())
    | of(Many(TESTED), "backtest", default=())
    | of(Maybe(FORECAST), "forecast", default=None)
    | of(Many(REACH_LINE), "reach_curve", default=())
    | of(FIGURE, "break_even", default=float("inf"))
    | of(Many(COLUMN_LINE), "columns", default=())
    | of(Many(EVIDENCE), "evidence", default=())
    | of(Many(DIFFERENCE), "differences", default=())
    | of(SENTENCES, "cautions advice", default=())
    | of(Maybe(QUALITY), "quality", default=None),
    check=checks.wrong_summary,
)

# The reference.
COLUMNS = Record(
    of(COUNT, "n_rows")
    | of(figures("d"), "mean sd low high")
    | of(Array("number", ("d",), 0.0, 1.0), "missing")
    | of(figures("q", "d"), "points")
    | of(Array("number", ("q", "d"), 0.0, 1.0, nan=True), "cdf")
    | of(Array("truth", ("d",)), "indicator"),
    Columns,
    checks.wrong_columns,
)
MISSES = Record(
    of(COUNT, "n")
    | of(FIGURE, "loss noise")
    | of(figures("z", "z"), "products")
    | of(figures("z", "K"), "line error"),
    Misses,
)
DRIFT = Record(
    of(numbers("d"), "centre")
    | of(Array("number", ("d",), 0.0, inf=True), "scale")
    | of(Array("number", ("coefficients",), 0.0, LARGEST), "variance")
    | of(Number(0.0, LARGEST), "noise")
    | of(COUNT, "n_environments"),
    Drift,
    checks.wrong_drift,
)
REFERENCE = Record(
    of(Many(NAME, dim="d", differ=True), "names")
    | of(Many(NAME, dim="d"), "groups")
    | of(COLUMNS, "columns")
    | of(Named(FIGURE), "weights")
    | of(numbers("K"), "constant")
    | of(Maybe(MISSES), "misses")
    | of(Many(NAME, differ=True), "missed")
    | of(numbers("m"), "centre")
    | of(Many(Record(of(NAME, "name") | of(SHARE, "share"))), "environments")
    | of(Maybe(DRIFT), "drift", default=None),
    check=checks.wrong_reference,
)
RECORDS = {
    "encoder": ENCODER,
    "predictor": PREDICTOR,
    "summary": Record(of(SUMMARY, "summary")),
    "reference": Record(of(Maybe(REFERENCE), "reference")),
}
