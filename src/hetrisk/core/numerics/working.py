"""A regression and what its first-order theory needs: residuals, curvature, robust errors.

For the Gaussian this is least squares. For labels it is the logistic fit, seen as weighted
least squares of its working response; everything that is added to it afterwards is judged by
one more Newton step, so that one set of formulas serves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import (
    FLAT,
    MOST_LEVERAGE,
    NEARLY_SINGULAR,
    ROUNDING,
    TINY,
    TINY_ROOT,
)
from hetrisk.core.numerics.glm import fit_glm_rows
from hetrisk.core.numerics.rows import FloatArray, Rows


@dataclass(frozen=True)
class WorkingFit:
    """A fit of y on p columns, the constant first.

    Attributes
    ----------
    design : (n, p).
    coef : (p,).
    residual : (n,) weighted gradient of the log likelihood in eta: w (y - mean).
    curvature : (n,) weighted minus second derivative in eta: w, or w p (1 - p).
    bread : (p, p) inverse of design' curvature design.
    """

    design: FloatArray
    coef: FloatArray
    residual: FloatArray
    curvature: FloatArray
    bread: FloatArray

    @property
    def leverage(self) -> FloatArray:
        """(n,) weight of each row in its own fitted value, kept below one."""
        own = self.curvature * np.einsum("ij,ij->i", self.design @ self.bread, self.design)
        leverage: FloatArray = np.clip(own, 0.0, MOST_LEVERAGE)
        return leverage

    @property
    def covariance(self) -> FloatArray:
        """(p, p) heteroscedasticity-consistent covariance (HC3, MacKinnon and White 1985)."""
        # HC3 divides by 1 - leverage: what the row would leave, had it not been fitted to itself.
        influence = (self.residual / (1.0 - self.leverage))[:, None] * (self.design @ self.bread)
        covariance: FloatArray = influence.T @ influence
        return covariance

    @property
    def z(self) -> FloatArray:
        """(p,) coefficients over their robust standard errors."""
        error = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        z: FloatArray = self.coef / np.maximum(error, TINY)
        return z

    def residualised(self, columns: FloatArray) -> FloatArray:
        """Columns with everything the design explains of them taken out, in its metric."""
        cross = self.design.T @ (self.curvature[:, None] * columns)
        taken: FloatArray = columns - self.design @ (self.bread @ cross)
        return taken


def working_fit(rows: Rows, family: Family, extra: FloatArray) -> WorkingFit:
    """Fit y on (1, X, extra)."""
    design = np.column_stack([np.ones(len(rows)), rows.X, extra])
    if family.closed_form:
        curvature = rows.weight
        bread = _inverse(design.T @ (curvature[:, None] * design))
        coef = bread @ (design.T @ (curvature * rows.y))
        return WorkingFit(design, coef, rows.weight * (rows.y - design @ coef), curvature, bread)
    # The fit's ridge is on coefficients as given, so the columns are brought to size one first.
    scale = design[:, 1:].std(axis=0)
    scale = np.where(scale > ROUNDING, scale, 1.0)
    fit = fit_glm_rows(Rows(design[:, 1:] / scale, rows.y, rows.weight), None, family)
    coef = np.append(fit.intercept, fit.coef[0] / scale)
    eta = design @ coef
    residual = rows.weight * family.gradient(rows.y, eta)
    # A probability of almost one has almost no curvature: its row would have infinite leverage.
    curvature = rows.weight * np.maximum(family.curvature(rows.y, eta), FLAT)
    bread = _inverse(design.T @ (curvature[:, None] * design))
    return WorkingFit(design, coef, residual, curvature, bread)


def _inverse(gram: FloatArray) -> FloatArray:
    """Inverse of a Gram matrix after scaling to unit diagonal; a tiny ridge where singular.

    A column of zeros is taken to be of size one: its coefficient is then zero.
    """
    scale = np.sqrt(np.diag(gram))
    empty = scale < TINY_ROOT  # its square cannot be divided by
    scale = np.where(empty, 1.0, scale)
    unit = gram / np.outer(scale, scale) + np.diag(np.where(empty, 1.0, NEARLY_SINGULAR))
    inverse: FloatArray = np.linalg.inv(unit) / np.outer(scale, scale)
    return inverse
