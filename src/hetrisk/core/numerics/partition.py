"""A clustering of rows into environments, whoever made it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hetrisk.core.numerics.rows import FloatArray, Rows


class Partition(ABC):
    """A clustering of rows into environments that can be applied to new rows."""

    @property
    @abstractmethod
    def n_environments(self) -> int:
        """Number of environments K."""

    @abstractmethod
    def responsibilities(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """(n, K) probabilities that each row belongs to each environment."""

    def of_rows(self, rows: Rows) -> FloatArray:
        """(n, K) the same for rows that may carry more than features and target."""
        return self.responsibilities(rows.X, rows.y)
