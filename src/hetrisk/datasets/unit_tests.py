"""The three linear unit tests of out-of-distribution generalisation of Aubin et al. (2021).

arXiv:2102.10867. Each has invariant and spurious columns, in three environments by default; in
the test environments the spurious columns are shuffled between rows, so that they tell nothing.
Written from the paper's description; the targets of the first are summed to one number.
"""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.datasets.checks import at_least
from hetrisk.datasets.mixing import INVARIANT, SPURIOUS, mixed_task
from hetrisk.datasets.task import Sample, ShiftTask

VARIANCE = 0.1
ANIMAL = 0.01  # how faint the animal is beside the background
MARGIN = 0.1
PLACES = ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7))  # shares: usual background, first background


def _shuffled(columns: FloatArray, rng: np.random.Generator, shuffle: bool) -> FloatArray:
    return columns[rng.permutation(len(columns))] if shuffle else columns


def cause_and_effect_task(
    seed: int = 0,
    n_samples: int = 1000,
    n_each: int = 5,
    deviations: tuple[float, ...] = (0.1, 1.5, 2.0),
) -> ShiftTask:
    """First unit test: x causes y causes z, and environments scale the noise of x and y.

    Least squares leans on the effect z. ``deviations`` are those of the environments;
    ``n_samples`` rows each.
    """
    setting = dict(locals())
    at_least("n_samples", n_samples, 2)
    rng = np.random.default_rng(seed)
    to_y, to_z = rng.standard_normal((2, n_each, n_each)) / n_each

    def draw(deviation: float, shuffle: bool) -> Sample:
        x = deviation * rng.standard_normal((n_samples, n_each))
        y = x @ to_y + deviation * rng.standard_normal((n_samples, n_each))
        z = y @ to_z + rng.standard_normal((n_samples, n_each))
        return Sample(np.column_stack([x, _shuffled(z, rng, shuffle)]), y.sum(axis=1))

    return mixed_task(
        "cause_and_effect",
        {f"deviation {s:g}": draw(s, shuffle=False) for s in deviations},
        {f"deviation {s:g}": draw(s, shuffle=True) for s in deviations},
        [*[INVARIANT] * n_each, *[SPURIOUS] * n_each],
        setting,
        rng,
    )


def cows_and_camels_task(seed: int = 0, n_samples: int = 1000, n_each: int = 5) -> ShiftTask:
    """Second unit test: a faint animal decides the label, a loud background goes along with it.

    The share of animals on their usual background and of the two backgrounds differs between
    the three environments; ``n_samples`` rows each.
    """
    setting = dict(locals())
    at_least("n_samples", n_samples, 2)
    rng = np.random.default_rng(seed)
    animal = np.array([1.0, 1.0, -1.0, -1.0])
    background = np.array([1.0, -1.0, -1.0, 1.0])

    def draw(usual: float, first: float, shuffle: bool) -> Sample:
        shares = np.array(
            [usual * first, (1 - usual) * first, usual * (1 - first), (1 - usual) * (1 - first)]
        )
        kind = rng.choice(4, n_samples, p=shares / shares.sum())
        noise = np.sqrt(VARIANCE) * rng.standard_normal((2, n_samples, n_each))
        front = ANIMAL * (noise[0] + animal[kind, None])
        behind = noise[1] + background[kind, None]
        label = (front.sum(axis=1) > 0).astype(np.int64)
        return Sample(np.column_stack([front, _shuffled(behind, rng, shuffle)]), label)

    return mixed_task(
        "cows_and_camels",
        {f"usual {p:g}": draw(p, s, shuffle=False) for p, s in PLACES},
        {f"usual {p:g}": draw(p, s, shuffle=True) for p, s in PLACES},
        [*[INVARIANT] * n_each, *[SPURIOUS] * n_each],
        setting,
        rng,
        labels=True,
    )


def small_margin_task(
    seed: int = 0,
    n_samples: int = 1000,
    n_each: int = 5,
    n_environments: int = 3,
) -> ShiftTask:
    """Third unit test: the invariant columns have a small margin, the spurious ones a large one.

    The two classes stand at +-0.1 in the invariant columns everywhere, and at +-mu_e in the
    spurious ones, with a mu_e of its own for each environment; ``n_samples`` rows each. The
    deviation of the noise is 0.1.
    """
    setting = dict(locals())
    at_least("n_environments", n_environments, 1)
    at_least("n_samples", n_samples, 2)
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_environments, n_each))

    def draw(centre: FloatArray, shuffle: bool) -> Sample:
        side = np.repeat([1.0, -1.0], [n_samples // 2, n_samples - n_samples // 2])
        noise = 0.1 * rng.standard_normal((2, n_samples, n_each))
        causes = noise[0] + MARGIN * side[:, None]
        others = noise[1] + side[:, None] * centre
        X = np.column_stack([causes, _shuffled(others, rng, shuffle)])
        return Sample(X, (side < 0).astype(np.int64))

    return mixed_task(
        "small_margin",
        {f"e{i}": draw(mu, shuffle=False) for i, mu in enumerate(centres, start=1)},
        {f"e{i}": draw(mu, shuffle=True) for i, mu in enumerate(centres, start=1)},
        [*[INVARIANT] * n_each, *[SPURIOUS] * n_each],
        setting,
        rng,
        labels=True,
    )
