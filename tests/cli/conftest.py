"""Tables and a model the command line is tried on."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hetrisk.cli.app import cli


def run(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def frame(seed=0, n=150):
    rng = np.random.default_rng(seed)
    place = rng.choice(["north", "south", "west"], n)
    a, b = rng.normal(size=(2, n))
    y = 2 * a - b + rng.normal(size=n) * 0.3
    sign = np.where(place == "south", -1.0, 1.0)
    return pd.DataFrame(
        {
            "key": [f"k{i}" for i in range(n)],
            "a": a,
            "b": np.where(rng.random(n) < 0.05, np.nan, b),
            "echo": sign * y + rng.normal(size=n) * 0.2,
            "kind": rng.choice(["p", "q", "r"], n),
            "flag": rng.choice(["yes", "no"], n),
            "when": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "place": place,
            "y": y,
            "label": np.where(y > 0, "high", "low"),
        }
    )


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """A folder with a table and the two models fitted to it."""
    folder = tmp_path_factory.mktemp("workshop")
    frame().to_csv(folder / "table.csv", index=False)
    for target, other in (("y", "label"), ("label", "y")):
        result = run(
            *("fit", folder / "table.csv", "--target", target, "--drop", other),
            *("--drop", "place", "--out", folder / f"{target}.hetrisk"),
        )
        assert result.exit_code == 0, result.output
    return folder
