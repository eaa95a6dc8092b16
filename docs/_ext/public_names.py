"""The reference of Python names, written from what each module says is public.

A name that a module adds to ``__all__`` has a page at the next build.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pages import write
from sphinx.application import Sphinx

# What each part is for, in the order a newcomer meets them.
MODULES = {
    "hetrisk": "Estimators",
    "hetrisk.metrics": "Errors, distances and tests",
    "hetrisk.plotting": "Pictures for notebooks",
    "hetrisk.monitoring": "New rows against what was learned",
    "hetrisk.tables": "Tables as people write them",
    "hetrisk.report": "The page that explains a model",
    "hetrisk.modelfile": "Model files",
    "hetrisk.blocks": "Where rows live",
    "hetrisk.datasets": "Simulators, tasks and real tables",
    "hetrisk.baselines": "Other people's methods",
}
RESULTS = (
    "Ranked",
    "Tested",
    "Forecast",
    "Horizon",
    "Expected",
    "ReachLine",
    "ColumnEvidence",
)


def public(module: ModuleType) -> list[str]:
    """Public names of a module that are not modules themselves."""
    names = list(getattr(module, "__all__", []))
    return [n for n in names if not isinstance(getattr(module, n), ModuleType)]


def page() -> str:
    """The whole page, in reStructuredText."""
    parts = ["Python", "======", "", "Every public name, with what it takes and what it gives.", ""]
    for name, title in MODULES.items():
        module = import_module(name)
        parts += section(title, name, first_sentence(module), public(module))
    parts += section(
        "What a fit returns",
        "hetrisk.core.result",
        "Records behind ``ranking_``, ``backtest_``, ``forecast_``, ``reach_curve_`` and "
        "``evidence_``.",
        list(RESULTS),
    )
    return "\n".join(parts)


def section(title: str, module: str, text: str, names: list[str]) -> list[str]:
    """One module: a sentence and a table of its names."""
    lines = [
        title,
        "-" * len(title),
        "",
        f"``{module}``: {text}",
        "",
        f".. currentmodule:: {module}",
    ]
    lines += ["", ".. autosummary::", "   :toctree: .", ""]
    return [*lines, *(f"   {name}" for name in names), ""]


def first_sentence(module: Any) -> str:
    """What a module is, in the first line of its docstring."""
    line = (module.__doc__ or "").strip().splitlines()[0]
    return line[0].lower() + line[1:] if line[:2].istitle() else line


def write_page(app: Sphinx, config: Any) -> None:
    """Write the page before Sphinx looks for its sources."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "python.rst", page())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the page with Sphinx."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True}
