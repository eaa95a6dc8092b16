"""What the gauntlet runs: designed tasks and splits of real tables, and who runs which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hetrisk.datasets import natural_names
from hetrisk.datasets.natural import SPLITS
from hetrisk.reproduce.cases import Case, grid
from hetrisk.reproduce.gauntlet.methods import GAUNTLET, ORACLE
from hetrisk.reproduce.methods import HINTED

FIRST_SEED = 1000  # the seeds that anything was tried out on are others
MAX_ROWS = 3000  # rows a real table is trained on, and tested on in each environment


@dataclass(frozen=True)
class Stage:
    """One task that every method runs: a design, or one split of a real table.

    Attributes
    ----------
    name : of the design or the table.
    task, setting : which case.
    split : of a real table, else "".
    """

    name: str
    task: str
    setting: Mapping[str, Any] = field(default_factory=dict)
    split: str = ""

    @property
    def real(self) -> bool:
        """Whether it is a real table."""
        return bool(self.split)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that make sense here: hints and the truth are those of designs."""
        plain = [name for name, method in GAUNTLET.items() if method.given != HINTED]
        if self.real:
            # Boosted trees behind the search that is not told: the search is the same as without.
            return tuple(name for name in plain if name not in (ORACLE, "hrm-trees"))
        known = not self.setting.get("rotated", False)
        return tuple(name for name in GAUNTLET if known or name != ORACLE)

    def cases(self, seeds: Iterable[int], methods: Sequence[str] | None = None) -> list[Case]:
        """Return the cases, of some methods alone if they are named."""
        chosen = [name for name in self.methods if methods is None or name in methods]
        return grid(self.task, [self.setting], [0] if self.real else seeds, chosen)


def _design(name: str, task: str, **setting: Any) -> Stage:
    return Stage(name, task, setting)


DESIGNS: tuple[Stage, ...] = (
    _design("selected on y: product", "selected_on_target"),
    _design("selected on y: square", "selected_on_target", curve="square"),
    _design("selected on y: exp", "selected_on_target", curve="exp"),
    _design("selected on y: step", "selected_on_target", curve="step"),
    _design("selected on y: noise 1", "selected_on_target", noise=1.0),
    _design("selected on y: 2 % minority", "selected_on_target", share=0.98),
    _design("selected on y: 40 % minority", "selected_on_target", share=0.6),
    _design("selected on y: 500 rows", "selected_on_target", n_samples=500),
    _design("selected on y: 8000 rows", "selected_on_target", n_samples=8000),
    _design("selected on y: wide, noise 1", "selected_on_target", noise=1.0, spread=2.0),
    _design("selected on y, rotated", "selected_on_target", rotated=True),
    _design("flipping cause, visible", "flipping_cause"),
    _design("flipping cause, 40 %", "flipping_cause", share=0.4),
    _design("flipping cause, hidden", "flipping_cause", visible=False),
    _design("spreading effects", "spreading_effects"),
    _design("spreading effects, mild", "spreading_effects", spreads=(0.5, 0.8, 1.0)),
    _design("spreading effects, balanced", "spreading_effects", sizes=(500, 500, 500)),
    _design("copied label .7/.9", "copied_label"),
    _design("copied label .8/.9", "copied_label", rates=(0.8, 0.9)),
    _design("copied label .8/.9, rotated", "copied_label", rates=(0.8, 0.9), rotated=True),
    _design("cause and effect", "cause_and_effect"),
    _design("cause and effect, rotated", "cause_and_effect", rotated=True),
    _design("cows and camels", "cows_and_camels"),
    _design("cows and camels, rotated", "cows_and_camels", rotated=True),
    _design("small margin", "small_margin"),
    _design("small margin, rotated", "small_margin", rotated=True),
)
REAL: tuple[Stage, ...] = tuple(
    Stage(table, "natural", {"table": table, "split": split, "max_rows": MAX_ROWS}, split)
    for table in natural_names()
    for split in SPLITS
)


TRIED = (  # tables that settings of ours were tried out on; the others were chosen for the page
    *("wages_survey_years", "wages_young_women", "wages_panel", "wages_regions"),
    *("doctor_visits_years", "computer_prices", "school_results", "number_of_children"),
    *("party_feelings", "budget_for_food", "interest_rates", "vote_states"),
)


def groups() -> dict[str, list[Stage]]:
    """Splits of the real tables, grouped by whether they were tried on before, and by the half."""
    return {
        "tried on before": [stage for stage in REAL if stage.name in TRIED],
        "fresh tables": [stage for stage in REAL if stage.name not in TRIED],
        **{f"{split} trained on": [s for s in REAL if s.split == split] for split in SPLITS},
    }


def gauntlet_cases(n_seeds: int, methods: Sequence[str] | None = None) -> list[Case]:
    """Return every case: real tables first, whose fits take longest."""
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    return [case for stage in (*REAL, *DESIGNS) for case in stage.cases(seeds, methods)]
