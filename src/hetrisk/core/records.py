"""Tables of records: tuples of dataclasses of one kind that print, and convert to a frame."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, TypeVar

T = TypeVar("T")

SHOWN = 12  # rows that are printed: those behind them are counted


class Records(tuple[T, ...]):
    """A tuple of dataclasses of one kind.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Fit:
    ...     name: str
    ...     error: float
    >>> Records([Fit("plain", 1.0), Fit("trend", 0.25)])
    name   error
    plain      1
    trend   0.25
    """

    __slots__ = ()

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row a record."""
        import pandas as pd  # tables are shown by pandas, but core computes without it

        return pd.DataFrame([asdict(record) for record in self])  # type: ignore[call-overload]

    def __repr__(self) -> str:
        if not self:
            return "Records()"
        names = [f.name for f in fields(self[0])]  # type: ignore[arg-type]
        table = [names] + [[_shown(getattr(r, n)) for n in names] for r in self[:SHOWN]]
        widths = [max(len(row[k]) for row in table) for k in range(len(names))]
        number = [isinstance(getattr(self[0], n), float) for n in names]
        lines = [
            "  ".join(
                cell.rjust(w) if right else cell.ljust(w)
                for cell, w, right in zip(row, widths, number, strict=True)
            ).rstrip()
            for row in table
        ]
        more = len(self) - SHOWN
        return "\n".join(lines + [f"... and {more} more"] * (more > 0))


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
