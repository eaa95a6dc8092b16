"""Least squares on a set of columns, in every environment, that can lose or gain some of them.

Taking columns out of a least squares fit, or into it, changes the inverse of its Gram matrix by a
product of thin matrices: a candidate costs O(K d^2), and no system is solved anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetrisk.core.numerics.floors import NEARLY_SINGULAR, TINY
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray
from hetrisk.core.reach.regret import Environments, Fits, expected_error, square_block
from hetrisk.core.thresholds import THRESHOLDS


@dataclass(frozen=True)
class Costs:
    """Of m sets of columns: what they are chosen by (`hetrisk.core.reach.regret`), (m,) each.

    Further axes before this one index resamples.

    Attributes
    ----------
    risk : pooled squared error.
    noise_gap : how far the noise of the noisiest environment lies above the mean.
    worst : the largest regret beyond chance.
    mean : regret beyond chance over all rows.
    """

    risk: FloatArray
    noise_gap: FloatArray
    worst: FloatArray
    mean: FloatArray

    def expected(self, reach: float) -> FloatArray:
        """(m,) E_k of each set."""
        return expected_error(self.risk, self.noise_gap, self.worst, reach)

    def removed(self, full: int) -> FloatArray:
        """(m,) share of the mean regret of all columns, set number ``full``, that is gone.

        Where y given a set of columns is the same everywhere, all of it is.
        """
        of_all = self.mean[..., full, None]
        gone: FloatArray = (of_all - self.mean) / np.maximum(of_all, TINY)
        return gone

    def left_beyond(self, full: int) -> FloatArray:
        """(m,) mean regret that is left beyond the part that may be."""
        may_be = (1.0 - THRESHOLDS.removed) * self.mean[..., full, None]
        beyond: FloatArray = self.mean - may_be
        return beyond

    def cured(self, full: int) -> BoolArray:
        """(m,) sets that remove most of the mean regret, and that of all columns itself."""
        cured = self.removed(full) >= THRESHOLDS.removed
        cured[..., full] = True
        return cured

    def trusted(self, full: int, by_all: FloatArray) -> BoolArray:
        """(m,) sets that may be chosen before all columns, set number ``full``.

        Of those that remove most of the regret the ones that pay at reach 1, where the future is
        like an environment seen and nothing is extrapolated, and the ones that leave out what is to
        blame: they remove most even of what leaving out as many would leave, ``by_all`` (m,), if
        every relation moved (`hetrisk.core.reach.blame`).
        """
        seen = self.expected(1.0)
        to_blame = 1.0 - self.removed(full) <= (1.0 - THRESHOLDS.removed) * by_all
        trusted: BoolArray = self.cured(full) & (to_blame | (seen <= seen[..., full, None]))
        return trusted

    def best(self, reach: float, eligible: BoolArray) -> IntArray:
        """Number of the ``eligible`` (m,) set with the least E_k."""
        best: IntArray = np.where(eligible, self.expected(reach), np.inf).argmin(axis=-1)
        return best

    @classmethod
    def concatenated(cls, each: list[Costs]) -> Costs:
        """Those of several lists of sets, one after the other."""
        parts = zip(*(costs.parts for costs in each), strict=True) if each else [()] * 4
        return cls(*(np.concatenate([[], *part]) for part in parts))

    def some(self, chosen: IntArray | BoolArray | int) -> Costs:
        """Those of some of the sets, or of one."""
        return Costs(*(part[chosen] for part in self.parts))

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The arrays."""
        return self.risk, self.noise_gap, self.worst, self.mean


Cost = tuple[float, float, float, float]  # of one set: what `Costs` holds of many


def cost_of(one: Costs | Fits) -> Cost:
    """Those of a single set as plain numbers."""
    return float(one.risk), float(one.noise_gap), float(one.worst), float(one.mean)


