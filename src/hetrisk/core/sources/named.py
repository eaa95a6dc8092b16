"""Environments that the user names: a label for every row, or responsibilities."""

from __future__ import annotations

from hetrisk.core.numerics.cells import Assignment, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import RowSource
from hetrisk.core.result import Labels
from hetrisk.core.sources.levels import Carried, Levels, merge_ordered, merge_unordered, n_folds
from hetrisk.core.sources.proposal import NAMED, Proposal, proposed

NAME = "environments"


def named(rows: RowSource, family: Family, labels: Labels) -> Proposal:
    """The partition that the labels make; where they are too many, neighbours or kinds of them."""
    names = labels.names
    base: Assignment = Carried(len(names))
    if labels.position is not None:
        base = Levels(labels.position, len(names))
    cells = cell_moments(rows, family, base, n_folds(len(names)))
    if labels.ordered:
        merged = merge_ordered(cells, names, len(names))
    else:
        merged = merge_unordered(cells, names, family.n_targets)
    how = "as named" if len(merged.names) == len(names) else f"{len(names)} labels merged"
    return proposed(NAME, NAMED, how, base, merged)
