"""``hetrisk reproduce``: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hetrisk.cli.arguments import check_outputs

TARGETS = (
    *("table1", "table2", "table3"),
    *("figure-task2vec", "figure-car", "figure-income", "figure-house"),
    *("nonlinear", "all"),
    "real",
)
EPILOG = """
\b
Examples:
  hetrisk reproduce table1 --seeds 2
  hetrisk reproduce all --seeds 10 --jobs 2 --out reproduction
  hetrisk reproduce all --redo hrm
  hetrisk reproduce real --minutes 60 --out real
  hetrisk reproduce real --redo backtest --out real
  HETRISK_DATA=~/data hetrisk reproduce figure-house figure-income figure-car

all is the paper's tables and figures. real is ours: tables drawn by lot, the backtest beside what
people would do instead. It runs alone, and needs pip install 'hetrisk[real]'.

Every finished case is one line of a file in OUT. A run that was stopped,
however it was stopped, goes on where it ended when it is started again on the same folder. The
simulations need no network; house prices and income are looked for in HETRISK_DATA and then at
OpenML; the car insurance table is always your own file. A case that cannot run says why in its
cell.
"""


@click.command(epilog=EPILOG)
@click.argument("targets", nargs=-1, required=True, type=click.Choice(TARGETS))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder of the records, tables and figures.",
)
@click.option(
    "--seeds", type=click.IntRange(1), default=10, show_default=True, help="Draws of each task."
)
@click.option(
    "--jobs", type=int, default=2, show_default=True, help="Processes; -1 for every core."
)
@click.option("--methods", metavar="NAME", multiple=True, help="Run this alone (repeatable).")
@click.option("--redo", metavar="NAME", multiple=True, help="Run this method again (repeatable).")
@click.option("--minutes", type=float, default=60, show_default=True, help="Time for real.")
@click.option(
    "--document",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the report of the documentation to this file.",
)
def reproduce(
    targets: tuple[str, ...],
    out: Path,
    seeds: int,
    jobs: int,
    methods: tuple[str, ...],
    redo: tuple[str, ...],
    minutes: float,
    document: Path | None,
) -> None:
    """Make the paper's tables and figures again beside ours."""
    from hetrisk.cli.columns import resolve
    from hetrisk.cli.terminal import error_console
    from hetrisk.reproduce import METHODS, RecordsError
    from hetrisk.reproduce import reproduce as run
    from hetrisk.reproduce.real import METHODS as REAL
    from hetrisk.reproduce.real import run_real

    check_outputs({"--document": document})
    if jobs == 0:
        raise click.BadParameter("must not be 0", param_hint="--jobs")
    if "real" in targets and len(targets) > 1:
        raise click.BadParameter("real runs alone", param_hint="TARGETS")
    known = REAL if "real" in targets else METHODS
    shared: dict[str, Any] = {
        "jobs": jobs,
        "methods": resolve(methods, list(known), "--methods", "method"),
        "redo": resolve(redo, list(known), "--redo", "method"),
        "document": document,
        "console": error_console(),
    }
    try:
        if "real" in targets:
            page = run_real(out, minutes=minutes, **shared)
        else:
            page = run(targets, out, seeds=seeds, **shared)
    except RecordsError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt as interrupt:
        interrupt.args = (f"Stopped. Started again with --out {out}, it goes on.",)
        raise
    click.echo(f"{page}")
