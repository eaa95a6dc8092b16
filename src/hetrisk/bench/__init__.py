"""Speed and memory, measured in one run and told as ratios.

A case measures one claim and returns `Metric` values: ``cases`` lists them, ``suite`` runs
them, ``page`` writes the tables and figures of the documentation, ``baseline`` compares the
ratios with an earlier run. Yardsticks from other libraries are ``adapters``, one a file.
"""

from hetrisk.bench.metric import Metric, Run, Size
from hetrisk.bench.suite import CASES, run_suite

__all__ = ["CASES", "Metric", "Run", "Size", "run_suite"]