@dataclass(frozen=True)
class SweptFit:
    """Least squares on a set of columns, ready to lose or gain some.

    Attributes
    ----------
    environments : their moments.
    chosen : (s,) positions of the constant and the columns of the set.
    gram, inverse : (K + 1, s, s) Gram matrices and their inverses; all rows first.
    coef : (K + 1, s, t).
    risk : (K + 1,) squared errors of the fits.
    """

    environments: Environments
    chosen: IntArray
    gram: FloatArray
    inverse: FloatArray
    coef: FloatArray
    risk: FloatArray

    @classmethod
    def of(cls, environments: Environments, columns: BoolArray) -> SweptFit:
        """Fit a set from scratch."""
        chosen = np.flatnonzero(np.append(True, columns))
        gram = square_block(environments.stacked[0], chosen)
        inverse: FloatArray = np.linalg.inv(gram).astype(np.float64, copy=False)
        return cls._of(environments, chosen, gram, inverse)

    def without(self, groups: list[IntArray]) -> Costs:
        """Costs of the m sets from which one of the groups of columns has left."""
        if groups and max(map(len, groups)) == 1:
            return self._one_leaving(1 + np.concatenate(groups))
        return Costs.concatenated([self._leaving(members) for members in groups])

    def with_more(self, groups: list[IntArray]) -> Costs:
        """Costs of the m sets into which one of the groups of columns has come."""
        if groups and max(map(len, groups)) == 1:
            return self._one_coming(1 + np.concatenate(groups))
        return Costs.concatenated([self._coming(members) for members in groups])

    def dropped(self, members: IntArray) -> SweptFit:
        """The fit without some columns."""
        at = np.searchsorted(self.chosen, 1 + members)
        rest = np.delete(np.arange(len(self.chosen)), at)
        out, block = self.inverse[:, at], (slice(None), rest[:, None], rest)
        # The inverse of a block: P_RR - P_RM P_MM^-1 P_MR, with P that of the whole (partitioned
        # inverse). A group is small, so the system that is solved is small as well.
        half = np.linalg.solve(out[:, :, at], out[:, :, rest])
        inverse = self.inverse[block] - np.swapaxes(out[:, :, rest], 1, 2) @ half
        return self._of(self.environments, self.chosen[rest], self.gram[block], inverse)

    def extended(self, members: IntArray) -> SweptFit:
        """The fit with more columns."""
        # Afresh: rounding would add up over a path that is many updates long.
        wider = self.columns
        wider[members] = True
        return SweptFit.of(self.environments, wider)

    @property
    def columns(self) -> BoolArray:
        """(d,) the set."""
        columns = np.zeros(self.environments.n_columns, dtype=bool)
        columns[self.chosen[1:] - 1] = True
        return columns

    @classmethod
    def _of(
        cls, environments: Environments, chosen: IntArray, gram: FloatArray, inverse: FloatArray
    ) -> SweptFit:
        """Coefficients and risks that follow from the inverse of the Gram matrix."""
        _, b, c = environments.stacked
        right = b[..., chosen, :]
        coef = inverse @ right
        risk = c - (coef * right).sum(axis=(-2, -1))
        return cls(environments, chosen, gram, inverse, coef, risk)

    def _one_leaving(self, members: IntArray) -> Costs:
        """As `_leaving`, for every column at once.

        Without column j a fit loses u_j = P e_j coef_j / P_jj, so the gap between the pooled fit
        and that of e changes by u_j of the one less u_j of the other; A_e P_e is the identity.
        """
        at = np.searchsorted(self.chosen, members)
        A = self.gram[1:]
        P0, gap = self.inverse[0], self.coef[0] - self.coef[1:]
        own = self.coef[:, at]
        # Alone, a column's constraint is a number: no system is left to solve, and all columns
        # are one array.
        diagonal = np.einsum("kii->ki", self.inverse)[:, at]
        multiplier = own / diagonal[..., None]
        risk = self.risk[:, None] + (own * multiplier).sum(axis=2)
        pooled, each = multiplier[:1], multiplier[1:]
        # With u the change of the gap, the regret becomes gap'A gap - 2 u'A gap + u'A u. The part
        # of u from e's own fit meets A_e P_e = 1, which leaves the diagonal of P_e.
        slope = A @ gap
        linear = pooled * (P0 @ slope)[:, at] - each * gap[:, at]
        # e_j' P_0 A_e P_0 e_j: what the pooled fit's change costs in the metric of e.
        spread = np.einsum("kij,ij->kj", A @ P0[:, at], P0[:, at])
        square = (
            spread[..., None] * pooled**2
            - 2.0 * pooled * each * diagonal[0, :, None]
            + diagonal[1:, :, None] * each**2
        )
        regret = np.einsum("kit,kit->k", gap, slope)[:, None] + (square - 2.0 * linear).sum(axis=2)
        return self._costs(risk, regret, len(self.chosen) - 1)

    def _one_coming(self, members: IntArray) -> Costs:
        """As `_coming`, for every column at once."""
        A, b, _ = self.environments.stacked
        inside = self.gram[1:]
        cross = A[:, self.chosen[:, None], members]
        moved = self.inverse @ cross
        own = A[:, members, members]
        # What is left of a new column beside those in the set; one that repeats them is held at a
        # trace of itself, and brings next to nothing.
        schur = np.maximum(own - (cross * moved).sum(axis=1), NEARLY_SINGULAR * own)
        regret = np.zeros((len(A) - 1, len(members)))
        risk = np.repeat(self.risk[:, None], len(members), axis=1)
        # One target at a time: (K, s, m) arrays are large enough already.
        for t in range(b.shape[2]):
            right = b[:, members, t] - np.einsum("ksm,ks->km", cross, self.coef[:, :, t])
            added = right / schur
            risk -= added * right
            # The coefficients in the set make room for what the new column explains of them.
            shift = moved * added[:, None]
            gap = (self.coef[0] - self.coef[1:])[:, :, t, None] - (shift[0] - shift[1:])
            new = added[0] - added[1:]
            regret += ((inside @ gap) * gap).sum(axis=1)
            regret += 2.0 * new * (cross[1:] * gap).sum(axis=1) + new**2 * own[1:]
        return self._costs(risk, regret, len(self.chosen) + 1)

    def _leaving(self, members: IntArray) -> Costs:
        """Project the optimum on the sets without some columns, in the metric of its curvature."""
        at = np.searchsorted(self.chosen, 1 + members)
        thin, own = self.inverse[..., at], self.coef[:, at]
        # Least squares under the constraint that these coefficients are zero: the multiplier of the
        # constraint says how hard they pull, and how much the risk rises.
        multiplier = np.linalg.solve(thin[:, at], own)
        risk = self.risk + (own * multiplier).sum(axis=(1, 2))
        coef = self.coef - thin @ multiplier
        gap = coef[:1] - coef[1:]
        regret = (gap * (self.gram[1:] @ gap)).sum(axis=(1, 2))
        return self._costs(risk[:, None], regret[:, None], len(self.chosen) - len(members))

    def _coming(self, members: IntArray) -> Costs:
        """Solve for the new coefficients first (Schur complement), then correct the others."""
        members = 1 + members
        A, b, _ = self.environments.stacked
        cross = A[:, self.chosen[:, None], members]
        moved = self.inverse @ cross
        schur = A[:, members[:, None], members] - np.swapaxes(cross, 1, 2) @ moved
        right = b[:, members] - np.swapaxes(cross, 1, 2) @ self.coef
        added = np.linalg.solve(schur, right)
        risk = self.risk - np.einsum("kit,kit->k", added, right)
        coef = np.concatenate([self.coef - moved @ added, added], axis=1)
        place = np.append(self.chosen, members)
        gap = coef[:1] - coef[1:]
        regret = (gap * (A[1:, place[:, None], place] @ gap)).sum(axis=(1, 2))
        return self._costs(risk[:, None], regret[:, None], len(place))

    def _costs(self, risk: FloatArray, regret: FloatArray, size: int) -> Costs:
        """Costs from risks (K + 1, m) and regrets (K, m) of sets of one size."""
        # A larger set shows more regret by chance alone, so each size has its own to subtract.
        beyond = regret - self.environments.noise(risk[1:], size)
        gap = self.environments.noise_gap(risk[1:], size)
        mean = self.environments.over_all(beyond.T)
        return Costs(np.maximum(risk[0], 0.0), gap, beyond.max(axis=0, initial=0.0), mean)
