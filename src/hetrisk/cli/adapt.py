"""``hetrisk adapt``: a model moved to a new environment by a few labelled rows of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hetrisk.cli.arguments import DATA, OUTPUT, check_outputs, open_model, read, reading_options

if TYPE_CHECKING:
    from hetrisk.modelfile import Deployed
    from hetrisk.tables import Table

WORTH = 0.01  # of the error: a smaller gain is none
EPILOG = """
\b
Examples:
  hetrisk adapt houses.hetrisk labelled.csv --out houses-here.hetrisk
  hetrisk adapt patients.hetrisk ward.csv --out ward.hetrisk --json

LABELLED holds rows of the new environment with the target in them, five at least. The level and the
slopes move as far as these rows say and as environments differed in the backtest: few rows move the
level a little, many move everything, and where environments never differed nothing moves. What to
expect is measured by leaving each labelled row out in turn.
"""


@click.command(epilog=EPILOG)
@click.argument("model", type=DATA)
@click.argument("labelled", type=DATA)
@click.option(
    "--out", "-o", type=OUTPUT, required=True, metavar="FILE", help="Write the new model here."
)
@click.option("--json", "as_json", is_flag=True, help="Print what changed as JSON.")
@reading_options
def adapt(
    model: Path, labelled: Path, out: Path, as_json: bool, encoding: str, delimiter: str | None
) -> None:
    """Move the model in the file MODEL to the environment of the rows in LABELLED."""
    check_outputs({"--out": out}, model, labelled)
    from hetrisk import modelfile
    from hetrisk.cli.terminal import console, print_json, progress, words
    from hetrisk.tables.errors import shown

    deployed = open_model(model)
    table = read(labelled, encoding, delimiter, sample=True)
    with progress("adapting"):
        moved = adapted(deployed, table)
    modelfile.save(out, moved)
    told = dict(moved.adaptation or {})
    if as_json:
        print_json({"adaptation": told, "model": str(out)})
        return
    screen = console()
    screen.print(words(verdict(told["figures"]), 300), style="bold")
    screen.print(words(told["sentence"], 600))
    screen.print(f"Written: {shown(out, 200)}.", soft_wrap=True)


def adapted(deployed: Deployed, table: Table) -> Deployed:
    """Return the model moved to the environment of a table's labelled rows."""
    import numpy as np
    import pandas as pd

    from hetrisk.core.backtest.adaptation import LEAST_ROWS
    from hetrisk.core.backtest.adaptation import adapt as move
    from hetrisk.monitoring.checking import outcomes, targets_of
    from hetrisk.tables import TableError
    from hetrisk.tables.errors import counted, quoted

    drift = None if deployed.reference is None else deployed.reference["drift"]
    if drift is None:
        raise TableError(
            "the model was not backtested: how far it may move is not known. Fit it with --time "
            "or --environment"
        )
    y = targets_of(deployed, table.frame)
    if y is None:
        raise TableError(f"the table lacks {quoted(deployed.target)}, the target")
    known = ~np.asarray(pd.isna(y))
    if deployed.classes is not None:  # a class that was never seen cannot be learned here
        known &= np.isin(y, [str(label) for label in deployed.classes])
    if known.sum() < LEAST_ROWS:
        there = counted(int(known.sum()), "row")
        raise TableError(f"at least {LEAST_ROWS} labelled rows are needed; got {there}")
    hot = outcomes(deployed, y[known])
    codes = hot[:, 0] if deployed.classes is None else hot.argmax(axis=1).astype(float)
    rows = deployed.inputs(table.frame.loc[known])
    predictor, found = move(deployed.predictor, drift, rows, codes, np.ones(len(codes)))
    told = {"sentence": str(found), "figures": dict(vars(found))}
    return replace(deployed, predictor=predictor, adaptation=told)


def verdict(figures: dict[str, Any]) -> str:
    """Say in a line whether the adapted model is worth using."""
    if figures["after"] < (1 - WORTH) * figures["before"]:
        return "Use the adapted model: on labelled rows left out in turn it errs less."
    return (
        "Stay with the old model: on labelled rows left out in turn the adapted one errs as much."
    )
