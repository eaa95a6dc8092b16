"""Every number that decides has a source, and the page that lists them says what the code holds.

HETRISK_UPDATE_DOCS=1 writes the page.
"""

import ast
import os
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

import hetrisk.core
from hetrisk.core.drift.thresholds import DriftThresholds
from hetrisk.core.numerics.dependence import DependenceThresholds
from hetrisk.core.numerics.named_numbers import Source, measured, table, threshold
from hetrisk.core.paper.thresholds import GateThresholds
from hetrisk.core.reach.thresholds import ReachThresholds
from hetrisk.core.sources.levels import LevelThresholds
from hetrisk.core.thresholds import Thresholds

PAGE = Path(__file__).parent.parent / "docs" / "thresholds.md"
CORE = Path(hetrisk.core.__file__).parent
DEFAULT = [Thresholds, DependenceThresholds]
MOST = 15  # numbers that decide where nobody names environments
SECTIONS = {
    "The default search, where nobody names environments": DEFAULT,
    "Named and hinted environments; the curve and its band": [LevelThresholds, ReachThresholds],
    "The paper's gates, where penalties are to be chosen": [GateThresholds],
    "Later rows held against those learned from": [DriftThresholds],
}
MARK = "<!-- tables -->\n"


def decide(classes):
    return [one for kind in classes for one in fields(kind) if "source" in one.metadata]


def sections():
    for title, classes in SECTIONS.items():
        yield f"## {title}\n\n{len(decide(classes))} numbers.\n\n{table(classes)}\n"


def test_the_page_lists_what_the_code_holds():
    head, _, _ = PAGE.read_text().partition(MARK)
    page = head + MARK + "\n" + "\n".join(sections())
    if os.environ.get("HETRISK_UPDATE_DOCS"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def test_the_default_search_believes_in_few_numbers():
    assert len(decide(DEFAULT)) <= MOST


def is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def test_every_settings_class_of_core_is_on_the_page():
    listed = {kind.__name__ for classes in SECTIONS.values() for kind in classes}
    made = {
        node.name
        for path in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(c, ast.Call) and ast.unparse(c.func) == "threshold" for c in ast.walk(node)
        )
    }
    assert made == listed


def test_every_named_number_of_core_is_a_floor_a_budget_or_a_constant():
    undeclared = []
    for path in CORE.rglob("*.py"):
        if path.name == "floors.py":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
                numbers = any(map(is_number, ast.walk(node.value)))
                functions = any(isinstance(part, ast.Lambda) for part in ast.walk(node.value))
                if numbers and not functions and not kind.startswith(("Budget[", "Constant[")):
                    undeclared.append(f"{path.relative_to(CORE)}: {ast.unparse(node)}")
    assert not undeclared


def test_functions_of_core_hold_no_number_that_should_have_a_name():
    """Quarters up to four belong to formulas; other fractions are floors, budgets or thresholds."""
    nameless = [
        f"{path.relative_to(CORE)}:{part.lineno}: {part.value}"
        for path in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, float)
        if part.value * 4 % 1 or abs(part.value) > 4
    ]
    assert not nameless


def test_a_threshold_without_a_source_is_refused():
    @dataclass(frozen=True)
    class Bare:
        level: float = 0.05

    with pytest.raises(TypeError, match=r"Bare\.level has no source"):
        table([Bare])
    with pytest.raises(ValueError, match=r"source must be one of derived, .* got 'guessed'"):
        Source("guessed", "somewhere")
    with pytest.raises(ValueError, match="say where"):
        measured("")


def test_a_threshold_is_its_value():
    @dataclass(frozen=True)
    class Settings:
        levels: tuple[float, ...] = threshold((0.5, 2.0), "two levels", measured("here"))

    assert Settings().levels == (0.5, 2.0)
    assert "| `Settings.levels` | 0.5, 2 | two levels | measured: here |" in table([Settings])
