"""Where rows live: in memory, in Parquet files, on a dask cluster; one map-reduce interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetrisk.blocks.backends import as_blocks, is_out_of_core
from hetrisk.blocks.base import Blocks
from hetrisk.blocks.memory import ArrayBlocks

if TYPE_CHECKING:
    from hetrisk.blocks.dask import DaskBlocks
    from hetrisk.blocks.parquet import ParquetBlocks

__all__ = [
    "ArrayBlocks",
    "Blocks",
    "DaskBlocks",
    "ParquetBlocks",
    "as_blocks",
    "is_out_of_core",
]

# Modules that need an optional dependency, imported on first use, and the extra that brings it.
_OPTIONAL = {
    "DaskBlocks": ("hetrisk.blocks.dask", "dask"),
    "ParquetBlocks": ("hetrisk.blocks.parquet", "parquet"),
}


def __getattr__(name: str) -> Any:
    if name not in _OPTIONAL:
        raise AttributeError(f"module 'hetrisk.blocks' has no attribute {name!r}")
    module, extra = _OPTIONAL[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{name} needs {error.name}, which is not installed: pip install 'hetrisk[{extra}]'."
        ) from error


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
