"""Predictors that keep working when the data shifts, from one table without environment labels.

The public names live in their own modules and are imported on first use, so that
``import hetrisk`` and ``hetrisk --help`` stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetrisk import baselines, datasets, metrics, plotting
    from hetrisk.estimators.backtest import BacktestClassifier, BacktestRegressor
    from hetrisk.estimators.hrm import HRMClassifier, HRMRegressor
    from hetrisk.estimators.invariant import InvariantClassifier, InvariantRegressor
    from hetrisk.estimators.mixture import EnvironmentMixture
    from hetrisk.estimators.stable import StableClassifier, StableRegressor, StableSelector

__version__ = "0.3.0"

__all__ = [
    "BacktestClassifier",
    "BacktestRegressor",
    "EnvironmentMixture",
    "HRMClassifier",
    "HRMRegressor",
    "InvariantClassifier",
    "InvariantRegressor",
    "StableClassifier",
    "StableRegressor",
    "StableSelector",
    "baselines",
    "datasets",
    "metrics",
    "plotting",
]

_HOME = {
    "BacktestClassifier": "hetrisk.estimators.backtest",
    "BacktestRegressor": "hetrisk.estimators.backtest",
    "EnvironmentMixture": "hetrisk.estimators.mixture",
    "HRMClassifier": "hetrisk.estimators.hrm",
    "HRMRegressor": "hetrisk.estimators.hrm",
    "InvariantClassifier": "hetrisk.estimators.invariant",
    "InvariantRegressor": "hetrisk.estimators.invariant",
    "StableClassifier": "hetrisk.estimators.stable",
    "StableRegressor": "hetrisk.estimators.stable",
    "StableSelector": "hetrisk.estimators.stable",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        return import_module(f"hetrisk.{name}")
    raise AttributeError(f"module 'hetrisk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
