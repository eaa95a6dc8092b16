"""How often the environment mixture finds what is there, over many seeds.

    python benchmarks/study_mixture.py [--seeds 100]

Prints one line a claim: how many seeds met it, how many are asked for, and the time of a fit.
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from hetrisk import EnvironmentMixture
from hetrisk.datasets import make_selection_bias


def three_regressions(seed):
    """60/30/10 % components, d = 6, n = 3000, coefficients N(0, 1.5^2), noise 0.5."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(0, 1.5, (3, 6))
    X = rng.normal(size=(3000, 6))
    environment = rng.choice(3, size=3000, p=[0.6, 0.3, 0.1])
    y = (X * coef[environment]).sum(axis=1) + 0.5 * rng.normal(size=3000)
    return X, y, coef


def one_regression(seed):
    """Plain linear data with Gaussian noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 6))
    return X, X @ rng.normal(0, 1.5, 6) + 0.5 * rng.normal(size=3000)


def biased_selection(seed):
    """V_b and y of 1900 rows with r = 1.9 and 100 rows with r = -1.1."""
    rng = np.random.default_rng(seed)
    X1, y1 = make_selection_bias(1900, 1.9, random_state=rng)
    X2, y2 = make_selection_bias(100, -1.1, random_state=rng)
    v = np.concatenate([X1[:, 5:6], X2[:, 5:6]])
    return v, np.concatenate([y1, y2])


def two_logistic(seed):
    """70/30 % logistic components, n = 5000, d = 5, coefficients of size 1.5 to 3, random signs."""
    rng = np.random.default_rng(seed)
    coef = rng.uniform(1.5, 3.0, (2, 5)) * rng.choice([-1, 1], (2, 5))
    if (np.sign(coef[0]) == np.sign(coef[1])).all():
        coef[1] *= -1
    X = rng.normal(size=(5000, 5))
    environment = rng.choice(2, size=5000, p=[0.7, 0.3])
    logit = (X * coef[environment]).sum(axis=1)
    return X, (rng.random(5000) < 1 / (1 + np.exp(-logit))).astype(int), coef


def recovers_coefficients(seed):
    """Every coefficient within 0.25, the components matched as well as they can be."""
    X, y, coef = three_regressions(seed)
    found = EnvironmentMixture(n_environments=3, random_state=seed).fit(X, y).coef_
    worst = np.abs(found[:, None] - coef[None]).max(axis=-1)
    return worst[linear_sum_assignment(worst)].max() <= 0.25


def counts_three(seed):
    X, y, _ = three_regressions(seed)
    return EnvironmentMixture(random_state=seed).fit(X, y).n_environments_ == 3


def counts_one(seed):
    X, y = one_regression(seed)
    return EnvironmentMixture(random_state=seed).fit(X, y).n_environments_ == 1


def finds_the_minority(seed):
    """Two components on V_b alone have slopes of opposite sign."""
    v, y = biased_selection(seed)
    slopes = EnvironmentMixture(n_environments=2, random_state=seed).fit(v, y).coef_[:, 0]
    return slopes.min() < 0 < slopes.max()


def recovers_signs(seed):
    """The sign pattern of both logistic components."""
    X, y, coef = two_logistic(seed)
    found = EnvironmentMixture(n_environments=2, random_state=seed).fit(X, y).coef_
    wrong = (np.sign(found[:, None]) != np.sign(coef[None])).sum(axis=-1)
    return wrong[linear_sum_assignment(wrong)].sum() == 0


CLAIMS = {
    "three regressions, every coefficient within 0.25": (recovers_coefficients, 95),
    "three regressions, auto counts 3": (counts_three, 90),
    "one regression, auto counts 1": (counts_one, 95),
    "selection bias on V_b, slopes of opposite sign": (finds_the_minority, 95),
    "two logistic regressions, sign pattern": (recovers_signs, 90),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    seeds = parser.parse_args().seeds
    print(f"{'claim':<52}{'met':>10}{'asked':>8}{'ms a fit':>10}  failing seeds")
    for claim, (check, asked) in CLAIMS.items():
        start = time.perf_counter()
        failing = [seed for seed in range(seeds) if not check(seed)]
        spent = 1000 * (time.perf_counter() - start) / seeds
        met = f"{seeds - len(failing)}/{seeds}"
        print(f"{claim:<52}{met:>10}{asked:>7}%{spent:>10.0f}  {failing or ''}", flush=True)


if __name__ == "__main__":
    main()
