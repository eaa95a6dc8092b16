"""Many mixtures of regressions climbing their likelihoods side by side.

EM from many starts is one computation with a leading axis: R mixtures of K components share
the rows, so a step is a few large matrix products instead of a loop over R. A single mixture
over data of any size is the case R = 1; a plain regression is the case K = 1.

The objective of a mixture is its mean log likelihood less ``ridge / 2`` times its squared
coefficients (the ridge is 0 for the Gaussian family). It never falls: a step that would lower
it is halved, and given up when halving does not help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hetrisk.core.numerics.families import Design, Family
from hetrisk.core.numerics.floors import EMPTY_SHARE, ROUNDING, TINY
from hetrisk.core.numerics.iteration import Solution, iterate
from hetrisk.core.numerics.named_numbers import Budget
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Summed

HALVINGS: Budget[int] = 12  # of a step that lowers the objective
LONGEST: Budget[float] = 64.0  # most a squared step stretches two plain ones


@dataclass(frozen=True)
class Mixtures:
    """R mixtures of K components.

    Attributes
    ----------
    weights : (R, K) shares of the components.
    theta : (R, K, o, 1 + d) coefficients, intercept first.
    variance : (R, K) residual variances (ones where the family has none).
    """

    weights: FloatArray
    theta: FloatArray
    variance: FloatArray

    def take(self, index: IntArray) -> Mixtures:
        """Return the mixtures at ``index``."""
        return Mixtures(self.weights[index], self.theta[index], self.variance[index])

    def towards(self, other: Mixtures, share: FloatArray) -> Mixtures:
        """Move the share (R,) of the way to the other mixtures; all of it is the others exactly.

        A step that was too long may have left the numbers: what is given up must not show.
        """

        def moved(a: FloatArray, b: FloatArray) -> FloatArray:
            t = share.reshape(-1, *[1] * (a.ndim - 1))
            with np.errstate(invalid="ignore", over="ignore"):
                between = a + t * (b - a)
            mixed: FloatArray = np.where(t == 1.0, b, np.where(t == 0.0, a, between))
            return mixed

        return Mixtures(
            moved(self.weights, other.weights),
            moved(self.theta, other.theta),
            moved(self.variance, other.variance),
        )


@dataclass(frozen=True)
class Rules:
    """What the M-step holds to.

    Attributes
    ----------
    family : distribution of the target.
    tied_variance : one variance for the K components of a mixture.
    variance_floor : smallest variance, so that no component collapses on a few rows.
    ridge : penalty on squared coefficients, per row; one for all, or one each (1 + d,).
    squared_steps : extrapolate every other step. EM crawls without; Newton's own steps need no
        such help.
    """

    family: Family
    tied_variance: bool = True
    variance_floor: float = 0.0
    ridge: float | FloatArray = 0.0
    squared_steps: bool = True


@dataclass(frozen=True)
class Expectation(Summed):
    """What a pass over the rows brings back: weight and log likelihood (R,), mass (R, K), sums."""

    weight: FloatArray
    log_likelihood: FloatArray
    mass: FloatArray
    sums: Any


Evaluate = Callable[[Mixtures], Expectation]


@dataclass(frozen=True)
class Climb:
    """Mixtures on their way up.

    Attributes
    ----------
    mixtures : where they are.
    objective : (R,) what each has reached.
    expectation : the sums the next step is made of.
    before : where they were, if the last step was a plain M-step.
    """

    mixtures: Mixtures
    objective: FloatArray
    expectation: Expectation
    before: Mixtures | None = None


def joint_log_density(
    family: Family, design: Design, mixtures: Mixtures, eta: FloatArray
) -> FloatArray:
    """Log q_k + log h_k(y | x) for every mixture, component and row: (R, K, n)."""
    joint = family.log_density(design.rows.y, eta, mixtures.variance[..., None])
    # An empty component keeps a trace of a share, so that its logarithm is a number.
    joint += np.log(np.maximum(mixtures.weights, EMPTY_SHARE))[..., None]
    return joint


def normalised(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Responsibilities and log densities from joint log densities, over the axis before last.

    The largest is subtracted first: densities of distant rows underflow. ``joint`` is reused.
    """
    top = joint.max(axis=-2, keepdims=True)
    joint -= top
    np.exp(joint, out=joint)
    total = joint.sum(axis=-2, keepdims=True)
    joint /= total
    return joint, (np.log(total) + top)[..., 0, :]


def expectation(
    design: Design, mixtures: Mixtures, family: Family, weight: FloatArray
) -> Expectation:
    """E-step on a block, with row weights (1, n) or (R, n)."""
    eta = family.predictor(design.rows, mixtures.theta)
    share, density = normalised(joint_log_density(family, design, mixtures, eta))
    share *= weight[:, None, :]
    return Expectation(
        weight=np.broadcast_to(weight.sum(axis=-1), density.shape[:1]),
        log_likelihood=(density * weight).sum(axis=-1),
        mass=share.sum(axis=-1),
        sums=family.sums(design, share, eta),
    )


