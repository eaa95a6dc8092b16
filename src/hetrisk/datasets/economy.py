"""A real table that comes with the package: the economy of the United States, 1967 to 2015.

Monthly figures of the Bureau of Economic Analysis, the Census Bureau and the Bureau of Labor
Statistics, works of the United States government and so in the public domain; collected by the
Federal Reserve Bank of St. Louis (FRED: PCE, POP, PSAVERT, UEMPMED, UNEMPLOY) and published with
the R package ggplot2 as the table ``economics``.
"""

from __future__ import annotations

from importlib import resources

import pandas as pd

FILE = "economy.csv.gz"


def load_economy() -> pd.DataFrame:
    """Load the economy of the United States by month: a small real table with a date column.

    Returns
    -------
    DataFrame
        ``date`` (the first of the month), ``pce`` (what people spend, billions of dollars), ``pop``
        (thousands of people), ``psavert`` (percent of income saved), ``uempmed`` (median weeks
        without work) and ``unemploy`` (thousands without work); 574 rows in the order of dates.

    Examples
    --------
    >>> economy = load_economy()
    >>> economy.shape
    (574, 6)
    """
    with resources.as_file(resources.files("hetrisk.datasets") / FILE) as path:
        return pd.read_csv(path, parse_dates=["date"])
