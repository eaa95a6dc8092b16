"""The reach of a model that is known by its predictions alone.

In environment e, let h_e be the least squares fit of the residuals y - f on z = (1, f, x). It is
what a linear correction would have gained there: the regret of f against the best correction of
itself. Over all rows it is h, which is a fault of f but no shift; f + h is the model's best linear
repair, and the regret that a shift can scale is E_e[(h_e - h)^2]. For least squares h is zero and
this is the regret of `hetrisk.core.reach.regret`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY
from hetrisk.core.numerics.rows import FloatArray
from hetrisk.core.reach.curve import Line
from hetrisk.core.reach.heterogeneity import heterogeneity

# Moments of (x, y), (n, d) and (n,), in environments and folds.
Moments = Callable[[FloatArray, FloatArray], CellMoments]


def residual_lines(
    used: FloatArray,
    X: FloatArray,
    predicted: FloatArray,
    observed: FloatArray,
    moments: Moments,
) -> tuple[Line, Line]:
    """Lines of a model and of least squares on all columns.

    Parameters
    ----------
    used : (n, m) standardised columns that the model looks at.
    X : (n, d) all of them.
    predicted, observed : (n, t).
    moments : of columns and a target in the environments.
    """
    both = []
    for f, y in zip(predicted.T, observed.T, strict=True):
        residual = moments(_beside(used, f), y - f)
        risk = float(residual.gram[..., -1, -1].sum() / residual.weight.sum())
        both.append((_line(residual, risk), _line(moments(X, y), None)))
    model, plain = zip(*both, strict=True)
    return _added(model), _added(plain)


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


def _line(cells: CellMoments, risk: float | None) -> Line:
    """Regrets of the pooled fit; ``risk`` in place of its own, where the model was not fitted."""
    fits = heterogeneity(cells, 1).fits
    own = fits.own if risk is None else fits.own + max(risk - float(fits.risk), 0.0)
    return Line(fits.risk if risk is None else risk, fits.noise_gap, fits.excess, own)


def _added(lines: tuple[Line, ...]) -> Line:
    """The sum over targets."""
    names = ("risk", "noise_gap", "regrets", "own")
    return Line(*(np.sum([getattr(line, name) for line in lines], axis=0) for name in names))
