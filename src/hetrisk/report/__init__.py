"""A fitted model explained on one HTML page, and in a notebook cell.

Fitted model and data -> `Summary` (`extraction`) -> autoescaped template (`page`).
"""

from hetrisk.report.card import repr_html
from hetrisk.report.extraction import summarize
from hetrisk.report.page import render, write_report

__all__ = ["render", "repr_html", "summarize", "write_report"]
