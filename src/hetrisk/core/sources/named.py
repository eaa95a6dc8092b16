"""Environments that the user names: a label for every row, or responsibilities."""

from __future__ import annotations

from hetrisk.core.numerics.cells import Assignment, CellMoments, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import RowSource
from hetrisk.core.result import NamedEnvironments
from hetrisk.core.sources.levels import Carried, Levels, merge_ordered, merge_unordered, n_folds
from hetrisk.core.sources.proposal import NAMED, Proposal, proposed

NAME = "environments"


def assignment(labels: NamedEnvironments) -> Assignment:
    """Where rows say that they belong."""
    if labels.position is None:
        return Carried(len(labels.names))
    return Levels(labels.position, len(labels.names))


def named(
    rows: RowSource, family: Family, labels: NamedEnvironments, known: CellMoments | None = None
) -> Proposal:
    """The partition that the labels make; where they are too many, neighbours or kinds of them.

    ``known`` are the moments of the labels by fold, where they are at hand.
    """
    names, base, cells = labels.names, assignment(labels), known
    if cells is None:
        cells = cell_moments(rows, family, base, n_folds(len(names)))
    if labels.ordered:
        merged = merge_ordered(cells, names, len(names))
    else:
        merged = merge_unordered(cells, names, family.n_targets)
    none = merged.in_none(names)
    alike = len(merged.names) + int((merged.lookup < 0).sum()) == len(names)
    how = "as named" if alike else f"{len(names)} labels merged"
    return proposed(NAME, NAMED, f"{how}{none}", base, merged)
