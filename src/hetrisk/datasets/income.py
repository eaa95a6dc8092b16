"""Income over 50,000 dollars: trained on two groups of sex and race, tested on all ten."""

from __future__ import annotations

import os

import numpy as np

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
N_TRAIN = {"White-Male": 693, "White-Female": 200}
N_VALIDATION = 100  # of each group, which the paper sets aside: nothing here needs them


def income_task(
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
) -> ShiftTask:
    """Train on 693 white men and 200 white women, test on all ten groups.

    Sex, race and the survey weight are not features; capital gain and loss enter as
    log(1 + x); categories are one-hot. ``seed`` draws the training rows, and 100 of each group
    that are set aside; every other row is tested on.
    """
    frame = load_table(ADULT, path, download=download, verify=verify)
    group = (frame["race"] + "-" + frame["sex"]).to_numpy()
    y = (frame["income"] == ">50K").to_numpy().astype(np.int64)
    features = frame[[*NUMBERS, *CATEGORIES]].assign(
        **{name: np.log1p(frame[name]) for name in ("capital-gain", "capital-loss")}
    )
    rng, drawn, aside = np.random.default_rng(seed), [], []
    for name, n in N_TRAIN.items():
        rows = rng.permutation(np.flatnonzero(group == name))
        drawn.append(rows[:n])
        aside.append(rows[n : n + N_VALIDATION])
    train = rng.permutation(np.concatenate(drawn))
    encoding = Encoding.fit(features.iloc[train], category=CATEGORIES)
    rest = np.setdiff1d(np.arange(len(frame)), [*train, *np.concatenate(aside)])
    where = {name: rest[group[rest] == name] for name in GROUPS}
    return ShiftTask(
        name="income",
        task_type=CLASSIFICATION,
        train=Labelled(
            encoding(features.iloc[train]),
            y[train],
            (group[train] == "White-Female").astype(np.int64),
        ),
        test={k: Sample(encoding(features.iloc[v]), y[v]) for k, v in where.items() if len(v)},
        feature_names=encoding.feature_names,
        feature_groups=encoding.feature_groups,
        environment_names=tuple(N_TRAIN),
        setting={"seed": seed},
    )
