"""ERM and boosted trees on every homogeneous family: `python benchmarks/homogeneous.py`."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hetrisk.datasets.homogeneous import classification_families, families


def _report() -> None:
    print("regression: share of variance explained on the test rows, seed 0")
    for name, family in families().items():
        X, y, X_test, y_test = family(0)
        scores = [
            model.fit(X, y).score(X_test, y_test)
            for model in (LinearRegression(), HistGradientBoostingRegressor(random_state=0))
        ]
        print(f"  {name:22s} {X.shape!s:12s} linear {scores[0]:6.3f}   trees {scores[1]:6.3f}")
    print("classification: error rate on the test rows, seed 0")
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    for name, family in classification_families().items():
        X, y, X_test, y_test = family(0)
        trees = HistGradientBoostingClassifier(random_state=0)
        errors = [1 - model.fit(X, y).score(X_test, y_test) for model in (logistic, trees)]
        share = np.bincount(y) / len(y)
        print(
            f"  {name:22s} {X.shape!s:12s} logistic {errors[0]:.3f}   trees {errors[1]:.3f}"
            f"   majority {1 - share.max():.3f}"
        )


if __name__ == "__main__":
    _report()
