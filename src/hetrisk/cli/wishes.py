"""What `fit` is asked for, in the names of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hetrisk.cli.columns import one, resolve
from hetrisk.tables import TableError
from hetrisk.tables.errors import listed, quoted
from hetrisk.tables.frames import marked

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Wishes:
    """What the command line was asked for; columns as they were typed."""

    target: str
    task: str = "auto"
    time: str | None = None
    environment: str | None = None
    candidate: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    weight: str | None = None
    decimal: str | None = None
    dayfirst: bool | None = None
    reach: float = 1.0

    def of(self, names: Sequence[str]) -> Wishes:
        """Return the same with columns called as in the table; refuse what it does not have."""
        several = ("features", "drop", "category", "number", "keep")
        flags = {"features": "--feature"}
        found: dict[str, Any] = {
            f: resolve(getattr(self, f), names, flags.get(f, f"--{f}")) for f in several
        }
        found |= {
            f: one(getattr(self, f), names, f"--{f}")
            for f in ("target", "time", "environment", "weight")
        }
        made = replace(self, **found)
        made._refuse_twice()
        return made

    def _refuse_twice(self) -> None:
        roles = {"target": self.target, "weight": self.weight}
        roles |= {"time": self.time, "environment": self.environment}
        taken: dict[str, str] = {}
        for role, name in roles.items():
            if name in taken:
                raise TableError(f"{quoted(name)} cannot be both {taken[name]} and {role}")
            if name is not None:
                taken[name] = role
        asked = [name for name in self.features if name in taken]
        if asked:
            raise TableError(f"--feature names {listed(asked)}, which is the {taken[asked[0]]}")


def features(frame: pd.DataFrame, w: Wishes) -> pd.DataFrame:
    """The columns to learn from, and those of time and environment, with how to read them."""
    gone = {w.target, w.weight, *w.drop}
    roles = {w.time, w.environment}
    names = [str(name) for name in frame.columns]
    kept = [n for n in names if n not in gone and (n in roles or not w.features or n in w.features)]
    if not set(kept) - roles:
        raise TableError("no column is left to learn from: the target is the only one")
    absent = [name for name in (w.time, w.environment) if name is not None and name not in kept]
    if absent:
        raise TableError(f"{quoted(absent[0])} cannot be both dropped and used")
    return marked(
        frame.set_axis(names, axis=1)[kept],
        category=w.category,
        number=w.number,
        use=tuple(name for name in w.features if name not in roles),
        decimal=w.decimal,
        dayfirst=w.dayfirst,
    )
