"""Every number that decides has a source, and the page that lists them says what the code holds.

HETRISK_UPDATE_DOCS=1 writes the page.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from hetrisk.core.numerics.dependence import DependenceSettings
from hetrisk.core.numerics.thresholds import Source, measured, table, threshold
from hetrisk.core.paper.settings import GateSettings
from hetrisk.core.reach.settings import ReachSettings
from hetrisk.core.settings import Thresholds
from hetrisk.core.sources.levels import LevelSettings

PAGE = Path(__file__).parent.parent / "docs" / "thresholds.md"
MARK = "<!-- table -->\n"
SETTINGS = [Thresholds, ReachSettings, LevelSettings, GateSettings, DependenceSettings]


def test_the_page_lists_what_the_code_holds():
    head, _, _ = PAGE.read_text().partition(MARK)
    page = f"{head}{MARK}{table(SETTINGS)}\n"
    if os.environ.get("HETRISK_UPDATE_DOCS"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


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
