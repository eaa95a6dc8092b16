"""Tables as people keep them: read, understood and turned into numbers, with notes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetrisk.tables.columns import Note
    from hetrisk.tables.encoder import TableEncoder
    from hetrisk.tables.errors import TableError
    from hetrisk.tables.inference import LeftOut
    from hetrisk.tables.inputs import Table
    from hetrisk.tables.leaks import Leak, find_leaks
    from hetrisk.tables.reading import read_table
    from hetrisk.tables.target import Target, read_target
    from hetrisk.tables.time import TimeColumn, read_environment, read_time

__all__ = [
    "Leak",
    "LeftOut",
    "Note",
    "Table",
    "TableEncoder",
    "TableError",
    "Target",
    "TimeColumn",
    "find_leaks",
    "read_environment",
    "read_table",
    "read_target",
    "read_time",
]

# On first use: who only encodes a table needs no scikit-learn, which the encoder's shell does.
_MODULES = {
    "columns": ("Note",),
    "encoder": ("TableEncoder",),
    "errors": ("TableError",),
    "inference": ("LeftOut",),
    "leaks": ("Leak", "find_leaks"),
    "inputs": ("Table",),
    "reading": ("read_table",),
    "target": ("Target", "read_target"),
    "time": ("TimeColumn", "read_environment", "read_time"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hetrisk.tables' has no attribute {name!r}")
    return getattr(import_module(f"hetrisk.tables.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
