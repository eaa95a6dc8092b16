"""Tables and rows to fit models to, and a model written and opened again."""

import numpy as np
import pandas as pd

from hetrisk import (
    modelfile,
)
from hetrisk.tables import Table

N = 113  # no other size in a model is a prime as large


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    y = 2 * a - b + rng.normal(size=n) * 0.3
    frame = pd.DataFrame(
        {
            "a": a,
            "b": np.where(rng.random(n) < 0.1, np.nan, b),
            "kind": rng.choice(["p", "q", "r"], n),
            "flag": rng.choice(["yes", "no"], n),
            "when": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "y": y,
            "label": np.where(y > 0.7, "high", np.where(y < -0.7, "low", "middle")),
        }
    )
    return Table(frame, "made.csv")


def rows(n=N):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    y = np.abs(X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=n))
    labels = np.where(y > 1, "b", np.where(y < 0.3, "a", "c"))
    return X, y, labels, rng.integers(0, 2, n)


def again(model):
    return modelfile.loads(modelfile.dumps(model))
