"""What must hold between the fields of a record: of trees above all, before anything follows them.

Each function says what a part of the file must do that it does not, or "" where all is well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hetrisk.columns.dates import DATE_FORMATS
from hetrisk.core.backtest.adaptation import Drift
from hetrisk.core.drift.columns import Columns
from hetrisk.core.predictor import HingesPart, LevelPart, TreesPart
from hetrisk.modelfile.deployed import MOST_HINGES
from hetrisk.tables.category import CategoryColumn
from hetrisk.tables.encoding import Encoding
from hetrisk.tables.time import MONTHS, NUMBER, PERIOD, PERIODS, TimeColumn

DEEPEST_TREE = 128  # every row takes so many steps in every tree


def wrong_time(time: TimeColumn) -> str:
    """Say what is wrong with the rule of a column of time."""
    units = tuple(PERIODS) if time.kind == PERIOD else ("",)
    formed = time.form in {"", MONTHS, *DATE_FORMATS} and (time.kind != NUMBER or not time.form)
    return "" if time.unit in units and formed else "have a kind, a unit and a format that fit"


def wrong_category(column: CategoryColumn) -> str:
    """Say what is wrong with a category: its shares are of rows."""
    right = len(column.shares) == len(column.levels) + column.other + column.absent
    return "" if right and abs(sum(column.shares) - 1) < 1e-6 else "have a share for each level"


def wrong_encoding(encoding: Encoding) -> str:
    """Say what is wrong between the columns of a table."""
    right = len(encoding.columns) == len(encoding.names) and encoding.names <= set(
        encoding.table_names
    )
    return "" if right else "use columns of the table, each once"


def wrong_level(part: LevelPart) -> str:
    """Say what is wrong with levels: one at least must be known."""
    return "" if len(part.level) else "know an environment"


def wrong_hinges(part: HingesPart) -> str:
    """Say what is wrong with hinges."""
    if len(part.feature) > MOST_HINGES:
        return f"have {MOST_HINGES:,} hinges at most"
    known = not len(part.feature) or part.feature.max() < part.n_features
    return "" if known else "bend columns that exist"


def wrong_drift(drift: Drift) -> str:
    """Say what is wrong with variances: one of the level, and one of each slope."""
    right = len(drift.variance) == 1 + len(drift.centre) and (drift.scale > 0).all()
    return "" if right and drift.noise > 0 else "have a positive scale for each column, and noise"


def wrong_trees(part: TreesPart) -> str:
    """Say what is wrong with the nodes of trees; "" for nothing.

    Nodes stand parents first, a leaf is its own child, and every node but the roots has one
    parent: so no path comes back, none is longer than ``depth``, and a file of n nodes costs a
    row at most n steps times the deepest tree allowed.
    """
    count = len(part.feature)
    at = np.arange(count)
    leaf = (part.left == at) & (part.right == at)
    split = ~leaf
    children = np.concatenate([part.left[split], part.right[split]])
    later = (part.left[split] > at[split]) & (part.right[split] > at[split])
    if not later.all() or (children.size and children.max() >= count):
        return "have children that stand after their parent"
    if not np.array_equal(np.sort(np.concatenate([children, part.root])), at):
        return "have nodes that each belong to one place of one tree"
    if part.feature.size and part.feature.max() >= part.n_features + part.uses_time:
        return "test columns that exist"
    if len(part.output) and part.output.max() >= len(part.base):
        return "add to scores that exist"
    if _depth(part, leaf) > part.depth:
        return "be as deep as it says"
    return ""


def _depth(part: TreesPart, leaf: np.ndarray) -> int:
    depth, level = 0, part.root[~leaf[part.root]]
    while level.size and depth <= part.depth:
        depth += 1
        level = np.concatenate([part.left[level], part.right[level]])
        level = level[~leaf[level]]
    return depth


def wrong_columns(made: Columns) -> str:
    """Say what is wrong with the summaries of columns."""
    shares = (made.mean >= 0) & (made.mean <= 1)
    return "" if shares[made.indicator].all() else "have a share for each column of zeros and ones"


def wrong_summary(made: dict[str, Any]) -> str:
    """Say what is wrong between the fields of a summary."""
    chosen = sum(line.chosen for line in made["ranking"])
    if made["ranking"] and (chosen != 1 or made["forecast"] is None):
        return "choose one candidate and foretell its error"
    return ""


def wrong_reference(made: dict[str, Any]) -> str:
    """Say what is wrong between the fields of a reference."""
    lines, missed, centre = made["misses"], made["missed"], made["centre"]
    if lines is None:
        return ""
    if not len(lines.line) - 1 == len(missed) == len(centre):
        return "have a line for each of its columns"
    return "" if set(missed) <= set(made["names"]) else "have lines of its own columns"
