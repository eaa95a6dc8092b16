"""Where the real tables come from: a path, a folder of the user's, the cache, or OpenML.

A table is brought to one canonical form (the columns used, numbers as floats, text stripped,
rows sorted), so that a task draws the same rows whichever copy it was given, and its checksum is
that of the values, not of a file format. Many public copies are altered: a table whose checksum
differs is refused unless the caller says ``verify=False``.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

ENVIRONMENT_VARIABLE = "HETRISK_DATA"
MISSING = "?"
DECIMALS = 6  # of the tables' numbers: readers differ in the last bit of a double


@dataclass(frozen=True)
class Table:
    """A public table that the package knows but does not ship.

    Attributes
    ----------
    title : what it is, for messages.
    files : file names it goes by; each may also be gzipped (``.gz``).
    numbers, words : the columns used, numeric and text.
    n_rows, checksum : of the canonical form.
    licence : of the data.
    obtain : one sentence on how to get it.
    openml : number of the data set at OpenML, or None if it may not be downloaded.
    renamed : column names that other copies use.
    """

    title: str
    files: tuple[str, ...]
    numbers: tuple[str, ...]
    words: tuple[str, ...]
    n_rows: int
    checksum: str
    licence: str
    obtain: str
    openml: int | None = None
    renamed: Mapping[str, str] = field(default_factory=dict, hash=False)


def load_table(
    table: Table,
    path: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    verify: bool = True,
) -> pd.DataFrame:
    """Find a table and return it in canonical form.

    Looks at ``path`` (a file, or a folder that holds it), else in the folder that the
    environment variable ``HETRISK_DATA`` names, else in the cache, else downloads it from OpenML
    into the cache. The frame is shared between calls: do not change it.
    """
    found = _locate(table, path)
    if found is None and download and table.openml is not None:
        found = _download(table, table.openml, verify)
    if found is None:
        raise FileNotFoundError(_advice(table))
    return _read(table, found, found.stat().st_mtime_ns, verify)


def cache_folder() -> Path:
    """Return the folder that downloads are kept in: ``$XDG_CACHE_HOME/hetrisk``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hetrisk"


def canonical(frame: pd.DataFrame, table: Table, origin: str) -> pd.DataFrame:
    """Keep the columns used, as floats and stripped text, in sorted row order."""
    frame = frame.rename(columns=dict(table.renamed))
    absent = [c for c in (*table.numbers, *table.words) if c not in frame.columns]
    if absent:
        raise ValueError(f"{origin} is not the {table.title}: it lacks the columns {absent}.")
    columns: dict[str, pd.Series] = {}
    for name in table.numbers:
        try:
            values = pd.to_numeric(_plain(frame[name])).astype(np.float64)
        except ValueError as error:
            raise ValueError(f"{origin}: column {name!r} must hold numbers; {error}") from None
        columns[name] = values.round(DECIMALS)
    for name in table.words:
        text = frame[name].astype(object).where(frame[name].notna(), MISSING)
        columns[name] = text.astype(str).str.strip().str.rstrip(".").astype(object)
    tidy = pd.DataFrame(columns)
    if tidy[list(table.numbers)].isna().to_numpy().any():
        raise ValueError(f"{origin}: the columns {list(table.numbers)} must have no missing value.")
    return tidy.sort_values(list(tidy.columns), kind="stable", ignore_index=True)


def _plain(column: pd.Series) -> pd.Series:
    """Return a column as numbers if it holds them, else as text (categories of digits, say)."""
    return column if pd.api.types.is_numeric_dtype(column) else column.astype(str)


def checksum(frame: pd.DataFrame) -> str:
    """SHA-256 of the values of a canonical frame, column by column."""
    digest = hashlib.sha256()
    for name in frame.columns:
        digest.update(f"\n{name}\n".encode())
        values = frame[name].to_numpy()
        if values.dtype == object:
            digest.update("\n".join(values).encode())
        else:
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=4)
def _read(table: Table, path: Path, modified: int, verify: bool) -> pd.DataFrame:
    """Read and check a file; ``modified`` is its time stamp, so that an edited file is re-read."""
    try:
        frame = pd.read_csv(path, keep_default_na=False, low_memory=False)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as a CSV file: {error}") from error
    frame = canonical(frame, table, str(path))
    if verify:
        _check(frame, table, str(path))
    return frame


def _check(frame: pd.DataFrame, table: Table, origin: str) -> None:
    if checksum(frame) == table.checksum:
        return
    what = (
        "the same number of rows but other values"
        if len(frame) == table.n_rows
        else f"{len(frame):,} rows instead of {table.n_rows:,}"
    )
    raise ValueError(
        f"{origin} is an altered copy of the {table.title}: it has {what}. {table.obtain} "
        "Pass verify=False to use it all the same."
    )


def _locate(table: Table, path: str | os.PathLike[str] | None) -> Path | None:
    if path is not None:
        found = _in_folder(table, Path(path)) if Path(path).is_dir() else Path(path)
        if found is None or not found.exists():
            raise FileNotFoundError(
                f"path must be a CSV file, or a folder with one of {list(table.files)} "
                f"(.gz allowed); got {str(path)!r}."
            )
        return found
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    folders = [Path(named)] if named else []
    for folder in (*folders, cache_folder()):
        found = _in_folder(table, folder)
        if found is not None:
            return found
    return None


def _in_folder(table: Table, folder: Path) -> Path | None:
    names = [name + ending for name in table.files for ending in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _download(table: Table, number: int, verify: bool) -> Path:
    from sklearn.datasets import fetch_openml  # slow to import, and seldom needed

    try:
        bunch = fetch_openml(data_id=number, as_frame=True, parser="auto", cache=False)
    except (OSError, ValueError) as error:  # no network, no such data set, or a broken transfer
        raise FileNotFoundError(
            f"{_advice(table)} Downloading it from OpenML (data set {number}) failed: {error}"
        ) from error
    frame = canonical(bunch.frame, table, f"OpenML data set {number}")
    if verify:
        _check(frame, table, f"OpenML data set {number}")
    path = cache_folder() / f"{table.files[0]}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and moved: a download cut short never looks like a table.
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    frame.to_csv(aside, index=False, compression="gzip")
    aside.replace(path)
    return path


def _advice(table: Table) -> str:
    return (
        f"The {table.title} was not found: no path was given, and neither the folder in "
        f"{ENVIRONMENT_VARIABLE} ({os.environ.get(ENVIRONMENT_VARIABLE) or 'not set'}) nor the "
        f"cache ({cache_folder()}) holds {table.files[0]}. {table.obtain} Then pass path=... or "
        f"set {ENVIRONMENT_VARIABLE} to its folder."
    )
