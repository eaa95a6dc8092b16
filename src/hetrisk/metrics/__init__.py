"""How a model fares in each environment, how far apart those are, how far the model carries."""

from hetrisk.core.stable.homogeneity import (
    column_differs,
    each_slope_differs,
    noise_differs,
    slopes_differ,
    spreads_differ,
)
from hetrisk.metrics.distances import environment_distance, task2vec
from hetrisk.metrics.errors import LOSSES, environment_errors, max_error, mean_error, std_error

__all__ = [
    "LOSSES",
    "column_differs",
    "each_slope_differs",
    "environment_distance",
    "environment_errors",
    "max_error",
    "mean_error",
    "noise_differs",
    "slopes_differ",
    "spreads_differ",
    "std_error",
    "task2vec",
]
