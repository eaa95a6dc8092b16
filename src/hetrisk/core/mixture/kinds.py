"""Mixtures of regressions in which whole groups of rows share their component.

Two hundred sites with ten rows each are too many to fit one by one, but they may fall into a few
kinds. With M_j the moments of (1, x, y) in group j and n_j its rows, the log likelihood of group j
in a component with coefficients beta and variance v is

    -n_j / 2 (log v + E_j[(y - z'beta)^2] / v),

so EM needs the groups' moments and nothing else: no row is touched, and an iteration costs
O(J K p^2).
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from hetrisk.core.mixture.criteria import bic
from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.ensemble import normalised
from hetrisk.core.numerics.floors import NEARLY_SINGULAR, RIDGE, TINY
from hetrisk.core.numerics.iteration import iterate
from hetrisk.core.numerics.named_numbers import Budget, Constant
from hetrisk.core.numerics.rows import FloatArray, IntArray

MOST_KINDS: Budget[int] = 3
STARTS: Budget[int] = 6
ITERATIONS: Budget[int] = 50
TOLERANCE: Budget[float] = 1e-7  # gain in mean log likelihood below which EM has arrived
SEED: Constant[int] = 20210718


def assign_kinds(halves: list[CellMoments], n_targets: int) -> IntArray:
    """(2, J) kind of every group, found in each half of its rows on its own.

    The number of kinds, two or three, is the one that BIC prefers in the first half; the kinds of
    the second half are numbered so that their coefficients are nearest to those of the first.
    """
    moments = [_means(half) for half in halves]
    first = max(
        (_fit(*moments[0], n_targets, K) for K in range(2, MOST_KINDS + 1)), key=lambda f: f[2]
    )
    K = len(first[0])
    second = _fit(*moments[1], n_targets, K)
    # Two fits number their kinds as they please; at most three kinds have six orders.
    gap = ((first[0][:, None] - second[0][None]) ** 2).sum(axis=(2, 3))
    best = min(permutations(range(K)), key=lambda p: sum(gap[k, p[k]] for k in range(K)))
    place = np.argsort(best)
    found = np.stack([first[1].argmax(axis=1), place[second[1].argmax(axis=1)]])
    # Numbered as they come: which of equal kinds EM calls the first is a matter of rounding.
    met = np.unique(found[0], return_index=True)[1]
    rest = np.setdiff1d(np.arange(K), found[0])
    order = np.concatenate([found[0][np.sort(met)], rest])
    numbered: IntArray = np.argsort(order)[found]
    return numbered


def _means(cells: CellMoments) -> tuple[FloatArray, FloatArray]:
    """(J, q, q) mean products and (J,) effective rows; groups without rows say nothing."""
    weight = cells.weight.sum(axis=1)
    gram = cells.gram.sum(axis=1) / np.where(weight > 0, weight, 1.0)[:, None, None]
    return gram, cells.effective_rows


def _fit(
    gram: FloatArray, rows: FloatArray, n_targets: int, K: int
) -> tuple[FloatArray, FloatArray, float]:
    """Coefficients (K, p, t), memberships (J, K) and minus the BIC of the best of some starts."""
    random = np.random.default_rng(SEED)
    best: tuple[FloatArray, FloatArray, float] | None = None
    for _ in range(STARTS):
        found = _climb(gram, rows, n_targets, random.dirichlet(np.full(K, 0.5), len(rows)))
        if best is None or found[2] > best[2]:
            best = found
    assert best is not None
    coef, member, value = best
    return coef, member, -bic(value, coef.size + K, max(float(rows.sum()), 2.0))


def _climb(
    gram: FloatArray, rows: FloatArray, n_targets: int, member: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """EM from given memberships; one variance for all components and targets."""
    p = gram.shape[-1] - n_targets
    # (A, b) of each group, row after row: what is summed over groups or components is a product.
    moments = gram[:, :p].reshape(len(gram), -1)
    c = np.einsum("jii->j", gram[:, p:, p:])
    total = rows.sum()
    size = np.einsum("j,jii->i", rows / total, gram[:, :p, :p])
    # A column that is zero in all these rows has no size of its own, and gets no coefficient.
    ridge = RIDGE * np.diag(np.where(size > 0.0, size, 1.0))

    def step(state: tuple[FloatArray, FloatArray]) -> tuple[tuple[FloatArray, FloatArray], float]:
        # M-step: moments of each kind are sums of its groups' moments, and its fit follows from
        # them.
        """M-step from the memberships given, then the E-step."""
        weight = state[1] * rows[:, None]
        mass = np.maximum(weight.sum(axis=0), NEARLY_SINGULAR)
        means = (weight.T @ moments / mass[:, None]).reshape(len(mass), p, -1)
        coef = np.linalg.solve(means[:, :, :p] + ridge, means[:, :, p:])
        square = np.concatenate([coef @ np.swapaxes(coef, 1, 2), -2.0 * coef], axis=2)
        loss = np.maximum(c[:, None] + moments @ square.reshape(len(mass), -1).T, 0.0)
        # One variance for all: with its own, a kind of a few quiet groups would win any likelihood.
        variance = max(float((weight * loss).sum()) / (total * n_targets), TINY)
        log = -0.5 * rows[:, None] * (n_targets * np.log(variance) + loss / variance)
        log = log + np.log(np.maximum(state[1].mean(axis=0), TINY))
        shares, density = normalised(np.ascontiguousarray(log.T))
        return (coef, shares.T), float(density.sum())

    nothing = np.zeros((member.shape[1], p, n_targets))
    solution = iterate(step, (nothing, member), tol=TOLERANCE * total, max_iter=ITERATIONS)
    return *solution.value, float(solution.path[-1])
