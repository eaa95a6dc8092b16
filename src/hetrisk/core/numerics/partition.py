"""A clustering of rows into environments, whoever made it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

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


def membership(rows: Rows, partition: Partition | None) -> FloatArray:
    """(n, K) responsibilities of a block: by a partition, or as the rows carry them.

    Rows that carry none are one environment.
    """
    if partition is not None:
        return partition.of_rows(rows)
    return np.ones((len(rows), 1)) if rows.environments is None else rows.environments
