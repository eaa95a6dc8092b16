"""Tables as people keep them: read, understood and turned into numbers, with notes."""

from hetrisk.tables.columns import Note
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.errors import TableError
from hetrisk.tables.inference import LeftOut
from hetrisk.tables.leaks import Leak, find_leaks
from hetrisk.tables.reading import Table, read_table
from hetrisk.tables.target import Target, read_target

__all__ = [
    "Leak",
    "LeftOut",
    "Note",
    "Table",
    "TableEncoder",
    "TableError",
    "Target",
    "find_leaks",
    "read_table",
    "read_target",
]
