"""Later rows held against what a model was told to expect."""

from hetrisk.monitoring.checking import check
from hetrisk.monitoring.findings import Check, Status

__all__ = ["Check", "Status", "check"]
