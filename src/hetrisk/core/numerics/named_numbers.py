"""Numbers that decide, each with where it comes from; and what every other number is.

A search keeps its thresholds in one frozen dataclass whose fields are made by `threshold`. The
documentation's table of them is `table(classes)`: what the code holds is what the page says.

Every other number of `core` that has a name is declared to be one of three things, and a test
reads the modules for names that are not:

* a floor, which keeps arithmetic finite: it stands in `hetrisk.core.numerics.floors`;
* ``NAME: Budget[int] = ...`` bounds the work, or how finely something is looked at. It stands
  where it is used. More of it costs time and changes little;
* ``NAME: Constant[int] = ...`` leaves nothing to choose: mathematics, seeds, what people are shown.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Example:
...     level: float = threshold(0.05, "p-value that counts", conventional("Fisher"))
>>> print(table([Example]))
| threshold | value | meaning | source |
| --- | --- | --- | --- |
| `Example.level` | 0.05 | p-value that counts | conventional: Fisher |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, TypeVar

T = TypeVar("T")
Budget = Annotated[T, "bounds work; more changes little"]
Constant = Annotated[T, "nothing to choose"]

KINDS = ("derived", "conventional", "measured", "assumed")


@dataclass(frozen=True)
class Source:
    """Where a threshold comes from.

    Attributes
    ----------
    kind : one of `KINDS`: follows from an argument; is what the field uses; was chosen by a
        measurement that is on record; or is an assumption nothing in the rows can test.
    where : the argument, the convention, or the record, in a clause.
    """

    kind: str
    where: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS or not self.where:
            raise ValueError(
                f"source must be one of {', '.join(KINDS)} and say where; got {self.kind!r}, "
                f"{self.where!r}."
            )

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"


def derived(where: str) -> Source:
    """Follows from an argument."""
    return Source("derived", where)


def conventional(where: str) -> Source:
    """What the field uses."""
    return Source("conventional", where)


def measured(where: str) -> Source:
    """Chosen by a measurement on record."""
    return Source("measured", where)


def assumed(where: str) -> Source:
    """An assumption that nothing in the rows can test."""
    return Source("assumed", where)


def threshold(value: Any, meaning: str, source: Source) -> Any:
    """Return a dataclass field with its meaning and its source."""
    return field(default=value, metadata={"meaning": meaning, "source": source})


def table(classes: Iterable[type]) -> str:
    """Return a Markdown table of the thresholds of several settings."""
    lines = ["| threshold | value | meaning | source |", "| --- | --- | --- | --- |"]
    for kind in classes:
        for one in fields(kind):
            if "source" not in one.metadata:
                raise TypeError(
                    f"{kind.__name__}.{one.name} has no source: make it by threshold()."
                )
            values = one.default if isinstance(one.default, tuple) else (one.default,)
            value = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            meaning, source = one.metadata["meaning"], one.metadata["source"]
            lines.append(f"| `{kind.__name__}.{one.name}` | {value} | {meaning} | {source} |")
    return "\n".join(lines)
