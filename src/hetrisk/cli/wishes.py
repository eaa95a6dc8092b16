"""What `fit` is asked for, in the names of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hetrisk.cli.columns import named, resolve
from hetrisk.tables import TableError
from hetrisk.tables.errors import quoted
from hetrisk.tables.frames import marked

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("target", "time", "environment", "weight")
SEVERAL = ("feature", "drop", "category", "number")


@dataclass(frozen=True)
class Wishes:
    """What the command line was asked for; columns as they were typed."""

    target: str
    task: str = "auto"
    time: str | None = None
    environment: str | None = None
    candidate: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    weight: str | None = None
    decimal: str | None = None
    dayfirst: bool | None = None
    reach: float = 1.0

    @property
    def backtest(self) -> bool:
        """Whether environments are named; else stable columns are looked for."""
        return self.time is not None or self.environment is not None

    def of(self, names: Sequence[str]) -> Wishes:
        """Return the same with columns called as in the table; refuse what it does not have."""
        found: dict[str, Any] = {f: resolve(getattr(self, f), names, f"--{f}") for f in SEVERAL}
        roles: dict[str, str] = {}
        for role in ROLES:
            typed = getattr(self, role)
            if typed is None:
                continue
            name = found[role] = named(typed, names, f"--{role}")
            if name in roles:
                raise TableError(f"{quoted(name)} cannot be both {roles[name]} and {role}")
            roles[name] = role
        for flag in ("feature", "drop"):
            for name in found[flag]:
                if name in roles:
                    message = f"--{flag} names {quoted(name)}, which is the {roles[name]}"
                    raise TableError(message)
        return replace(self, **found)

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns to learn from, and those of time and environment, with how to read them."""
        gone, roles = {self.target, self.weight, *self.drop}, {self.time, self.environment}
        learned = [n for n in frame.columns if n not in gone | roles]
        if self.feature:
            learned = [name for name in learned if name in self.feature]
        if not learned and self.time is None:  # what comes later may be told from what was
            raise TableError("no column is left to learn from beside the target")
        return marked(
            frame[[name for name in frame.columns if name in learned or name in roles]],
            category=self.category,
            number=self.number,
            use=self.feature,
            decimal=self.decimal,
            dayfirst=self.dayfirst,
        )
