"""Scale, reference and moments of named environments, from one pass over the rows in memory.

Sums of products keep their digits where columns are near zero, in whatever unit, but where the
columns lie is known after a pass only. So columns that a few rows show to be far from zero have the
centre of these taken off; the centre and spread of all rows follow from the sums, and the moments
of the environments are moved to these. Where that would cost digits, nothing is given, and a second
pass is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.blocks import ArrayBlocks, Blocks
from hetrisk.core.drift.reference import Profile, indicators
from hetrisk.core.numerics.cells import CellMoments, CellPass
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray, Rows
from hetrisk.core.numerics.spread import MODERATE, ColumnSpread, column_spread, extremes
from hetrisk.core.result import NamedEnvironments
from hetrisk.core.sources.levels import n_folds
from hetrisk.core.sources.named import assignment
from hetrisk.estimators.scales import Scale

FEW = 1000  # rows that are looked at first
NEAR = 10.0  # spreads from zero up to which a column may lie: squares lose two of sixteen digits
LARGER = 4  # times as large as usual are the blocks: each environment and fold is a product
FAR = 100.0  # spreads from the centre of the few to that of all rows that cost too many digits


@dataclass(frozen=True)
class Sums:
    """What blocks of rows add up to; the p columns are (X, y).

    Attributes
    ----------
    n : rows.
    low, high : (p,) extremes.
    indicator : (p,) columns of zeros and ones.
    cells : moments of every environment and fold, less the centre of a few rows.
    """

    n: int
    low: FloatArray
    high: FloatArray
    indicator: BoolArray
    cells: CellMoments

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.n + other.n,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.indicator & other.indicator,
            self.cells + other.cells,
        )


@dataclass(frozen=True)
class FirstPass:
    """The profile of all rows, and the moments of the environments less a ``centre`` (p,)."""

    profile: Profile
    cells: CellMoments
    centre: FloatArray

    def standardised(self, scale: Scale) -> CellMoments:
        """The moments on the scale of all rows."""
        return self.cells.moved(scale.centre - self.centre, scale.divisor)


def first_pass(rows: Blocks, family: Family, labels: NamedEnvironments | None) -> FirstPass | None:
    """Pass once over unweighted rows in memory that name their environments, for a number y.

    None for others, and where something is missing or infinite.
    """
    if not isinstance(rows, ArrayBlocks) or rows.weight is not None or not family.closed_form:
        return None
    if labels is None or labels.position is None:
        return None
    few = column_spread(rows.strided(FEW))
    if np.abs(few.exponent).max() > 0:  # numbers whose squares may not be doubles
        return None
    centre = np.where(np.abs(few.centre) > NEAR * few.spread, few.centre, 0.0)
    folds = n_folds(len(labels.names))
    cells = CellPass(family, assignment(labels), folds, np.append(0.0, centre))
    found = rows.in_larger_blocks(LARGER).sum(_Pass(cells))
    spread = _spread(found, centre)
    if spread is None:
        return None
    profile = Profile(found.n, spread, spread, found.indicator, np.zeros(0))
    return FirstPass(profile, found.cells, centre)


@dataclass(frozen=True)
class _Pass:
    cells: CellPass

    def __call__(self, rows: Rows) -> Sums:
        # Of the copy, which lies in the cache: the table itself is read from memory once.
        Z = self.cells.columns(rows)
        low, high = (end[1:] for end in extremes(Z))
        with np.errstate(over="ignore", invalid="ignore"):  # such rows get a second pass
            cells = self.cells.moments(rows, Z)
        return Sums(len(rows), low, high, indicators(rows, low, high), cells)


def _spread(found: Sums, centre: FloatArray) -> ColumnSpread | None:
    """Spread of the columns over all rows; None where digits would be lost."""
    size = np.maximum(np.abs(found.low), np.abs(found.high))
    if not (size < 2.0**MODERATE).all():
        return None
    gram, n = found.cells.gram.sum(axis=(0, 1)), float(found.n)
    mean = gram[0, 1:] / n
    scatter = np.diagonal(gram)[1:] - n * mean**2
    spread = ColumnSpread(
        n,
        np.zeros(len(mean), dtype=np.int64),
        centre + mean,
        scatter,
        found.low,
        found.high,
    )
    far = n * mean**2 > FAR**2 * scatter
    return None if (far & ~spread.constant).any() else spread
