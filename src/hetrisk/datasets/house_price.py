"""House prices in King County: trained on the oldest houses, tested on later periods."""

from __future__ import annotations

import os

import numpy as np

from hetrisk.datasets.source import Table, load_table
from hetrisk.datasets.task import REGRESSION, Labelled, Sample, ShiftTask

PREDICTORS = (
    "bedrooms",
    "bathrooms",
    "sqft_living",
    "sqft_lot",
    "floors",
    "waterfront",
    "view",
    "condition",
    "grade",
    "sqft_above",
    "sqft_basement",
    "yr_renovated",
    "zipcode",
    "lat",
    "long",
    "sqft_living15",
    "sqft_lot15",
)
HOUSES = Table(
    title="King County house sales table",
    files=("kc_house_data.csv",),
    numbers=("price", "yr_built", *PREDICTORS),
    words=(),
    n_rows=21_613,
    checksum="b5e785fe0716fd42f18afeb1a1a8f6ccd3d93fb751e8e904dfb75df400932b36",
    licence="CC0",
    obtain="It is data set 42731 (house_sales) at openml.org.",
    openml=42731,
)
PERIODS = ((1900, 1920), (1920, 1940), (1940, 1960), (1960, 1980), (1980, 2000), (2000, 2016))


def house_price_task(
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
) -> ShiftTask:
    """Train on houses built in [1900, 1920), test on five later periods.

    The 17 predictors and the logarithm of the price are standardised by the training rows: an
    error of 1 is the spread of prices in the first period. The environments of the training rows
    are [1900, 1910) and [1910, 1920). The rows are what they are: ``seed`` draws nothing.
    """
    frame = load_table(HOUSES, path, download=download, verify=verify)
    X = frame[list(PREDICTORS)].to_numpy()
    y = np.log(frame["price"].to_numpy())
    built = frame["yr_built"].to_numpy()
    first = built < PERIODS[0][1]
    X = (X - X[first].mean(axis=0)) / _spread(X[first])
    y = (y - y[first].mean()) / y[first].std()

    def between(start: int, stop: int) -> Sample:
        rows = (built >= start) & (built < stop)
        return Sample(X[rows], y[rows])

    return ShiftTask(
        name="house_price",
        task_type=REGRESSION,
        train=Labelled(X[first], y[first], (built[first] >= 1910).astype(np.int64)),
        test={f"{start}-{stop - 1}": between(start, stop) for start, stop in PERIODS[1:]},
        feature_names=PREDICTORS,
        feature_groups=np.arange(len(PREDICTORS)),
        environment_names=("1900-1909", "1910-1919"),
        setting={"seed": seed},
    )


def _spread(X: np.ndarray) -> np.ndarray:
    """Standard deviations, one for constant columns."""
    deviation = X.std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)
