"""``hetrisk bench``: speed and memory on this machine, as ratios within one run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hetrisk.cli.arguments import check_outputs

if TYPE_CHECKING:
    from hetrisk.bench.metric import Metric, Run

EPILOG = """
\b
Examples:
  hetrisk bench --quick
  hetrisk bench --only iteration --only fits
  hetrisk bench --save run.json --docs docs
  hetrisk bench --check benchmarks/baseline.json

What is missing on this machine (R's flexmix, say) is reported as missing. With --check the exit
code is 1 when a ratio is worse than the baseline's by more than 30 %.
"""
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(epilog=EPILOG)
@click.option("--quick", is_flag=True, help="Small sizes: shows the path, not the claims.")
@click.option("--only", metavar="CASE", multiple=True, help="Run this case alone (repeatable).")
@click.option("--list", "listing", is_flag=True, help="List the cases and stop.")
@click.option("--save", type=FILE, metavar="FILE", help="Write the run as JSON.")
@click.option("--docs", type=FOLDER, metavar="FOLDER", help="Write benchmarks.md and scale.md.")
@click.option("--check", type=FILE, metavar="FILE", help="Compare with the run saved there.")
def bench(
    quick: bool,
    only: tuple[str, ...],
    listing: bool,
    save: Path | None,
    docs: Path | None,
    check: Path | None,
) -> None:
    """Measure speed and memory on this machine."""
    from hetrisk.bench.metric import Size
    from hetrisk.bench.suite import CASES, run_suite
    from hetrisk.cli.terminal import Countdown, error_console

    if listing:
        for name, case in CASES.items():
            click.echo(f"{name:<10} {case.title}")
        return
    for name in only:
        if name not in CASES:
            raise click.BadParameter(
                f"{name!r} is not a case; they are {', '.join(CASES)}.", param_hint="--only"
            )
    check_outputs({"--save": save}, check)
    before = None if check is None else _baseline(check)
    if before is not None and before.quick != quick:
        raise click.UsageError("--check needs a baseline of the same size: add or drop --quick.")
    screen, countdown = error_console(), Countdown()
    run = run_suite(
        Size.small() if quick else Size.full(),
        only,
        report=lambda metric: screen.print(f"  {line(metric)}", soft_wrap=True),
        starting=lambda title, done: screen.print(f"{title} … ({countdown.left(done)})"),
    )
    _tell(run)
    if save is not None:
        run.save(save)
    if docs is not None:
        _write_docs(run, docs)
    if before is not None:
        _compare(run, before, only)


def _baseline(path: Path) -> Run:
    from hetrisk.bench.metric import Run

    try:
        return Run.load(path)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise click.BadParameter(
            f"'{path}' is not a run that --save wrote.", param_hint="--check"
        ) from None


def line(metric: Metric) -> str:
    """Return a metric as one line."""
    from hetrisk.bench.page import target, value

    verdict = {True: "met", False: "NOT MET", None: ""}[metric.met]
    parts = [f"{metric.name}: {value(metric)}", target(metric), verdict]
    parts.append(f"({metric.note})" if metric.note else "")
    return "  ".join(part for part in parts if part)


def _tell(run: Run) -> None:
    from hetrisk.bench.page import target, value
    from hetrisk.cli.terminal import console, grid

    verdicts = {True: "met", False: "not met", None: "–"}
    rows = [
        (metric.name, value(metric), target(metric), verdicts[metric.met]) for metric in run.metrics
    ]
    columns = [("measured", "left"), ("value", "right"), ("target", "right"), ("", "left")]
    size = "quick sizes: these show the path, not the claims" if run.quick else "full sizes"
    console().print(grid(f"hetrisk bench, {size}, {run.seconds:.0f} s", columns, rows))


def _write_docs(run: Run, folder: Path) -> None:
    from hetrisk.bench.page import write_benchmarks
    from hetrisk.bench.scale import write_scale

    folder.mkdir(parents=True, exist_ok=True)
    written = [write_benchmarks(run, folder)]
    if "measured_constants" in run.series:
        written.append(write_scale(run, folder))
    for path in written:
        click.echo(f"wrote {path}", err=True)


def _compare(run: Run, before: Run, only: tuple[str, ...]) -> None:
    from hetrisk.bench.baseline import compare, sentences

    changes = compare(run, before)
    if only:
        measured = {metric.name for metric in run.metrics}
        changes = [change for change in changes if change.name in measured]
    worse = sentences(changes)
    for sentence in worse:
        click.echo(f"Slower: {sentence}")
    click.echo(f"{len(changes)} ratios compared with the baseline, {len(worse)} worse.")
    if worse:
        sys.exit(1)
