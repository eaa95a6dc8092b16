"""Environments that the user names: a label for every row, or responsibilities."""

from __future__ import annotations

from hetrisk.core.numerics.cells import Assignment, CellMoments, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import IntArray, RowSource
from hetrisk.core.result import NamedEnvironments
from hetrisk.core.sources.levels import (
    Carried,
    Levels,
    Merged,
    merge_neighbours,
    merge_unordered,
    n_folds,
)
from hetrisk.core.sources.proposal import NAMED, Proposal, proposed

NAME = "environments"


def assignment(labels: NamedEnvironments) -> Assignment:
    """Where rows say that they belong."""
    if labels.position is None:
        return Carried(len(labels.names))
    return Levels(labels.position, len(labels.names))


def named(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    labels: NamedEnvironments,
    known: CellMoments | None = None,
) -> list[Proposal]:
    """The partition that the labels make; where they are too many, neighbours or kinds of them.

    With many and with fewer rows a coefficient, where that makes a difference.

    Numbers may be years, of which neighbours are alike, or merely number the sites: where they have
    to be merged, both are proposed.

    ``known`` are the moments of the labels by fold, where they are at hand.
    """
    names, base, cells = labels.names, assignment(labels), known
    if cells is None:
        cells = cell_moments(rows, family, base, n_folds(len(names)))
    merges = merge_neighbours(cells, names, len(names)) if labels.ordered else []
    if not (merges and _alike(merges[0], names)):
        # A fine partition of labels as they are may have been made as one of neighbours.
        made = {merged.names for merged in merges}
        kinds = merge_unordered(cells, names, family.n_targets, groups)
        merges += [merged for merged in kinds if merged.names not in made]
    return [_proposal(merged, names, base, cells) for merged in merges]


def _alike(merged: Merged, names: tuple[str, ...]) -> bool:
    """Whether every label is an environment, or in none for want of rows."""
    return len(merged.names) + int((merged.lookup < 0).sum()) == len(names)


def _proposal(
    merged: Merged, names: tuple[str, ...], base: Assignment, levels: CellMoments
) -> Proposal:
    how = "as named" if _alike(merged, names) else f"{len(names)} labels merged{merged.by}"
    return proposed(NAME, NAMED, f"{how}{merged.in_none(names)}", base, merged, levels)
