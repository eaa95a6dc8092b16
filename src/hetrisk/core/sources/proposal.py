"""What a source of environments proposes: a partition of the rows, and its moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.cells import Assignment, CellMoments
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows
from hetrisk.core.sources.levels import Merged

NAMED, HINTED, VISIBLE, HIDDEN = "named", "hinted", "visible", "hidden"


@dataclass(frozen=True)
class Grouped(Assignment):
    """Levels of another assignment, merged."""

    base: Assignment
    lookup: tuple[int, ...]
    count: int

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return self.count

    def codes(self, rows: Rows) -> IntArray:
        """(n,) environment of each row; -1 for rows in none."""
        base = self.base.codes(rows)
        # Code -1 looks up the last entry: rows in no level are in no environment.
        table = np.append(np.array(self.lookup, dtype=np.int64), -1)
        codes: IntArray = table[base]
        return codes

    def shares(self, rows: Rows) -> FloatArray | None:
        """(n, K) responsibilities, or None where each row belongs to one environment."""
        shares = self.base.shares(rows)
        if shares is None:
            return None
        into = np.zeros((len(self.lookup), self.count))
        held = np.array(self.lookup) >= 0
        into[np.flatnonzero(held), np.array(self.lookup)[held]] = 1.0
        return shares @ into


@dataclass(frozen=True)
class Proposal:
    """One partition proposed by a source.

    Attributes
    ----------
    source : name of the source: "environments", or the name of a hint.
    kind : one of named, hinted, visible, hidden.
    how : how the partition was made, in a few words.
    assignment : applies it to any rows that carry the same columns.
    merged : its environments' moments and names.
    levels : moments of what was merged, within which effects of the target are recognised: where a
        regression takes hundreds of rows, a line takes a few.
    """

    source: str
    kind: str
    how: str
    assignment: Assignment
    merged: Merged
    levels: CellMoments

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the environments."""
        return self.merged.names


def proposed(
    source: str,
    kind: str,
    how: str,
    base: Assignment,
    merged: Merged,
    levels: CellMoments,
) -> Proposal:
    """A partition of merged levels."""
    lookup = tuple(int(k) for k in merged.lookup)
    return Proposal(source, kind, how, Grouped(base, lookup, len(merged.names)), merged, levels)
