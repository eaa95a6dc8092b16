"""Features of a table as standardised numbers, decided on the training rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hetrisk.core.numerics.rows import FloatArray, IntArray
from hetrisk.tables.encoder import TableEncoder


@dataclass(frozen=True, eq=False)
class Encoding:
    """A fitted `TableEncoder`, followed by standardising what is not a 0/1 column.

    Attributes
    ----------
    encoder : decides what each column means and encodes it.
    centre, scale : (d,) of the encoded training rows; 0 and 1 for 0/1 columns.
    """

    encoder: TableEncoder
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, frame: pd.DataFrame, category: Sequence[str] = ()) -> Encoding:
        """Decide on the training rows; ``category`` as for `TableEncoder`."""
        encoder = TableEncoder(tuple(category)).fit(frame)
        X = encoder.transform(frame)
        indicator = np.isin(X, (0.0, 1.0)).all(axis=0)
        centre = np.where(indicator, 0.0, X.mean(axis=0))
        deviation = X.std(axis=0)
        return cls(encoder, centre, np.where(indicator | (deviation == 0), 1.0, deviation))

    def __call__(self, frame: pd.DataFrame) -> FloatArray:
        """(n, d) standardised features."""
        encoded: FloatArray = (self.encoder.transform(frame) - self.centre) / self.scale
        return encoded

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(d,) names of the encoded columns."""
        return tuple(map(str, self.encoder.get_feature_names_out()))

    @property
    def feature_groups(self) -> IntArray:
        """(d,) one integer for each column of the table."""
        names = self.encoder.feature_groups_
        order = {name: i for i, name in enumerate(dict.fromkeys(names))}
        return np.asarray([order[name] for name in names], dtype=np.int64)
