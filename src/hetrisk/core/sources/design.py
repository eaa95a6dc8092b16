"""One design for many weighted least squares fits at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetrisk.core.numerics.floors import SINGLE_RIDGE, SINGLE_TINY
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray

Single = NDArray[np.float32]
WIDE: Budget[int] = 24  # columns beyond which a few Gram matrices are made one by one
FEW: Budget[int] = 3  # of them


class BatchDesign:
    """Columns (n, p) that many targets are regressed on, the constant first.

    Attributes
    ----------
    Z, products : (n, p) columns and (n, p (p + 1) / 2) products of two.
    weight : (n,) of the rows, adding up to one.
    """

    def __init__(self, Z: FloatArray, weight: FloatArray) -> None:
        self.Z: Single = np.ascontiguousarray(Z, dtype=np.float32)
        self.weight: Single = (weight / weight.sum()).astype(np.float32)
        self.upper = np.triu_indices(Z.shape[1])
        self.products: Single = np.ascontiguousarray(
            self.Z[:, self.upper[0]] * self.Z[:, self.upper[1]]
        )

    def __len__(self) -> int:
        return len(self.Z)

    @property
    def n_columns(self) -> int:
        """Number of columns p, the constant included."""
        return int(self.Z.shape[1])

    def rows(self, index: IntArray) -> BatchDesign:
        """Return the design of some rows."""
        part = object.__new__(BatchDesign)
        part.Z = np.ascontiguousarray(self.Z[index])
        part.products = np.ascontiguousarray(self.products[index])
        part.weight = self.weight[index] / self.weight[index].sum()
        part.upper = self.upper
        return part

    def targets(self, index: BoolArray | IntArray) -> BatchDesign:
        """Return the design of some targets: the same for all of them."""
        return self

    def fits(self, weight: Single, target: Single, mask: BoolArray) -> Single:
        """(B, p) weighted least squares; columns where ``mask`` (B, p) is off are held at zero.

        ``weight`` and ``target`` (B, n), the target already multiplied by its weight.
        """
        # Solved in double precision, since a solution would lose half of seven digits.
        gram = self._grams(weight)
        # Columns that are off keep their place, with zeros and a diagonal: one size for all
        # systems.
        total = np.maximum(gram[:, :1, 0], SINGLE_TINY)
        gram *= mask[:, :, None] & mask[:, None, :]
        diagonal = np.einsum("bii->bi", gram)
        diagonal[...] = np.where(
            diagonal > SINGLE_TINY * total, diagonal + SINGLE_RIDGE * total, total
        )
        right = (target @ self.Z).astype(np.float64) * mask
        coef: Single = np.linalg.solve(gram, right[..., None])[..., 0].astype(np.float32)
        return coef

    def _grams(self, weight: Single) -> FloatArray:
        """(B, p, p) Gram matrices under weights (B, n)."""
        p = self.Z.shape[1]
        gram = np.empty((len(weight), p, p))
        if p > WIDE and len(weight) <= FEW:
            # The products of many columns are read slower than they are made.
            for each, w in zip(gram, weight, strict=True):
                each[:] = (self.Z.T * w) @ self.Z
            return gram
        # One product for the Gram matrices of all B fits.
        flat = weight @ self.products
        gram[:, self.upper[0], self.upper[1]] = flat
        gram[:, self.upper[1], self.upper[0]] = flat
        return gram

    def residuals(self, Y: Single, coef: Single) -> Single:
        """(B, n) what regressions leave of their targets."""
        residual: Single = Y - coef @ self.Z.T
        return residual


class BrokenDesign(BatchDesign):
    """Columns with a regression of their own on either side of a cut, a cut for every target.

    As if (n, p) columns stood beside the same columns where a row is on the far side, zero where it
    is not: coefficients are those of the near side, then what the far side adds.

    Attributes
    ----------
    far : (B, n) whether a row is on the far side.
    """

    def __init__(self, Z: FloatArray, weight: FloatArray, far: BoolArray) -> None:
        super().__init__(Z, weight)
        self.far: Single = far.astype(np.float32)

    @property
    def n_columns(self) -> int:
        """Number of columns, those of either side."""
        return 2 * int(self.Z.shape[1])

    def targets(self, index: BoolArray | IntArray) -> BrokenDesign:
        """Return the design of some targets, each with its cut."""
        part = object.__new__(BrokenDesign)
        part.Z, part.products, part.weight = self.Z, self.products, self.weight
        part.upper, part.far = self.upper, self.far[index]
        return part

    def fits(self, weight: Single, target: Single, mask: BoolArray) -> Single:
        """(B, 2 p) weighted least squares; ``mask`` (B, 2 p) is on for both sides or neither."""
        own = mask[:, : self.Z.shape[1]]
        far = super().fits(weight * self.far, target * self.far, own)
        near = 1 - self.far
        base = super().fits(weight * near, target * near, own)
        return np.hstack([base, far - base])

    def residuals(self, Y: Single, coef: Single) -> Single:
        """(B, n) what regressions leave of their targets."""
        p = self.Z.shape[1]
        residual: Single = super().residuals(Y, coef[:, :p]) - self.far * (coef[:, p:] @ self.Z.T)
        return residual
