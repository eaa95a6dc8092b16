"""After deployment: hold new rows against what a fitted model learned from.

`check` compares, `Check` is what it found; the terminal and the page are made from it.
"""

from hetrisk.monitoring.checking import check
from hetrisk.monitoring.findings import Check

__all__ = ["Check", "check"]
