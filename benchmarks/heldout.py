"""Designs that were looked at once, when the search was done: `python benchmarks/heldout.py`.

Each draws X, y and the columns that are to blame. One line a design: what was left out, by seed.
"""

from __future__ import annotations

import argparse

import numpy as np

from study_hidden import fitted, said

Rng = np.random.Generator
SLOPES = np.array([1.0, -1.0, 0.5, 0.8, 0.3])


def confounder(rng: Rng, n: int):
    """A hidden cause, seen through the last column, works the other way round in a fifth."""
    X, u = rng.standard_normal((n, 5)), rng.standard_normal(n)
    sign = np.where(rng.random(n) < 0.8, 1.0, -1.0)
    y = X @ [1, -1, 0.5, 1, 0] + 1.2 * sign * u + 0.4 * rng.standard_normal(n)
    return np.column_stack([X, u + 0.5 * rng.standard_normal(n)]), y, [5]


def other_unit(rng: Rng, n: int):
    """A column has the opposite sign in 15 % of the rows."""
    X = rng.standard_normal((n, 6))
    y = X @ [1, -1, 0.5, 1, 0.7, 0] + 0.4 * rng.standard_normal(n)
    X[rng.random(n) > 0.85, 4] *= -1
    return X, y, [4]


def three_slopes(rng: Rng, n: int):
    X = rng.standard_normal((n, 6))
    slope = rng.choice([1.5, 0.0, -1.5], n, p=[0.6, 0.2, 0.2])
    return X, X[:, :5] @ SLOPES + slope * X[:, 5] + 0.4 * rng.standard_normal(n), [5]


def site_and_product(rng: Rng, n: int):
    """A slope that flips in a quarter of the rows, and an interaction of two other columns."""
    X = rng.standard_normal((n, 7))
    site = np.where(rng.random(n) < 0.25, -1.0, 1.0)
    y = X[:, :5] @ SLOPES + 0.8 * X[:, 0] * X[:, 1] + 1.3 * site * X[:, 5]
    return X, y + 0.5 * rng.standard_normal(n), [5]


def effect_slope(rng: Rng, n: int):
    """An effect that follows the target with another slope in 15 % of the rows."""
    X = rng.standard_normal((n, 5))
    y = X @ SLOPES + 0.5 * rng.standard_normal(n)
    slope = np.where(rng.random(n) < 0.85, 1.0, -0.5)
    return np.column_stack([X, slope * y + 0.3 * rng.standard_normal(n)]), y, [5]


def few_rows(rng: Rng, n: int):
    return three_slopes(rng, 400)


def thirty_columns(rng: Rng, n: int):
    X = rng.standard_normal((n, 30))
    sign = np.where(rng.random(n) < 0.2, -1.0, 1.0)
    return X, X[:, :5] @ SLOPES + 1.3 * sign * X[:, 29] + 0.5 * rng.standard_normal(n), [29]


def measurement_error(rng: Rng, n: int):
    """One column is measured badly at a site that shifts another one."""
    X, site = rng.standard_normal((n, 6)), rng.random(n) < 0.3
    X[:, 0] += 1.5 * site
    y = X @ [1, -1, 0.5, 0.8, 1.2, 0] + 0.4 * rng.standard_normal(n)
    X[:, 4] += np.where(site, 1.5, 0.1) * rng.standard_normal(n)
    return X, y, [4]


def marked_site(rng: Rng, n: int):
    """A slope that flips at a site which three other columns show together, none of them surely."""
    site = np.where(rng.random(n) < 0.25, -1.0, 1.0)
    X = rng.standard_normal((n, 7))
    X[:, 4:] += 0.9 * site[:, None]
    return X, X[:, :3] @ SLOPES[:3] + 1.3 * site * X[:, 3] + 0.5 * rng.standard_normal(n), [3]


def turning_plane(rng: Rng, n: int):
    """A slope that turns at a plane of two other columns: an interaction, nobody is to blame."""
    X = rng.standard_normal((n, 7))
    slope = 0.5 + 1.5 * np.sign(X[:, 4] + 0.5 * X[:, 5])
    return X, X[:, :3] @ SLOPES[:3] + slope * X[:, 3] + 0.5 * rng.standard_normal(n), []


def two_flips(rng: Rng, n: int):
    """Two slopes that flip in the same fifth of the rows."""
    X = rng.standard_normal((n, 7))
    sign = np.where(rng.random(n) < 0.2, -1.0, 1.0)
    y = X[:, :5] @ SLOPES + 1.2 * sign * X[:, 5:].sum(axis=1)
    return X, y + 0.5 * rng.standard_normal(n), [5, 6]


def two_strengths(rng: Rng, n: int):
    """Two columns that follow the target closely and loosely, the other way round in a tenth."""
    X = rng.standard_normal((n, 5))
    y = X @ SLOPES + 0.4 * rng.standard_normal(n)
    sign = np.where(rng.random(n) < 0.9, 1.0, -1.0)[:, None]
    follow = sign * y[:, None] + rng.standard_normal((n, 2)) * [0.4, 1.2]
    return np.column_stack([X, follow]), y, [5, 6]


def site_gain(rng: Rng, n: int):
    """Two readings of the target, off by a factor that each of forty sites has for both."""
    X = rng.standard_normal((n, 5))
    y = X @ SLOPES + 0.5 * rng.standard_normal(n)
    gain = rng.lognormal(0.0, 0.5, 40)[rng.integers(0, 40, n)]
    readings = (gain * y)[:, None] * [1.0, -0.6] + 0.5 * rng.standard_normal((n, 2))
    return np.column_stack([X, readings]), y, [5, 6]


DESIGNS = (
    confounder,
    other_unit,
    three_slopes,
    site_and_product,
    effect_slope,
    few_rows,
    thirty_columns,
    measurement_error,
    marked_site,
    turning_plane,
    two_flips,
    two_strengths,
    site_gain,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=9000)
    given = parser.parse_args()
    for design in DESIGNS:
        told, exact = [], 0
        for seed in range(given.first, given.first + given.seeds):
            X, y, blame = design(np.random.default_rng(seed), 2000)
            found, seconds = fitted(X, y)
            exact += np.flatnonzero(~found.support_).tolist() == blame
            told.append(f"{said(found)} ({seconds:.1f} s)")
        print(f"{design.__name__} | {exact} of {given.seeds} | {' ; '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
