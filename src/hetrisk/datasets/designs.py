"""Designed tasks: heterogeneity in shapes that the paper's two simulators do not have.

Selection that looks at the target itself, effects that grow noisier, a copied label, and causes
whose slopes drift. All are drawn from closed forms or by rejection from the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.checks import at_least, fraction, one_of
from hetrisk.datasets.mixing import INVARIANT, NOISE, SPURIOUS, mixed_task
from hetrisk.datasets.task import Sample, ShiftTask

CURVES: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "product": lambda S: S[:, 0] * S[:, 1] * S[:, 2],
    "square": lambda S: S[:, 0] ** 2,
    "exp": lambda S: np.exp(0.7 * S[:, 0]),
    "step": lambda S: np.where((S[:, 0] > 0.5) & (S[:, 1] > 0), 3.0, 0.0),
}
SELECTION_TESTS = (-3.0, -2.0, -1.7, 1.7, 2.0, 3.0)
BATCH = 100_000  # rows drawn at a time, of which selection keeps some


def selected_on_target_task(
    seed: int = 0,
    curve: str = "product",
    noise: float = 0.3,
    r: float = 1.9,
    minority_r: float = -1.1,
    share: float = 0.95,
    n_samples: int = 2000,
    n_causes: int = 5,
    n_others: int = 4,
    spread: float = 1.0,
    rotated: bool = False,
    n_test: int = 1000,
) -> ShiftTask:
    """Rows are selected by how well a shortcut V agrees with y itself, noise and all.

    A row is kept with probability |r|^(-5 |V - sign(r) y|). V then tells something about y that
    no model of the causes can replace, and in another environment (another r) it tells something
    else. ``share`` of the rows are selected at ``r``, the rest at ``minority_r``; ``curve`` is
    what y has beyond a linear function of its causes.
    """
    setting = dict(locals())
    one_of("curve", curve, CURVES)
    fraction("share", share)
    at_least("n_causes", n_causes, 3)
    rng = np.random.default_rng(seed)
    theta = np.array([(-1) ** i * (i % 3 + 1) / 2 for i in range(n_causes)])

    def candidates(r: float) -> tuple[FloatArray, FloatArray]:
        z = rng.standard_normal((BATCH, n_causes + 1))
        S = 0.8 * z[:, :-1] + 0.2 * z[:, 1:]
        V = spread * rng.standard_normal((BATCH, n_others + 1))
        y = S @ theta + CURVES[curve](S) + noise * rng.standard_normal(BATCH)
        kept = rng.random(BATCH) < np.abs(r) ** (-5 * np.abs(V[:, -1] - np.sign(r) * y))
        return np.column_stack([S, V])[kept], y[kept]

    def draw(r: float, n: int) -> Sample:
        X, y = candidates(r)
        while len(y) < n:
            more = candidates(r)
            X, y = np.vstack([X, more[0]]), np.append(y, more[1])
        return Sample(X[:n], y[:n])

    n_major = round(share * n_samples)
    sizes = {r: n_major, minority_r: n_samples - n_major}
    return mixed_task(
        "selected_on_target",
        {f"r={at:g}": draw(at, n) for at, n in sizes.items() if n},
        {f"r={at:g}": draw(at, n_test) for at in SELECTION_TESTS},
        [*[INVARIANT] * n_causes, *[NOISE] * n_others, SPURIOUS],
        setting,
        rng,
        rotated=rotated,
    )


def spreading_effects_task(
    seed: int = 0,
    sizes: tuple[int, ...] = (1000, 300, 300),
    spreads: tuple[float, ...] = (0.3, 1.0, 2.0),
    shifts: tuple[float, ...] = (0.0, 1.0, -1.0),
    n_causes: int = 6,
    n_effects: int = 3,
    n_test: int = 1500,
) -> ShiftTask:
    """Effects of y that are noisier in some environments; the causes shift along.

    ``sizes``, ``spreads`` (standard deviation of the effects' noise) and ``shifts`` (of the
    causes' means) are those of the training environments.
    """
    setting = dict(locals())
    if not len(sizes) == len(spreads) == len(shifts):
        raise ValueError(
            "sizes, spreads and shifts must have one entry an environment; "
            f"got {len(sizes)}, {len(spreads)} and {len(shifts)}."
        )
    rng = np.random.default_rng(seed)
    theta = rng.normal(1.0, 0.5, n_causes) * rng.choice([-1, 1], n_causes)
    pull, direction = rng.normal(0.8, 0.1, n_effects), rng.standard_normal(n_causes)

    def draw(n: int, spread: float, shift: float) -> Sample:
        X = rng.standard_normal((n, n_causes)) + shift * direction
        y = X @ theta + 0.5 * rng.standard_normal(n)
        effects = y[:, None] * pull + spread * rng.standard_normal((n, n_effects))
        return Sample(np.column_stack([X, effects]), y)

    tests = ((0.3, 0.0), (2.0, 1.0), (4.0, -1.0), (8.0, -2.0))
    train = zip(sizes, spreads, shifts, strict=True)
    return mixed_task(
        "spreading_effects",
        {f"e{i}: spread {a[1]:g}": draw(*a) for i, a in enumerate(train, start=1)},
        {f"spread {spread:g}": draw(n_test, spread, shift) for spread, shift in tests},
        [*[INVARIANT] * n_causes, *[SPURIOUS] * n_effects],
        setting,
        rng,
    )


def copied_label_task(
    seed: int = 0,
    rates: tuple[float, ...] = (0.7, 0.9),
    n_samples: int = 1000,
    n_each: int = 5,
    rotated: bool = False,
    n_test: int = 1000,
) -> ShiftTask:
    """Noisy causes of a label, and sharp copies of it that are wrong more often here than there.

    In a training environment with rate p the copied label is right with probability p, in the
    tests with 0.1 and 0.3 (after Liu et al., Kernelized HRM, arXiv:2110.12425). Pooled, the rows
    are one population: only named or hinted environments can tell the copies from causes.
    ``n_samples`` is that of each environment.
    """
    setting = dict(locals())
    for rate in rates:
        fraction("rates", rate)
    rng = np.random.default_rng(seed)

    def draw(rate: float, n: int) -> Sample:
        y = rng.choice([1, -1], n)
        copied = y * rng.choice([1, -1], n, p=[rate, 1 - rate])
        causes = y[:, None] + 3.0 * rng.standard_normal((n, n_each))
        copies = copied[:, None] + 0.3 * rng.standard_normal((n, n_each))
        return Sample(np.column_stack([causes, copies]), (y > 0).astype(np.int64))

    return mixed_task(
        "copied_label",
        {f"right {rate:g}": draw(rate, n_samples) for rate in rates},
        {f"right {rate:g}": draw(rate, n_test) for rate in (0.1, 0.3)},
        [*[INVARIANT] * n_each, *[SPURIOUS] * n_each],
        setting,
        rng,
        labels=True,
        rotated=rotated,
    )


def drifting_causes_task(
    seed: int = 0,
    n_drifting: int = 1,
    spread: float = 1.0,
    n_environments: int = 4,
    n_samples: int = 500,
    n_causes: int = 5,
    n_test: int = 1000,
) -> ShiftTask:
    """Every column is a cause, and the slopes of some of them drift between environments.

    Leaving a drifting cause out never pays: its mean slope is the best there is, however far the
    slopes go. ``n_drifting = n_causes`` is the table in which every slope moves; ``spread`` is the
    standard deviation of the drift, tripled in the tests; ``n_samples`` rows an environment.
    """
    setting = dict(locals())
    at_least("n_drifting", n_drifting, 0)
    at_least("n_environments", n_environments, 2)
    rng = np.random.default_rng(seed)
    theta = rng.normal(1.0, 0.3, n_causes)

    def draw(n: int, spread: float) -> Sample:
        X = rng.standard_normal((n, n_causes))
        drift = np.where(np.arange(n_causes) < n_drifting, spread, 0.0) * rng.standard_normal(
            n_causes
        )
        return Sample(X, X @ (theta + drift) + 0.5 * rng.standard_normal(n))

    return mixed_task(
        "drifting_causes",
        {f"e{i + 1}": draw(n_samples, spread) for i in range(n_environments)},
        {f"t{i + 1}": draw(n_test, 3.0 * spread) for i in range(4)},
        [INVARIANT] * n_causes,
        setting,
        rng,
    )
