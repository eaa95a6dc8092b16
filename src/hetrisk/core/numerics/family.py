"""What a distribution of the target must know for mixtures and single fits to be written once.

A family knows its log density, the first two derivatives in the linear predictor eta, and how
weighted sums over rows lead to better coefficients: in closed form from moments (Gaussian) or
by a Newton step (the others). The families themselves are in
`hetrisk.core.numerics.families`.

Coefficients inside are ``theta``, shape (..., o, 1 + d) with the intercept first; o is 1
except for the multinomial with C classes, where o = C - 1 orthonormal contrasts of the classes
make the model identifiable. Outside, its coefficients are one row a class, summing to zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hetrisk.core.numerics.floors import RIDGE
from hetrisk.core.numerics.gram import pair_products, weighted_grams
from hetrisk.core.numerics.rows import FloatArray, Rows, Summed


@dataclass(frozen=True)
class Design:
    """A block of rows laid out for weighted sums.

    Attributes
    ----------
    rows : the block.
    columns : (n, p) what is multiplied together: (1, X) or (1, X - shift, y - shift).
    shift : what was subtracted from (X, y); empty where nothing was.
    products : pair products of the columns, kept when many sums will be asked of one block.
    """

    rows: Rows
    columns: FloatArray
    shift: FloatArray
    products: FloatArray | None


class Family(ABC):
    """A distribution of y given eta, with what an M-step needs of it."""

    name: ClassVar[str]
    closed_form: ClassVar[bool]
    """Whether the weighted fit has a closed form in the moments of (x, y)."""
    ridge: ClassVar[float]
    """Penalty, per row and unit of squared coefficient, that keeps separable data finite."""
    has_variance: ClassVar[bool]
    """Whether y has a variance of its own, to be fitted beside the coefficients."""
    finalists: ClassVar[int]
    """Short runs of EM worth carrying on: labels say less a row, so they need more."""
    shows_mixtures: ClassVar[bool]
    """Whether y given x shows that it is a mixture: one of two probabilities is a probability."""

    @property
    def coding(self) -> FloatArray:
        """(o, n_outputs) contrasts: the predictors of the outputs are ``coding.T @ scores``."""
        return np.ones((1, 1))

    @property
    def n_outputs(self) -> int:
        """Number of linear predictors a row: 1, or the number of classes."""
        return int(self.coding.shape[1])

    @abstractmethod
    def log_density(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """Log density of y (...) given eta, (...) or (..., C)."""

    @abstractmethod
    def curvature(self, y: FloatArray, eta: FloatArray, variance: Any = 1.0) -> FloatArray:
        """Minus the second derivative in eta: (...) or (..., C, C)."""

    @abstractmethod
    def standardised(self, centre: float, spread: float) -> tuple[float, float]:
        """Centre and scale to standardise the target with; labels are left alone."""

    @property
    def n_targets(self) -> int:
        """Number of columns of `targets`."""
        return 1

    def targets(self, y: FloatArray) -> FloatArray:
        """(n, t) numbers a squared error is taken of: y itself, one indicator a class."""
        return y[:, None]

    @abstractmethod
    def mean_basis(self, y: FloatArray, far: float) -> FloatArray:
        """(n, b) functions of the target that the mean of a column given it may follow.

        Beyond ``far`` standard deviations powers count no further.
        """

    def spread_basis(self, y: FloatArray, far: float) -> FloatArray:
        """(n, b) functions of the target that the spread of a column given it may follow."""
        return self.mean_basis(y, far)

    @abstractmethod
    def working_response(self, y: FloatArray) -> FloatArray:
        """(n, o) numbers whose least squares fit is a rough start for theta."""

    @abstractmethod
    def design(self, rows: Rows, *, keep_products: bool = False) -> Design:
        """Lay a block out for `sums`."""

    @abstractmethod
    def sums(self, design: Design, weight: FloatArray, eta: FloatArray) -> Any:
        """Weighted sums over rows that `improve` needs; weight is (..., n)."""

    @abstractmethod
    def improve(
        self, sums: Any, theta: FloatArray, penalty: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Better theta, and the residual variances (...) that go with it.

        ``penalty`` (..., 1 + d) is the ridge on each coefficient times the total weight.
        """

    def predictor(self, rows: Rows, theta: FloatArray) -> FloatArray:
        """Eta for every row and every leading index of theta: (..., n) or (..., n, C)."""
        flat = theta.reshape(-1, theta.shape[-1])
        scores = flat[:, 1:] @ rows.X.T
        scores += flat[:, :1]
        return self.predictor_of(scores.reshape(*theta.shape[:-1], len(rows)))

    def predictor_of(self, scores: FloatArray) -> FloatArray:
        """Eta from the scores (..., o, n)."""
        return scores[..., 0, :]


@dataclass(frozen=True)
class NewtonSums(Summed):
    """Gradient (..., o, p) and curvature (..., o p, o p) of a weighted log likelihood."""

    gradient: FloatArray
    curvature: FloatArray


class NewtonFamily(Family):
    """A family whose weighted fit takes Newton steps on (1, X)."""

    closed_form: ClassVar[bool] = False
    ridge: ClassVar[float] = RIDGE
    has_variance: ClassVar[bool] = False
    shows_mixtures: ClassVar[bool] = False
    finalists: ClassVar[int] = 6

    @abstractmethod
    def coded_derivatives(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (..., o, n) and curvature (..., o, o, n) in the scores."""

    def design(self, rows: Rows, *, keep_products: bool = False) -> Design:
        """Columns (1, X)."""
        columns = np.column_stack([np.ones(len(rows)), rows.X])
        products = pair_products(columns) if keep_products else None
        return Design(rows, columns, np.empty(0), products)

    def sums(self, design: Design, weight: FloatArray, eta: FloatArray) -> NewtonSums:
        """Gradient and curvature in theta."""
        slope, second = self.coded_derivatives(design.rows.y, eta)
        gradient = (weight[..., None, :] * slope) @ design.columns
        grams = weighted_grams(
            design.columns, weight[..., None, None, :] * second, design.products
        )  # (..., o, o, p, p)
        # (o, o, p, p) to (o p, o p): contrast by contrast, each a block of p columns.
        size = grams.shape[-4] * grams.shape[-1]
        curvature = np.swapaxes(grams, -3, -2).reshape(*grams.shape[:-4], size, size)
        return NewtonSums(gradient, curvature)

    def improve(
        self, sums: NewtonSums, theta: FloatArray, penalty: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """One Newton step on the weighted log likelihood less penalty theta^2 / 2."""
        size = sums.curvature.shape[-1]
        weight = np.broadcast_to(np.asarray(penalty)[..., None, :], theta.shape)
        gradient = (sums.gradient - weight * theta).reshape(*theta.shape[:-2], size, 1)
        # The ridge enters the curvature as well: the step is Newton's on the penalised likelihood.
        damped = sums.curvature + weight.reshape(*theta.shape[:-2], size, 1) * np.eye(size)
        step = np.linalg.solve(damped, gradient)
        return theta + step.reshape(theta.shape), np.ones(theta.shape[:-2])

    def mean_basis(self, y: FloatArray, far: float) -> FloatArray:
        """Indicators of all classes but the first."""
        n_classes = 1 + len(self.coding)
        indicators: FloatArray = (y[:, None] == np.arange(1, n_classes)).astype(np.float64)
        return indicators

    def standardised(self, centre: float, spread: float) -> tuple[float, float]:
        """0 and 1: class codes are names, not numbers."""
        return 0.0, 1.0
