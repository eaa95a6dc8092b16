"""Who buys car insurance: sex made to go with the label in training, against it in testing.

Rows are drawn uniformly within the cells of (sex, label), so that label and sex are balanced and
their correlation is exactly r. Drawn this way the pooled training rows are *one* distribution,
the same as a single environment with correlation r: no method can find hidden environments in
them without labels or a further assumption, and an honest one says "homogeneous".
"""

from __future__ import annotations

import os

import numpy as np

from hetrisk.datasets.checks import at_least
from hetrisk.datasets.encoding import Encoding
from hetrisk.datasets.source import Table, load_table
from hetrisk.datasets.task import CLASSIFICATION, Labelled, Sample, ShiftTask

CATEGORIES = ("Gender", "Region_Code", "Vehicle_Age", "Policy_Sales_Channel")
NUMBERS = ("Age", "Driving_License", "Previously_Insured", "Annual_Premium", "Vintage")
CUSTOMERS = Table(
    title="health insurance cross-sell table",
    files=("health_insurance_cross_sell.csv", "train.csv"),
    numbers=(*NUMBERS, "Region_Code", "Policy_Sales_Channel", "Response"),
    words=("Gender", "Vehicle_Age", "Vehicle_Damage"),
    n_rows=381_109,
    checksum="1b6cce8b6eea407b2009729a1aa895305638e66e2c5b2e209eb6ebf8d9597ff7",
    licence="not stated",
    obtain=(
        "Its licence is not clear, so it is never downloaded for you: get train.csv of the "
        '"Health Insurance Cross Sell Prediction" data from Kaggle yourself.'
    ),
)
LABELLED_R = (0.95, 0.9, -0.8)  # of the three environments that methods with labels are given


def car_insurance_task(
    seed: int = 0,
    r: float = 0.9,
    n_train: int = 2000,
    n_test: int = 10_000,
    path: str | os.PathLike[str] | None = None,
    verify: bool = True,
) -> ShiftTask:
    """Train where sex correlates at ``r`` with buying, test where it correlates at ``-r``.

    Parameters
    ----------
    seed : draws the rows; training and test rows never overlap.
    r : correlation of sex (male) and label, 0 to 0.925. The training rows are split into three
        environments with correlations 0.95, 0.9 and -0.8, in shares (the first two equal) that
        make the pool's correlation r.
    n_train, n_test : number of rows, to within rounding.
    path, verify : the user's own file; see `load_table`.
    """
    highest = (LABELLED_R[0] + LABELLED_R[1]) / 2
    if not 0.0 <= r <= highest:
        raise ValueError(f"r must be between 0 and {highest}; got {r!r}.")
    at_least("n_train", n_train, 8)
    at_least("n_test", n_test, 8)
    frame = load_table(CUSTOMERS, path, download=False, verify=verify)
    features, label = frame.drop(columns="Response"), frame["Response"].to_numpy().astype(np.int64)
    male = (frame["Gender"] == "Male").to_numpy().astype(int)
    rng = np.random.default_rng(seed)
    deck = _Deck(label, male, rng)
    parts = {at: deck.deal(round(n_train * share), at) for at, share in _plan(r).items()}
    test_rows = deck.deal(n_test, -r)
    train_rows = np.concatenate(list(parts.values()))
    environments = np.repeat(np.arange(len(parts)), [len(rows) for rows in parts.values()])
    order = rng.permutation(len(train_rows))
    train_rows, environments = train_rows[order], environments[order]
    encoding = Encoding.fit(features.iloc[train_rows], category=CATEGORIES)
    return ShiftTask(
        name="car_insurance",
        task_type=CLASSIFICATION,
        train=Labelled(encoding(features.iloc[train_rows]), label[train_rows], environments),
        test={f"r={-r:g}": Sample(encoding(features.iloc[test_rows]), label[test_rows])},
        feature_names=encoding.feature_names,
        feature_groups=encoding.feature_groups,
        environment_names=tuple(f"r={at:g}" for at in parts),
        setting={"seed": seed, "r": r, "n_train": n_train, "n_test": n_test},
    )


def _plan(r: float) -> dict[float, float]:
    """Correlation of each training environment -> its share of the rows."""
    first, second, third = LABELLED_R
    # The first two equal, the third what brings the mean correlation down to r.
    rest = ((first + second) / 2 - r) / ((first + second) / 2 - third)
    return {first: (1 - rest) / 2, second: (1 - rest) / 2, third: rest}


class _Deck:
    """Rows shuffled within the cells of (label, sex), dealt out once each."""

    def __init__(self, label: np.ndarray, male: np.ndarray, rng: np.random.Generator) -> None:
        self.left = {
            (y, m): rng.permutation(np.flatnonzero((label == y) & (male == m)))
            for y in (0, 1)
            for m in (0, 1)
        }

    def deal(self, n: int, r: float) -> np.ndarray:
        """About ``n`` rows, label and sex balanced, their correlation r."""
        shares = {cell: (1 + r if cell[0] == cell[1] else 1 - r) / 4 for cell in self.left}
        return np.concatenate(
            [self._take(cell, round(n * share)) for cell, share in shares.items()]
        )

    def _take(self, cell: tuple[int, int], n: int) -> np.ndarray:
        rows = self.left[cell]
        if len(rows) < n:
            raise ValueError(
                f"{n} rows with (label, male) = {cell} are needed and {len(rows)} are left: "
                "lower n_train or n_test."
            )
        self.left[cell] = rows[n:]
        return rows[:n]
