"""scikit-learn's Gaussian mixture: what another EM costs an iteration."""

from __future__ import annotations

import warnings
from functools import partial
from typing import ClassVar

import numpy as np
import sklearn
from sklearn.mixture import GaussianMixture

from hetrisk.bench.adapters.base import Adapter, Missing
from hetrisk.bench.clock import shortest
from hetrisk.core.numerics.rows import FloatArray

COMPONENTS = 3
ITERATIONS = 3


class GaussianMixtureIteration(Adapter):
    """An EM iteration of `sklearn.mixture.GaussianMixture` on (X, y), full covariances."""

    name: ClassVar[str] = "scikit-learn GaussianMixture, one EM iteration"

    def version(self) -> str:
        """Version of scikit-learn."""
        return f"scikit-learn {sklearn.__version__}"

    def seconds(self, X: FloatArray, y: FloatArray) -> float:
        """Time an iteration adds: a run of several less a run of one, the shortest of each."""
        z = np.column_stack([X, y])
        runs = {"short": partial(self._run, z, 1), "long": partial(self._run, z, 1 + ITERATIONS)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few iterations do not converge
            times = shortest(runs, 2)
        if times["long"] <= times["short"]:
            raise Missing("the machine was too busy to tell an iteration's time")
        return (times["long"] - times["short"]) / ITERATIONS

    def _run(self, z: FloatArray, iterations: int) -> None:
        GaussianMixture(
            COMPONENTS, tol=0.0, max_iter=iterations, init_params="random_from_data", random_state=0
        ).fit(z)
