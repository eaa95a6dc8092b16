"""Several sets of columns side by side: the risk and the regrets of each.

Sets along a path, each holding the one before, cost one factorisation together: with columns in
the order in which they come in, the Cholesky factor of a set is a leading block of that of the
last (A = L L'). Any sets make a few such paths. Whether environments are those of all rows or of
many resamples of them (`hetrisk.core.reach.resampling`), nothing here loops over them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments, expected_error, square_block
from hetrisk.core.reach.sweep import Costs


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

    def some(self, chosen: IntArray) -> SetErrors:
        """Those of some of the sets."""
        axis = self.risk.ndim - 1
        return SetErrors(*(np.take(part, chosen, axis=axis) for part in self.parts))

    @property
    def parts(self) -> tuple[FloatArray, ...]:
        """The arrays."""
        return self.risk, self.noise_gap, self.regrets, self.own, self.mean


def joined(batches: list[SetErrors], axis: int = 0) -> SetErrors:
    """The same sets in several batches of resamples; further sets, along the last axis of risk."""
    if len(batches) == 1:
        return batches[0]
    pairs = zip(*(b.parts for b in batches), strict=True)
    return SetErrors(*(np.concatenate(pair, axis=axis) for pair in pairs))


def evaluate_sets(environments: Environments, sets: BoolArray) -> SetErrors:
    """Fit any sets of columns (m, d), at least one: those that hold one another side by side."""
    chains = _chains(sets)
    found = [evaluate_path(environments, sets[chain]) for chain in chains]
    order = np.argsort(np.concatenate(chains))
    return joined(found, axis=found[0].risk.ndim - 1).some(order)


def _chains(sets: BoolArray) -> list[IntArray]:
    """Numbers of sets (m, d), in a few lists in which each set holds the one before."""
    chains: list[list[int]] = []
    for i in np.argsort(sets.sum(axis=1), kind="stable"):
        # Where searches went along paths, as here, few chains hold all that they met.
        within = (chain for chain in chains if not (sets[chain[-1]] & ~sets[i]).any())
        chain = next(within, None)
        if chain is None:
            chains.append([int(i)])
        else:
            chain.append(int(i))
    return [np.array(chain) for chain in chains]


def evaluate_path(environments: Environments, path: BoolArray) -> SetErrors:
    """Fit m sets of columns, each of which holds the one before: one factorisation.

    For the leading block L_s of L, w = L^-1 b gives the risk c - |w_s|^2 of a set and its
    coefficients beta_s = L_s^-T w_s, which are those of L' x = (w_s, 0). Of the environments these
    need not be known: with L_e' beta_e,s = w_e,s the regret is |L_e' beta_s - w_e,s|^2.
    """
    place = _in_order_of_entry(path)
    factor, white = _factored(environments, place)
    size = 1 + path.sum(axis=1)
    square = np.cumsum((white**2).sum(axis=-1), axis=-1)
    risk = environments.stacked[2][..., None] - square[..., size - 1]
    prefix = np.arange(len(place))[:, None, None] < size[:, None]
    right = np.where(prefix, white[..., None, :], 0.0).reshape(*white.shape[:-1], -1)
    upper = np.swapaxes(factor, -1, -2)
    coef = np.linalg.solve(upper[..., 0, :, :], right[..., 0, :, :])
    gap = upper[..., 1:, :, :] @ coef[..., None, :, :] - right[..., 1:, :, :]
    regret = (gap**2).sum(axis=-2)
    regret = regret.reshape(*regret.shape[:-1], len(path), -1).sum(axis=-1)
    return _set_errors(environments, risk, regret, size)


def _factored(environments: Environments, place: IntArray) -> tuple[FloatArray, FloatArray]:
    """L (K + 1, s, s) with L L' = A, and w = L^-1 b (K + 1, s, t), of some coefficients."""
    A, b, c = environments.stacked
    s, t = len(place), b.shape[-1]
    # The factor of (A b; b' D) holds w' in its last rows: no system is solved. Any D larger than
    # b' A^-1 b will do, and the trace of that is at most c.
    wide = np.zeros((*c.shape, s + t, s + t))
    wide[..., :s, :s] = square_block(A, place)
    wide[..., s:, :s] = np.swapaxes(b[..., place, :], -1, -2)
    wide[..., s:, s:] = (1.0 + c)[..., None, None] * np.eye(t)
    factor = np.linalg.cholesky(wide)
    return factor[..., :s, :s], np.swapaxes(factor[..., s:, :s], -1, -2)


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