def maximisation(expected: Expectation, mixtures: Mixtures, rules: Rules) -> Mixtures:
    """M-step: shares in proportion to mass, coefficients by the family, variances by the rules.

    A floored variance is the constrained maximiser, so the floor never lowers the likelihood.
    """
    total = np.maximum(expected.weight, TINY)[:, None]
    each = np.broadcast_to(rules.ridge, mixtures.theta.shape[-1:])
    penalty = np.broadcast_to(total[..., None] * each, (*expected.mass.shape, len(each)))
    theta, variance = rules.family.improve(expected.sums, mixtures.theta, penalty)
    if not rules.family.has_variance:
        variance = mixtures.variance
    elif rules.tied_variance:
        # Residual sums of squares over all components, divided by all rows: the M-step of one
        # variance.
        pooled = (variance * expected.mass).sum(axis=-1, keepdims=True) / total
        variance = np.broadcast_to(pooled, variance.shape)
    else:
        # A component that lost all its rows has no residuals; it keeps what it had.
        variance = np.where(expected.mass > 0, variance, mixtures.variance)
    return Mixtures(expected.mass / total, theta, np.maximum(variance, rules.variance_floor))


def run(
    evaluate: Evaluate, start: Mixtures, rules: Rules, *, tol: float, max_iter: int
) -> Solution[Climb]:
    """Climb until the objectives together rise by at most ``tol``."""

    def step(state: Climb) -> tuple[Climb, float]:
        return climb(evaluate, state, rules), float(state.objective.sum())

    return iterate(step, begin(evaluate, start, rules), tol=tol, max_iter=max_iter)


def begin(evaluate: Evaluate, mixtures: Mixtures, rules: Rules) -> Climb:
    """Evaluate the starts."""
    expected = evaluate(mixtures)
    return Climb(mixtures, objective_of(expected, mixtures, rules), expected)


def climb(evaluate: Evaluate, state: Climb, rules: Rules) -> Climb:
    """One step of every mixture; none of the objectives falls by more than rounding.

    Plain M-steps and squared steps take turns. A squared step that falls is replaced by the
    plain one, a plain one that falls (a Newton step too long) is halved; one pass each.
    """
    plain = maximisation(state.expectation, state.mixtures, rules)
    is_plain = state.before is None
    # Extrapolation needs two plain steps in a row: the last one, and this.
    candidate = plain
    if state.before is not None:
        candidate = squared(state.before, state.mixtures, plain)
        # An extrapolated variance knows no floor: it would pass it, and rise on a few rows.
        floored = np.maximum(candidate.variance, rules.variance_floor)
        candidate = replace(candidate, variance=floored)
    target = state.mixtures if is_plain else plain
    for _ in range(HALVINGS):
        expected = evaluate(candidate)
        objective = objective_of(expected, candidate, rules)
        fallen = ~(objective >= state.objective)
        if not fallen.any():
            before = state.mixtures if is_plain and rules.squared_steps else None
            return Climb(candidate, objective, expected, before)
        if target is state.mixtures and _only_rounding(objective, state.objective, fallen):
            # There, but for rounding; and a Newton step has squared what was left of the way.
            return Climb(candidate, np.maximum(objective, state.objective), expected)
        # First back to the plain step, which EM says cannot fall; then half way back to where it
        # was, and half of that.
        candidate = candidate.towards(
            target, np.where(fallen, 0.5 if target is state.mixtures else 1.0, 0.0)
        )
        target = state.mixtures
    # Others may have risen with the last candidate: each mixture keeps its own better place.
    if fallen.all():
        return Climb(state.mixtures, state.objective, state.expectation)
    kept = candidate.towards(state.mixtures, np.where(fallen, 1.0, 0.0))
    return Climb(kept, np.maximum(objective, state.objective), evaluate(kept))


def squared(first: Mixtures, second: Mixtures, third: Mixtures) -> Mixtures:
    """Extrapolate two M-steps in a row (the SQUAREM scheme of Varadhan and Roland, 2008).

    With r = x1 - x0 and v = x2 - 2 x1 + x0 the point is x0 + 2 a r + a^2 v, a = |r| / |v|, in
    the logarithms of weights and variances and the coefficients as they are; a = 1 is x2.
    """
    x0, x1, x2 = _coordinates(first), _coordinates(second), _coordinates(third)
    r = [b - a for a, b in zip(x0, x1, strict=True)]
    v = [c - b - u for b, c, u in zip(x1, x2, r, strict=True)]
    # Below one the step would go back; beyond the longest it leaves where the two steps were
    # informative. Logarithms keep shares and variances positive however far it goes.
    a = np.clip(np.sqrt(_size(r) / np.maximum(_size(v), TINY)), 1.0, LONGEST)
    weights, theta, variance = (
        z + (shape := a.reshape(-1, *[1] * (z.ndim - 1))) * (2 * u + shape * w)
        for z, u, w in zip(x0, r, v, strict=True)
    )
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    return Mixtures(weights / weights.sum(axis=-1, keepdims=True), theta, np.exp(variance))


def objective_of(expected: Expectation, mixtures: Mixtures, rules: Rules) -> FloatArray:
    """Mean log likelihood less the ridge penalty, (R,)."""
    size = (rules.ridge * mixtures.theta**2).sum(axis=(1, 2, 3))
    objective: FloatArray = expected.log_likelihood / np.maximum(expected.weight, TINY) - 0.5 * size
    return objective


def _only_rounding(new: FloatArray, old: FloatArray, fallen: BoolArray) -> bool:
    gap = (old - new)[fallen]
    return bool(np.all(gap <= ROUNDING * (1.0 + np.abs(old[fallen]))))


def _coordinates(mixtures: Mixtures) -> tuple[FloatArray, FloatArray, FloatArray]:
    floored = np.maximum(mixtures.weights, EMPTY_SHARE)
    return np.log(floored), mixtures.theta, np.log(mixtures.variance)


def _size(parts: list[FloatArray]) -> FloatArray:
    size: FloatArray = sum(((p**2).reshape(len(p), -1).sum(axis=1) for p in parts), np.zeros(1))
    return size
