"""Losses of mixtures of candidates in the environments left out.

A mixture predicts the weighted mean of its members' predictions (probabilities, for labels). For
numbers its loss in an environment is a quadratic form in the weights, w' C_e w with C_e the mean
product of the members' errors; for labels it is the mean of -log sum_k w_k p_k(label).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.rows import FloatArray, IntArray

LEAST_PROBABILITY = 1e-3  # what an impossible label is counted as: one error costs at most 6.9
WORST_SHARE = 0.1  # of the environments, at least one: what "the worst" is the mean of


class Losses(ABC):
    """Losses in E environments of mixtures of F candidates."""

    n_candidates: int

    @abstractmethod
    def of(self, weights: FloatArray) -> FloatArray:
        """(B, E) losses of B mixtures, weights (B, F)."""

    def single(self, candidate: int) -> FloatArray:
        """(E,) losses of one candidate."""
        losses: FloatArray = self.of(np.eye(self.n_candidates)[candidate][None])[0]
        return losses

    @property
    def singles(self) -> FloatArray:
        """(F, E) losses of every candidate."""
        return self.of(np.eye(self.n_candidates))


@dataclass(frozen=True)
class SquaredLosses(Losses):
    """Mean squared errors; ``products`` (E, F, F) are the C_e.

    What lies below ``least`` is rounding: fits that are exact tie, and none beats another.
    """

    products: FloatArray
    least: float = 0.0

    @property
    def n_candidates(self) -> int:  # type: ignore[override]
        """Candidates."""
        return int(self.products.shape[1])

    def of(self, weights: FloatArray) -> FloatArray:
        """See `Losses.of`."""
        losses: FloatArray = np.einsum(
            "bi,eij,bj->be", weights, self.products, weights, optimize=True
        )
        return np.maximum(losses, self.least)


@dataclass(frozen=True)
class LogLosses(Losses):
    """Mean log losses.

    Attributes
    ----------
    probability : (n, F) what each candidate gave the label that came.
    share : (n,) weight of each row within its environment; environment : (n,) its number.
    """

    probability: FloatArray
    share: FloatArray
    environment: IntArray

    @property
    def n_candidates(self) -> int:  # type: ignore[override]
        """Candidates."""
        return int(self.probability.shape[1])

    def of(self, weights: FloatArray) -> FloatArray:
        """See `Losses.of`."""
        n_environments = int(self.environment.max()) + 1
        losses = np.empty((len(weights), n_environments))
        for line, w in zip(losses, weights, strict=True):
            loss = -np.log(np.maximum(self.probability @ w, LEAST_PROBABILITY))
            line[:] = np.bincount(self.environment, self.share * loss, n_environments)
        return losses


def row_losses(prediction: FloatArray, y: FloatArray) -> FloatArray:
    """(n,) losses of (n, K) predictions: squared errors of numbers, log losses of labels."""
    if prediction.shape[1] == 1:
        squared: FloatArray = (prediction[:, 0] - y) ** 2
        return squared
    given = prediction[np.arange(len(y)), y.astype(np.int64)]
    loss: FloatArray = -np.log(np.maximum(given, LEAST_PROBABILITY))
    return loss


def extrapolated(losses: FloatArray, reach: float) -> FloatArray:
    """X_t = mean + t (worst - mean) over the last axis, the environments.

    The worst is the mean of the worst tenth of the environments, of the one that is worst where
    they are ten or fewer. X_0 is the average environment, X_1 the worst that was left out, and X_t
    goes as far again for each further 1: the objective of risk extrapolation (Krueger et al. 2021).
    """
    mean = losses.mean(axis=-1)
    n_worst = max(1, int(np.ceil(WORST_SHARE * losses.shape[-1])))
    worst = np.sort(losses, axis=-1)[..., -n_worst:].mean(axis=-1)
    extrapolated: FloatArray = mean + reach * (worst - mean)
    return extrapolated
