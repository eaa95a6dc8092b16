"""The simulated tasks: training mixtures and test environments as in the paper's tables."""

from __future__ import annotations

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray
from hetrisk.datasets import anti_causal as ac
from hetrisk.datasets import cats_and_dogs as cd
from hetrisk.datasets.checks import at_least, fraction
from hetrisk.datasets.mixing import numbered
from hetrisk.datasets.selection_bias import make_selection_bias
from hetrisk.datasets.task import CLASSIFICATION, REGRESSION, Sample, ShiftTask, pool

TEST_R = (-3.0, -2.7, -2.3, -2.0, -1.7, 1.7, 2.0, 2.3, 2.7, 3.0)
MINORITY_R = -1.1
SETTLED = 4.0  # standard errors from zero at which a partial correlation settles a feature


def selection_bias_task(
    seed: int = 0,
    r: float = 1.9,
    n_features: int = 10,
    n_biased: int = 1,
    n_samples: int = 2000,
    kappa: float = 0.95,
    beta: float = 1.0,
    n_test: int = 2000,
) -> ShiftTask:
    """Train on a share ``kappa`` of rows at ``r`` and the rest at r = -1.1; test at ten r.

    Columns ``phi1, phi2, ...`` are invariant, ``vb1, ...`` biased, ``psi1, ...`` pure noise (not
    identifiable: see `ShiftTask`).
    """
    fraction("kappa", kappa)
    at_least("n_samples", n_samples, 2)
    setting = dict(locals())
    rng = np.random.default_rng(seed)

    def draw(n: int, r: float) -> Sample:
        return Sample(*make_selection_bias(n, r, n_features, n_biased, beta, rng))

    n_major = round(kappa * n_samples)
    sizes = {r: n_major, MINORITY_R: n_samples - n_major}
    train = pool({f"r={at:g}": draw(n, at) for at, n in sizes.items() if n}, rng)
    n_phi = n_features // 2
    n_noise = n_features - n_phi - n_biased
    kinds = np.repeat(["phi", "vb", "psi"], [n_phi, n_biased, n_noise])
    return ShiftTask(
        name="selection_bias",
        task_type=REGRESSION,
        train=train,
        test={f"r={at:g}": draw(n_test, at) for at in TEST_R},
        feature_names=numbered(kinds.tolist()),
        feature_groups=np.arange(n_features),
        environment_names=tuple(f"r={at:g}" for at, n in sizes.items() if n),
        invariant=kinds == "phi",
        identifiable=kinds != "psi",
        setting=setting,
    )


def anti_causal_task(
    seed: int = 0,
    n_phi: int = 9,
    n_psi: int = 1,
    n_train: tuple[int, int, int] = (1000, 100, 100),
    beta: float = ac.BETA,
    n_test: int = 2000,
) -> ShiftTask:
    """Train on rows of e1, e2 and e3; test on fresh rows of e1 to e10.

    The coefficients are drawn anew for each seed. Columns ``phi1, ...`` are invariant and
    ``psi1, ...`` caused by y.
    """
    setting = dict(locals())
    if len(n_train) != 3:
        raise ValueError(f"n_train must hold three row counts (e1, e2, e3); got {n_train!r}.")
    rng = np.random.default_rng(seed)
    theta = ac.anti_causal_coefficients(n_phi, n_psi, rng)

    def draw(n: int, environment: int) -> Sample:
        return Sample(*ac.make_anti_causal(n, environment, n_phi, n_psi, beta, *theta, rng))

    names = tuple(f"e{i}" for i in range(1, ac.N_ENVIRONMENTS + 1))
    train = pool({names[i]: draw(n, i + 1) for i, n in enumerate(n_train)}, rng)
    kinds = np.repeat(["phi", "psi"], [n_phi, n_psi])
    return ShiftTask(
        name="anti_causal",
        task_type=REGRESSION,
        train=train,
        test={name: draw(n_test, i + 1) for i, name in enumerate(names)},
        feature_names=numbered(kinds.tolist()),
        feature_groups=np.arange(n_phi + n_psi),
        environment_names=names[:3],
        invariant=kinds == "phi",
        identifiable=_settled(*theta, beta, np.asarray(n_train)),
        setting=setting,
    )


def cats_and_dogs_task(
    seed: int = 0, n_samples: int = 1000, noise: float = 0.0, n_test: int = 1000
) -> ShiftTask:
    """Train on e5 and e6, half of the rows each; test on e1 to e6."""
    setting = dict(locals())
    at_least("n_samples", n_samples, 2)
    rng = np.random.default_rng(seed)
    sizes = {"e5": n_samples - n_samples // 2, "e6": n_samples // 2}

    def draw(n: int, environment: str) -> Sample:
        return Sample(*cd.make_cats_and_dogs(n, environment, noise, rng))

    return ShiftTask(
        name="cats_and_dogs",
        task_type=CLASSIFICATION,
        train=pool({name: draw(n, name) for name, n in sizes.items()}, rng),
        test={name: draw(n_test, name) for name in cd.ENVIRONMENTS},
        feature_names=cd.FEATURES,
        feature_groups=np.arange(3),
        environment_names=tuple(sizes),
        invariant=np.array([True, False, False]),
        identifiable=np.ones(3, dtype=bool),
        setting=setting,
    )


def _settled(theta_phi: FloatArray, theta_psi: FloatArray, beta: float, n: np.ndarray) -> BoolArray:
    """Which coefficients the training rows can tell from zero, in population terms.

    Given the other phi, y varies with variance tau2 = 0.3^2 + beta^2 (the product of three
    standard normals has variance one), so phi_j has a z of theta_j sqrt(n / tau2). Given phi,
    psi_j has a squared correlation of theta_j^2 tau2 / (theta_j^2 tau2 + sigma^2) with y, where
    sigma^2 is averaged over the mixture.
    """
    tau2 = ac.NOISE**2 + beta**2
    signal = theta_psi**2 * tau2
    z_phi = np.abs(theta_phi) * np.sqrt(n.sum() / tau2)
    z_psi = np.sqrt(n.sum() * signal / (signal + np.average(ac.SIGMA[:3], weights=n)))
    return np.concatenate([z_phi, z_psi]) >= SETTLED
