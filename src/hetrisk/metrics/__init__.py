"""How a model fares in each environment, how far apart those are, how far the model carries."""

from hetrisk.metrics.curve import reach_curve
from hetrisk.metrics.distances import environment_distance, task2vec
from hetrisk.metrics.errors import LOSSES, environment_errors, max_error, mean_error, std_error

__all__ = [
    "LOSSES",
    "environment_distance",
    "environment_errors",
    "max_error",
    "mean_error",
    "reach_curve",
    "std_error",
    "task2vec",
]
