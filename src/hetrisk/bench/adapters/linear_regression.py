"""scikit-learn's least squares: what one plain regression costs."""

from __future__ import annotations

from typing import ClassVar

import sklearn
from sklearn.linear_model import LinearRegression

from hetrisk.bench.adapters.base import Adapter
from hetrisk.bench.clock import seconds
from hetrisk.core.numerics.rows import FloatArray


class LinearRegressionFit(Adapter):
    """One fit of `sklearn.linear_model.LinearRegression`."""

    name: ClassVar[str] = "scikit-learn LinearRegression, one fit"

    def version(self) -> str:
        """Version of scikit-learn."""
        return f"scikit-learn {sklearn.__version__}"

    def seconds(self, X: FloatArray, y: FloatArray) -> float:
        """Time of one fit."""
        return seconds(lambda: LinearRegression().fit(X, y))
