"""Model files as the commands open them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetrisk.modelfile import Deployed
    from hetrisk.report import Summary


def open_model(path: Path) -> Deployed:
    """Open a model file, with progress and a note where a later version wrote it."""
    import warnings

    from hetrisk import modelfile
    from hetrisk.cli.terminal import progress, say_notes

    with progress("opening the model"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", modelfile.NewerModelWarning)
        deployed = modelfile.load(path)
    say_notes(note.message for note in told)
    return deployed


def summary_of(deployed: Deployed, path: Path) -> Summary:
    """Return the summary of a model, or refuse one that was saved from Python without it."""
    from hetrisk.modelfile import ModelFileError
    from hetrisk.report.stored import from_record
    from hetrisk.tables.errors import quoted

    summary = from_record(deployed.summary)
    if summary is None:
        raise ModelFileError(
            f"{quoted(path.name)} was not fitted by 'hetrisk fit': it holds nothing to report"
        )
    told = deployed.adaptation
    if told is not None:  # what was learned before is not all that the model is now
        summary = replace(summary, advice=(f"Adapted: {told['sentence']}", *summary.advice))
    return summary
