"""Income over 50,000 dollars: trained on two groups of sex and race, tested on all ten."""

from __future__ import annotations

import os

import numpy as np

from hetrisk.datasets.checks import at_least
from hetrisk.datasets.encoding import Encoding
from hetrisk.datasets.source import Table, load_table
from hetrisk.datasets.task import CLASSIFICATION, Labelled, Sample, ShiftTask

CATEGORIES = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "native-country",
)
NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT = Table(
    title="Adult census income table",
    files=("adult.csv",),
    numbers=NUMBERS,
    words=(*CATEGORIES, "sex", "race", "income"),
    n_rows=48_842,
    checksum="68cc4b56548668b37d454feb521adfefdaa1ad2e09a24aa8759eff79a020078b",
    licence="CC BY 4.0",
    obtain="It is data set 1590 (adult) at openml.org.",
    openml=1590,
    renamed={"class": "income"},
)
SEXES = ("Male", "Female")
RACES = ("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")
GROUPS = tuple(f"{race}-{sex}" for race in RACES for sex in SEXES)


def income_task(
    seed: int = 0,
    pair: tuple[str, str] = ("White-Male", "White-Female"),
    n_train: tuple[int, int] = (693, 200),
    n_validation: int = 100,
    path: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
) -> ShiftTask:
    """Train on ``n_train`` rows of two groups, validate on 100 of each, test on all ten groups.

    Sex, race and the survey weight are not features; capital gain and loss enter as
    log(1 + x); categories are one-hot. ``seed`` draws the training and validation rows; every
    other row of a group is tested on.
    """
    _check_pair(pair, n_train)
    at_least("n_validation", n_validation, 0)
    frame = load_table(ADULT, path, download=download, verify=verify)
    group = (frame["race"] + "-" + frame["sex"]).to_numpy()
    y = (frame["income"] == ">50K").to_numpy().astype(np.int64)
    features = frame[[*NUMBERS, *CATEGORIES]].assign(
        **{name: np.log1p(frame[name]) for name in ("capital-gain", "capital-loss")}
    )
    train, validation = _draw(group, pair, n_train, n_validation, np.random.default_rng(seed))
    encoding = Encoding.fit(features.iloc[train], category=CATEGORIES)
    rest = np.setdiff1d(np.arange(len(frame)), [*train, *validation])
    where = {name: rest[group[rest] == name] for name in GROUPS}

    def labelled(rows: np.ndarray) -> Labelled:
        environments = (group[rows] == pair[1]).astype(np.int64)
        return Labelled(encoding(features.iloc[rows]), y[rows], environments)

    return ShiftTask(
        name="income",
        task_type=CLASSIFICATION,
        train=labelled(train),
        test={k: Sample(encoding(features.iloc[v]), y[v]) for k, v in where.items() if len(v)},
        feature_names=encoding.feature_names,
        feature_groups=encoding.feature_groups,
        environment_names=tuple(pair),
        validation=labelled(validation) if n_validation else None,
        setting={"seed": seed, "pair": pair, "n_train": n_train, "n_validation": n_validation},
    )


def _check_pair(pair: tuple[str, str], n_train: tuple[int, int]) -> None:
    if len(set(pair)) != 2 or not set(pair) <= set(GROUPS):
        raise ValueError(f"pair must be two different groups of {', '.join(GROUPS)}; got {pair!r}.")
    if len(n_train) != 2 or min(n_train) < 1:
        raise ValueError(f"n_train must be two positive row counts; got {n_train!r}.")


def _draw(
    group: np.ndarray,
    pair: tuple[str, str],
    n_train: tuple[int, int],
    n_validation: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw training and validation rows of the pair, pooled in random order."""
    train, validation = [], []
    for name, n in zip(pair, n_train, strict=True):
        rows = rng.permutation(np.flatnonzero(group == name))
        if len(rows) < n + n_validation:
            raise ValueError(
                f"group {name!r} has {len(rows)} rows, but {n} for training and {n_validation} "
                "for validation were asked for."
            )
        train.append(rows[:n])
        validation.append(rows[n : n + n_validation])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(validation))
