"""What a fitted model is worth, on one HTML page.

Backtest -> `Decision` (`decision`) -> `Summary` -> autoescaped template (`page`).
"""

from hetrisk.report.decision import Decision, decide
from hetrisk.report.page import render, write_report
from hetrisk.report.summary import Summary

__all__ = ["Decision", "Summary", "decide", "render", "write_report"]
