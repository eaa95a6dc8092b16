"""Several sets of columns side by side: the risk and the regrets of each.

Sets along a path, each holding the one before, cost one factorisation together: with columns in
the order in which they come in, the Cholesky factor of a set is a leading block of that of the
last (A = L L'). Whether environments are those of all rows or of many resamples of them
(`hetrisk.core.reach.resampling`), nothing here loops over them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments, expected_error
from hetrisk.core.reach.sweep import Costs, SweptFit


@dataclass(frozen=True)
class SetErrors:
    """Risk (m,) and regrets (m, K) of m sets of columns, on all rows or (first axis) in resamples.

    ``own`` (m, K) are the risks of the environments' own fits, ``noise_gap`` (m,) how far the
    noisiest lies above the mean, ``mean`` (m,) the regrets over all rows.
    """

    risk: FloatArray
    noise_gap: FloatArray
    regrets: FloatArray
    own: FloatArray
    mean: FloatArray

    @property
    def worst(self) -> FloatArray:
        """(m,) the largest regret of each set."""
        worst: FloatArray = self.regrets.max(axis=-1, initial=0.0)
        return worst

    def expected(self, reach: float) -> FloatArray:
        """(m,) E_k of each set."""
        return expected_error(self.risk, self.noise_gap, self.worst, reach)

    @property
    def costs(self) -> Costs:
        """What the sets are chosen by."""
        return Costs(self.risk, self.noise_gap, self.worst, self.mean)

    def less(self, chance: FloatArray) -> SetErrors:
        """With regrets less so much (m,) for each set, none below zero."""
        regrets = np.maximum(self.regrets - chance[:, None], 0.0)
        return replace(self, regrets=regrets)

    def concatenated(self, other: SetErrors) -> SetErrors:
        """These sets, and then the other ones."""
        pairs, axis = zip(self.parts, other.parts, strict=True), self.risk.ndim - 1
        return SetErrors(*(np.concatenate(pair, axis=axis) for pair in pairs))

    @property
    def parts(self) -> tuple[FloatArray, ...]:
        """The arrays."""
        return self.risk, self.noise_gap, self.regrets, self.own, self.mean


def joined(batches: list[SetErrors]) -> SetErrors:
    """The same sets in several batches of resamples."""
    if len(batches) == 1:
        return batches[0]
    return SetErrors(*map(np.concatenate, zip(*(b.parts for b in batches), strict=True)))


def evaluate_sets(environments: Environments, sets: BoolArray) -> SetErrors:
    """Fit sets of columns (m, d): those that lack few of all columns from the fit on all of them.

    Sets that lack as many are one array.
    """
    d, missing = environments.n_columns, (~sets).sum(axis=1)
    size = 1 + d - missing
    risk = np.empty((*environments.stacked[2].shape, len(sets)))
    regret = np.empty((*risk.shape[:-2], risk.shape[-2] - 1, len(sets)))
    whole = None
    for count in np.unique(missing):
        alike = np.flatnonzero(missing == count)
        if count <= d // 2:
            whole = whole or SweptFit.of(environments, np.ones(d, dtype=bool))
            found = whole.leaving(np.nonzero(~sets[alike])[1].reshape(len(alike), count))
        else:
            found = _afresh(environments, sets[alike])
        risk[..., alike], regret[..., alike] = found
    return _set_errors(environments, risk, regret, size)


def evaluate_path(environments: Environments, path: BoolArray) -> SetErrors:
    """Fit m sets of columns, each of which holds the one before: one factorisation.

    For the leading block L_s of L, w = L^-1 b gives the risk c - |w_s|^2 of a set and its
    coefficients L_s^-T w_s, which are those of L' x = (w_s, 0).
    """
    A, b, c = environments.stacked
    place = _in_order_of_entry(path)
    A, b = A[..., place[:, None], place], b[..., place, :]
    size = 1 + path.sum(axis=1)
    factor = np.linalg.cholesky(A)
    white = np.linalg.solve(factor, b)[..., None, :]
    prefix = np.arange(len(place))[:, None, None] < size[:, None]
    right = np.where(prefix, white, 0.0)
    risk = c[..., None] - (right**2).sum(axis=(-3, -1))
    flat = right.reshape(*right.shape[:-2], -1)
    coef = np.linalg.solve(np.swapaxes(factor, -1, -2), flat)
    gap = coef[..., :1, :, :] - coef[..., 1:, :, :]
    square = (gap * (A[..., 1:, :, :] @ gap)).sum(axis=-2)
    regret = square.reshape(*square.shape[:-1], len(path), -1).sum(axis=-1)
    return _set_errors(environments, risk, regret, size)


def _afresh(environments: Environments, sets: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Risks (K + 1, m) and regrets (K, m) of sets (m, d) of one size, each fitted by itself."""
    A, b, c = environments.stacked
    at = np.nonzero(np.pad(sets, ((0, 0), (1, 0)), constant_values=True))[1].reshape(len(sets), -1)
    gram, right = A[..., at[:, :, None], at[:, None, :]], b[..., at, :]
    coef = np.linalg.solve(gram, right)
    risk = c[..., None] - (coef * right).sum(axis=(-2, -1))
    gap = coef[..., :1, :, :, :] - coef[..., 1:, :, :, :]
    return risk, (gap * (gram[..., 1:, :, :, :] @ gap)).sum(axis=(-2, -1))


def _set_errors(
    environments: Environments, risk: FloatArray, regret: FloatArray, size: IntArray
) -> SetErrors:
    """From risks (K + 1, m) and regrets (K, m) of sets of ``size`` (m,) coefficients."""
    risk = np.maximum(risk, 0.0)
    own = risk[..., 1:, :]
    beyond = np.swapaxes(regret - environments.noise(own, size), -1, -2)
    return SetErrors(
        risk[..., 0, :],
        environments.noise_gap(own, size),
        np.maximum(beyond, 0.0),
        np.swapaxes(own, -1, -2),
        environments.over_all(beyond),
    )


def _in_order_of_entry(path: BoolArray) -> IntArray:
    """Positions of the constant and of the columns of the last set, the first to come in first."""
    entry = (~path).sum(axis=0)
    order = np.argsort(entry, kind="stable")
    return np.append(0, 1 + order[: int(path[-1].sum())])
