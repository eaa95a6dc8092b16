"""Where a page comes from: the file, the settings, the versions, and how to make it again."""

from __future__ import annotations

import inspect
import platform
import shlex
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from hetrisk import __version__
from hetrisk.estimators.quality import Quality
from hetrisk.report.labels import LONGEST_NAME, brief, readable, shortened
from hetrisk.report.summary import Origin, Provenance
from hetrisk.tables import TableEncoder

PACKAGES = ("numpy", "scipy", "scikit-learn")
MOST_LINES = 40


def origin(model: Any) -> Origin | None:
    """Return the file a pipeline was fitted from, where it remembers one."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    if not isinstance(first, TableEncoder):
        return None
    description = getattr(first, "description_", None)
    if description is None:
        return None
    return Origin(
        source=_short(description.source),
        target=_short(description.target),
        n_rows=int(description.n_rows),
        n_columns=int(description.n_columns),
        reason=_short(description.reason),
        notes=tuple(
            (_short(note.column) if note.column else "", _short(note.text))
            for note in description.notes
        ),
        left_out=tuple((_short(out.name), _short(out.reason)) for out in description.left_out),
        leaks=tuple(
            (_short(leak.column), leak.kind, brief(leak.sentence, 2 * LONGEST_NAME))
            for leak in description.leaks
        ),
    )


def stored_quality(model: Any) -> Quality | None:
    """Return the figures of merit a pipeline fitted from a table was stored with."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    description = getattr(first, "description_", None) if isinstance(first, TableEncoder) else None
    return None if description is None else description.quality


def provenance(model: Any, final: Any) -> Provenance:
    """Return the settings of ``final``, the last step of ``model``, and how to repeat the page."""
    return Provenance(
        model=type(final).__name__,
        final_model=type(final.final_estimator_).__name__,
        linear=final.final_estimator is None,
        versions=(
            ("hetrisk", __version__),
            ("Python", platform.python_version()),
            *((package, version(package)) for package in PACKAGES),
        ),
        settings=_settings(final),
        code=_command(model) or _code(model, type(final).__name__),
        repeatable=isinstance(final.random_state, int | np.integer),
    )


def _settings(final: BaseEstimator) -> tuple[tuple[str, str, bool], ...]:
    defaults = inspect.signature(type(final).__init__).parameters
    return tuple(
        (key, brief(repr(value), 120), repr(value) == repr(defaults[key].default))
        for key, value in final.get_params(deep=False).items()
    )


def _command(model: Any) -> str | None:
    """Return the command line that fits a file, where the model came from one."""
    came = origin(model)
    if came is None:
        return None
    description = model.steps[0][1].description_
    roles = [("--environment", description.environment), ("--weight", description.weight)]
    roles += [("--hint", name) for name in description.hints]
    typed = [came.source, "--target", came.target]
    typed += [_short(part) for flag, name in roles if name is not None for part in (flag, name)]
    typed += [_short(option) for option in description.options]
    return " ".join(["hetrisk fit", *map(shlex.quote, typed), "--report report.html"])


def _code(model: Any, name: str) -> str:
    lines = [readable(line) for line in repr(model).splitlines()]
    return "\n".join(
        [
            f"from hetrisk import {name}",
            "from hetrisk.report import write_report",
            "",
            f"model = {shortened(lines[0], 1000)}",
            *(shortened(line, 1000) for line in lines[1:MOST_LINES]),
            "model.fit(X, y)",
            'write_report(model, "report.html", data=(X, y))',
        ]
    )


def _short(text: object) -> str:
    return brief(text, LONGEST_NAME)
