"""A real table that comes with the package: rodents of the Chihuahuan desert, 1977 to 2002.

Since 1977 the Portal Project has trapped rodents near Portal, Arizona, on plots from some of which
kangaroo rats or all rodents are kept out. Every fourth animal that was weighed is here. The data
are in the public domain (CC0); they were published as the R package ratdat, table ``complete``:
Ernest, Brown, Valone, White (2018), *Portal Project Teaching Database*, and the project's data
paper, Ernest et al. (2020), bioRxiv 332783.
"""

from __future__ import annotations

from importlib import resources

import pandas as pd

FILE = "rodents.csv.gz"


def load_rodents() -> pd.DataFrame:
    """Load rodents that were trapped and weighed: a small real table with a date column.

    Returns
    -------
    DataFrame
        ``date`` of the catch, ``sex``, ``hindfoot_length`` in millimetres (values missing),
        ``plot_type`` (who is kept out of the plot) and ``weight`` in grams; 8,095 rows in the order
        of their dates.

    Examples
    --------
    >>> rodents = load_rodents()
    >>> rodents.shape
    (8095, 5)
    """
    with resources.as_file(resources.files("hetrisk.datasets") / FILE) as path:
        return pd.read_csv(path, parse_dates=["date"])
