"""Tables and models the command line is tried on."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hetrisk.cli.app import cli


def run(*arguments, **options):
    """Run the command line in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], **options)


def frame(seed=0, n=240):
    """Eight years of three places: a trend, two causes, and what every table has beside them."""
    rng = np.random.default_rng(seed)
    year = 2010 + np.arange(n) * 8 // n
    place = rng.choice(["north", "south", "west"], n)
    a, b = rng.normal(size=(2, n))
    y = 2 * a - b + 1.5 * (year - 2010) + rng.normal(size=n) * 0.3
    return pd.DataFrame(
        {
            "key": [f"k{i}" for i in range(n)],
            "a": a,
            "b": np.where(rng.random(n) < 0.05, np.nan, b),
            "kind": rng.choice(["p", "q", "r"], n),
            "flag": rng.choice(["yes", "no"], n),
            "year": year,
            "place": place,
            "y": y,
            "label": np.where(2 * a - b + rng.normal(size=n) > 0, "high", "low"),
        }
    )


FEW = ("--candidate", "trend,ridge")  # fits are quick without trees


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with a table and the two models fitted to it."""
    folder = tmp_path_factory.mktemp("workshop")
    frame().to_csv(folder / "table.csv", index=False)
    for target, other in (("y", "label"), ("label", "y")):
        result = run(
            *("fit", folder / "table.csv", "--target", target, "--drop", f"{other},place"),
            *("--time", "year", *FEW, "--out", folder / f"{target}.hetrisk"),
        )
        assert result.exit_code == 0, result.output
    return folder
