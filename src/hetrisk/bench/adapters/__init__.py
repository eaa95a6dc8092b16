"""Other people's code as yardsticks, one library a file.

An adapter says its version, or that it is missing and why, and times itself on given rows.
"""

from hetrisk.bench.adapters.base import Adapter, Missing
from hetrisk.bench.adapters.flexmix import Flexmix
from hetrisk.bench.adapters.gaussian_mixture import GaussianMixtureIteration
from hetrisk.bench.adapters.linear_regression import LinearRegressionFit

YARDSTICKS: tuple[Adapter, ...] = (LinearRegressionFit(), GaussianMixtureIteration())
"""What costs per row are compared with."""

__all__ = ["YARDSTICKS", "Adapter", "Flexmix", "Missing"]
