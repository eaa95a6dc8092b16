"""Plain values that anyone may have written, read field by field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hetrisk.tables.errors import TableError, listed, quoted

LONGEST = 100_000  # of a text in a record
MOST = 1_000_000  # of the items of a list


class Fields:
    """The fields of one record: each is asked for by its kind, and none may be left over.

    Parameters
    ----------
    record : what should be a dictionary of plain values.
    what : what it describes, for messages.
    """

    def __init__(self, record: object, what: str) -> None:
        self.what, self._left = what, set[str]()
        if type(record) is not dict or not all(type(key) is str for key in record):
            raise TableError(f"a recorded {what} must be a dictionary of fields")
        self._record: dict[str, Any] = record
        self._left = set(record)

    def need(self, right: bool, field: str, what: str) -> None:
        """Refuse the record unless ``right``; ``what`` says what the field must hold."""
        if not right:
            raise TableError(f"field {quoted(field)} of a recorded {self.what} must hold {what}")

    def done(self) -> None:
        """Refuse fields that nobody asked for."""
        if self._left:
            raise TableError(f"a recorded {self.what} holds fields not known: {listed(self._left)}")

    def value(self, field: str) -> Any:
        """Return a field as it is."""
        self.need(field in self._record, field, "something")
        self._left.discard(field)
        return self._record[field]

    def text(self, field: str, among: Sequence[str] = ()) -> str:
        """Return a text, one of ``among`` where there are any."""
        value = self.value(field)
        self.need(type(value) is str and len(value) <= LONGEST, field, "a text")
        self.need(not among or value in among, field, f"one of {listed(among, 12)}")
        return str(value)

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return self._texts(field, self.value(field))

    def maybe_texts(self, field: str) -> tuple[str, ...] | None:
        """Return a list of texts, or None."""
        value = self.value(field)
        return None if value is None else self._texts(field, value)

    def _texts(self, field: str, value: Any) -> tuple[str, ...]:
        right = type(value) in (list, tuple) and len(value) <= MOST
        self.need(
            right and all(type(v) is str and len(v) <= LONGEST for v in value), field, "texts"
        )
        return tuple(value)

    def truth(self, field: str) -> bool:
        """Return True or False."""
        value = self.value(field)
        self.need(type(value) is bool, field, "true or false")
        return bool(value)

    def number(self, field: str) -> float:
        """Return a finite number."""
        value = self.value(field)
        self.need(_is_number(value), field, "a finite number")
        return float(value)

    def numbers(self, field: str) -> tuple[float, ...]:
        """Return a list of finite numbers."""
        value = self.value(field)
        right = type(value) in (list, tuple) and 0 < len(value) <= MOST
        self.need(right and all(map(_is_number, value)), field, "finite numbers")
        return tuple(map(float, value))

    def records(self, field: str) -> list[Any]:
        """Return a list of further records, not looked into."""
        value = self.value(field)
        self.need(type(value) in (list, tuple) and len(value) <= MOST, field, "a list")
        return list(value)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and not math.isnan(value)  # type: ignore
