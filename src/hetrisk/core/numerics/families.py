"""Distributions of the target given a linear predictor: Gaussian, Bernoulli, multinomial.

Each is a final `hetrisk.core.numerics.family.Family`; a further one is a class here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from scipy.special import expit

from hetrisk.core.numerics.family import Design, Family, NewtonFamily, NewtonSums
from hetrisk.core.numerics.gram import pair_products, weighted_grams
from hetrisk.core.numerics.linear import least_squares_many
from hetrisk.core.numerics.moments import Moments
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import FloatArray, Rows

__all__ = [
    "LOG_2PI",
    "Bernoulli",
    "Design",
    "Family",
    "Gaussian",
    "Multinomial",
    "NewtonFamily",
    "NewtonSums",
]

LOG_2PI: Constant[float] = float(np.log(2 * np.pi))
FEW_CLASSES: Budget[int] = 8  # up to these, a Gram product a pair of contrasts is the quicker way


@final
@dataclass(frozen=True)
class Gaussian(Family):
    """Normal target with mean eta; the weighted fit is least squares, in closed form."""

    name: ClassVar[str] = "gaussian"
    closed_form: ClassVar[bool] = True
    ridge: ClassVar[float] = 0.0
    has_variance: ClassVar[bool] = True
    shows_mixtures: ClassVar[bool] = True
    finalists: ClassVar[int] = 3

    def log_density(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """-(log(2 pi v) + (y - eta)^2 / v) / 2."""
        residual = y - eta
        residual *= residual
        residual *= -0.5 / np.asarray(variance)
        residual -= 0.5 * (LOG_2PI + np.log(variance))
        density: FloatArray = residual
        return density

    def curvature(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """1 / v."""
        curvature: FloatArray = np.ones(np.broadcast(y, eta).shape) / variance
        return curvature

    def standardised(self, centre: float, spread: float) -> tuple[float, float]:
        """The target's own centre and spread."""
        return centre, spread

    def mean_basis(self, y: FloatArray, far: float) -> FloatArray:
        """The target, its square and its cube."""
        clipped = np.clip(y, -far, far)
        return np.column_stack([y, clipped**2, clipped**3])

    def spread_basis(self, y: FloatArray, far: float) -> FloatArray:
        """The same, and its size."""
        return np.column_stack([self.mean_basis(y, far), np.abs(y)])

    def working_response(self, y: FloatArray) -> FloatArray:
        """The target itself."""
        return y[:, None]

    def design(self, rows: Rows, *, keep_products: bool = False) -> Design:
        """Columns (1, X, y), the block shifted by its own mean so that no digits are lost."""
        n, d = rows.X.shape
        shift = np.append(rows.X.mean(axis=0), rows.y.mean()) if n else np.zeros(d + 1)
        columns = np.empty((n, d + 2))
        columns[:, 0] = 1.0
        np.subtract(rows.X, shift[:d], out=columns[:, 1:-1])
        np.subtract(rows.y, shift[d], out=columns[:, -1])
        return Design(rows, columns, shift, pair_products(columns) if keep_products else None)

    def sums(self, design: Design, weight: FloatArray, eta: FloatArray) -> Moments:
        """Moments of (X, y), one set for each leading index of the weight."""
        gram = weighted_grams(design.columns, weight, design.products)
        total, first, second = gram[..., 0, 0], gram[..., 0, 1:], gram[..., 1:, 1:]
        offset = first / np.where(total > 0, total, 1.0)[..., None]
        scatter = second - offset[..., :, None] * first[..., None, :]
        return Moments(total, design.shift + offset, scatter)

    def improve(
        self, sums: Moments, theta: FloatArray, penalty: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weighted least squares; a set of no weight, or past all numbers, keeps its own."""
        coef, intercept, variance = least_squares_many(sums)
        solved = np.concatenate([intercept[..., None], coef], axis=-1)[..., None, :]
        sound = (sums.weight > 0) & np.isfinite(solved).all(axis=(-2, -1))
        return np.where(sound[..., None, None], solved, theta), variance


@final
@dataclass(frozen=True)
class Bernoulli(NewtonFamily):
    """Labels 0 and 1 with log odds eta."""

    name: ClassVar[str] = "bernoulli"

    def log_density(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """Y eta - log(1 + exp(eta)), as -log(1 + exp(-+eta)): it never overflows."""
        signed = np.where(y > 0.5, eta, -eta)
        # log rather than log1p: several times faster, and wrong by no more than 1e-16.
        density: FloatArray = np.minimum(signed, 0.0) - np.log(1.0 + np.exp(-np.abs(signed)))
        return density

    def curvature(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """P (1 - p)."""
        p = expit(eta)
        curvature: FloatArray = p * (1.0 - p)
        return curvature

    def working_response(self, y: FloatArray) -> FloatArray:
        """4 (y - 1/2): the log odds to first order about probability one half."""
        response: FloatArray = 4.0 * (y[:, None] - 0.5)
        return response

    def coded_derivatives(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and curvature in the one score."""
        small = np.exp(-np.abs(eta))
        larger = 1.0 / (1.0 + small)
        slope = y - np.where(eta > 0, larger, 1.0 - larger)
        small *= larger
        small *= larger
        return slope[..., None, :], small[..., None, None, :]


@final
@dataclass(frozen=True)
class Multinomial(NewtonFamily):
    """Labels 0 ... C - 1 with probabilities softmax(eta), eta summing to zero over classes."""

    n_classes: int
    contrasts: FloatArray = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "multinomial"

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2; got {self.n_classes}.")
        object.__setattr__(self, "contrasts", _helmert(self.n_classes))

    @property
    def coding(self) -> FloatArray:
        """(C - 1, C) orthonormal contrasts, each summing to zero (Helmert)."""
        return self.contrasts

    def log_density(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """eta_y - log sum_c exp(eta_c)."""
        shape = eta.shape[:-1]
        label = np.broadcast_to(np.asarray(y, dtype=np.intp), shape)
        chosen = np.take_along_axis(eta, label[..., None], axis=-1)[..., 0]
        top = eta.max(axis=-1)
        density: FloatArray = chosen - top - np.log(np.exp(eta - top[..., None]).sum(axis=-1))
        return density

    def curvature(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """diag(p) - p p'."""
        p = self.mean(eta)
        curvature: FloatArray = p[..., None] * (np.eye(self.n_classes) - p[..., None, :])
        return curvature

    def mean(self, eta: FloatArray) -> FloatArray:
        """Probabilities of the classes."""
        p = np.exp(eta - eta.max(axis=-1, keepdims=True))
        mean: FloatArray = p / p.sum(axis=-1, keepdims=True)
        return mean

    @property
    def n_targets(self) -> int:
        """One indicator a class."""
        return self.n_classes

    def targets(self, y: FloatArray) -> FloatArray:
        """(n, C) indicators of the classes, over the root of two.

        Half their squared error is the Brier score that two classes have with one indicator.
        """
        indicators: FloatArray = (y[:, None] == np.arange(self.n_classes)) / np.sqrt(2.0)
        return indicators

    def working_response(self, y: FloatArray) -> FloatArray:
        """Contrasts of C * indicator - 1: softmax inverted to first order about equal odds."""
        indicator = y[:, None] == np.arange(self.n_classes)
        # At equal odds p = 1/C and dp/deta = 1/C in the contrasts, so eta = C (indicator - 1/C).
        response: FloatArray = (self.n_classes * indicator - 1.0) @ self.coding.T
        return response

    def coded_derivatives(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and curvature in the contrasts.

        With H the contrasts: H (indicator - p), and H diag(p) H' - (H p)(H p)'. Rows run along
        the last axis throughout, so that every operation streams through memory.
        """
        H, p = self.coding, np.swapaxes(self.mean(eta), -1, -2)
        # The gradient in eta is (indicator - p), and H maps contrasts to classes: H' on either
        # side.
        projected = H @ p
        slope = (H @ (y == np.arange(self.n_classes)[:, None])) - projected
        pairs = (H[:, None] * H).reshape(-1, self.n_classes) @ p
        second = pairs.reshape(*p.shape[:-2], len(H), len(H), p.shape[-1])
        second -= projected[..., :, None, :] * projected[..., None, :, :]
        return slope, second

    def sums(self, design: Design, weight: FloatArray, eta: FloatArray) -> NewtonSums:
        """Gradient and curvature in theta.

        The curvature of a pair of contrasts needs a Gram product each, of which there are
        (C - 1)^2. With many classes it is taken apart instead: H diag(p) H' is a mixture of C
        Gram products, and what is subtracted is one product of the columns (H p) x.
        """
        if self.n_classes <= FEW_CLASSES:
            return super().sums(design, weight, eta)
        H, p = self.coding, self.mean(eta)
        left = p @ H.T  # (..., n, o)
        indicator = (design.rows.y[:, None] == np.arange(self.n_classes)) @ H.T
        gradient = np.swapaxes((indicator - left) * weight[..., None], -1, -2) @ design.columns
        grams = weighted_grams(design.columns, weight[..., None, :] * np.swapaxes(p, -1, -2))
        o, q = len(H), design.columns.shape[1]
        by_pair = np.moveaxis(grams, -3, -1)[..., None, :]  # (..., q, q, 1, C)
        first = np.moveaxis((H * by_pair) @ H.T, -2, -4)  # (..., o, q, q, o)
        curvature = np.moveaxis(first, -1, -2).reshape(*grams.shape[:-3], o * q, o * q)
        scaled = left * np.sqrt(weight)[..., None]
        spread = (scaled[..., :, None] * design.columns[:, None, :]).reshape(-1, p.shape[-2], o * q)
        # One by one: a product of a matrix with itself takes half the time, in two dimensions.
        for part, columns in zip(curvature.reshape(-1, o * q, o * q), spread, strict=True):
            part -= columns.T @ columns
        return NewtonSums(gradient, curvature)

    def predictor_of(self, scores: FloatArray) -> FloatArray:
        """(..., n, C) predictors of the classes, a class contiguous in memory."""
        eta: FloatArray = np.swapaxes(self.coding.T @ scores, -1, -2)
        return eta


def _helmert(size: int) -> FloatArray:
    """(size - 1, size) orthonormal rows, each orthogonal to ones."""
    rows = np.zeros((size - 1, size))
    for i in range(1, size):
        rows[i - 1, :i] = 1.0 / np.sqrt(i * (i + 1))
        rows[i - 1, i] = -i / np.sqrt(i * (i + 1))
    return rows
