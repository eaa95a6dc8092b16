"""Where rows live: in memory, in Parquet files, on a dask cluster; one map-reduce interface."""

from hetrisk.blocks.base import Blocks
from hetrisk.blocks.memory import ArrayBlocks

__all__ = ["ArrayBlocks", "Blocks"]
