"""The reach of a model that is known by its predictions alone.

In environment e, let h_e be the least squares fit of the residuals y - f on z = (1, f, x). It is
what a linear correction would have gained there: the regret of f against the best correction of
itself. Over all rows it is h, which is a fault of f but no shift; f + h is the model's best linear
repair, and the regret that a shift can scale is E_e[(h_e - h)^2]. For least squares h is zero and
this is the regret of `hetrisk.core.reach.regret`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.cells import FOLDS, Assignment, cell_moments
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY
from hetrisk.core.numerics.rows import FloatArray, Held, IntArray, Rows
from hetrisk.core.reach.curve import Line
from hetrisk.core.reach.heterogeneity import heterogeneity


@dataclass(frozen=True)
class _Given(Assignment):
    """Environments by codes that are at hand."""

    given: IntArray

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return int(self.given.max()) + 1

    def codes(self, rows: Rows) -> IntArray:
        """(n,) as given."""
        return self.given


def residual_lines(
    used: FloatArray,
    X: FloatArray,
    predicted: FloatArray,
    observed: FloatArray,
    codes: IntArray,
) -> tuple[Line, Line]:
    """Lines of a model and of least squares on all columns.

    Parameters
    ----------
    used : (n, m) standardised columns that the model looks at.
    X : (n, d) all of them.
    predicted, observed : (n, t).
    codes : (n,) environments.
    """
    model, plain = _empty(codes), _empty(codes)
    for t in range(observed.shape[1]):
        f, y = predicted[:, t], observed[:, t]
        with_f = _beside(used, f)
        model = _added(model, _line(with_f, y - f, codes, float(np.mean((y - f) ** 2))))
        plain = _added(plain, _line(X, y, codes, None))
    return model, plain


def _beside(used: FloatArray, f: FloatArray) -> FloatArray:
    """The columns with the prediction beside them, unless they make it up.

    A model that is not linear in x may still be corrected by a multiple of itself; of a linear one
    the prediction is a coefficient that nothing is fitted with.
    """
    centred = f - f.mean()
    design = used - used.mean(axis=0)
    rest = centred - design @ np.linalg.lstsq(design, centred, rcond=None)[0]
    if rest @ rest <= NEARLY_SINGULAR * (centred @ centred):
        return used
    return np.column_stack([used, centred / max(float(f.std()), TINY)])


def _line(X: FloatArray, y: FloatArray, codes: IntArray, risk: float | None) -> Line:
    """Regrets of the pooled fit; ``risk`` in place of its own, where the model was not fitted."""
    rows = Rows(X, y, np.ones(len(y)))
    cells = cell_moments(Held(rows), Gaussian(), _Given(codes), FOLDS)
    fits = heterogeneity(cells, 1).fits
    own = fits.own if risk is None else fits.own + max(risk - float(fits.risk), 0.0)
    return Line(fits.risk if risk is None else risk, fits.noise_gap, fits.excess, own)


def _empty(codes: IntArray) -> Line:
    K = len(np.unique(codes))
    return Line(0.0, 0.0, np.zeros(K), np.zeros(K))


def _added(one: Line, other: Line) -> Line:
    return Line(
        one.risk + other.risk,
        one.noise_gap + other.noise_gap,
        one.regrets + other.regrets,
        one.own + other.own,
    )
