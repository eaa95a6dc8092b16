"""What an adapter to another library offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from hetrisk.core.numerics.rows import FloatArray


class Missing(Exception):
    """The library, or its time, is not to be had here; the message says why."""


class Adapter(ABC):
    """A yardstick: some work on rows that another library does."""

    name: ClassVar[str]

    @abstractmethod
    def version(self) -> str:
        """Version of the library; raises `Missing` where it is not installed."""

    @abstractmethod
    def seconds(self, X: FloatArray, y: FloatArray) -> float:
        """Time of the work on these rows."""
