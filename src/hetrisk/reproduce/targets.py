"""What can be reproduced: each target is its panels, its cases and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hetrisk.reproduce.cases import Case, grid
from hetrisk.reproduce.evaluation import DISTANCES
from hetrisk.reproduce.figures import (
    Drawing,
    car_figure,
    distance_figure,
    house_figure,
    income_figure,
)
from hetrisk.reproduce.nonlinear import CASES
from hetrisk.reproduce.panels import Filled, Panel
from hetrisk.reproduce.paper import environment_numbers, spread_numbers
from hetrisk.reproduce.records import Record

Draw = Callable[[Sequence[Filled], Sequence[Record]], Drawing]
STRENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper.

    Attributes
    ----------
    title : heading of its section.
    panels : its tables.
    draw : makes its figure from the filled panels and the records of ``extra``; None for a table.
    extra : cases that are not in any panel, as (task, setting, method).
    most : draws at most: one where nothing is drawn, or where one takes minutes.
    """

    title: str
    panels: tuple[Panel, ...] = ()
    draw: Draw | None = None
    extra: tuple[tuple[str, Mapping[str, object], str], ...] = ()
    most: int | None = None

    def seeds(self, n_seeds: int) -> range:
        """Return the seeds to run."""
        return range(n_seeds if self.most is None else min(n_seeds, self.most))

    def extra_cases(self, n_seeds: int) -> list[Case]:
        """Return the cases outside the panels."""
        seeds = self.seeds(n_seeds)
        return [
            case
            for task, setting, method in self.extra
            for case in grid(task, [setting], seeds, [method])
        ]

    def cases(self, n_seeds: int) -> list[Case]:
        """Return every case of the target."""
        seeds = self.seeds(n_seeds)
        return [c for panel in self.panels for c in panel.cases(seeds)] + self.extra_cases(n_seeds)


def _bias(title: str, table: str, scenario: str, index: int, **setting: object) -> Panel:
    defaults = {"r": 1.9, "n_features": 10, "n_biased": 1, "n_samples": 2000, "kappa": 0.95}
    numbers = spread_numbers(table, scenario, index)
    return Panel(title, "selection_bias", {**defaults, **setting}, "spread", numbers)


def _anti_causal(title: str, scenario: str, n_phi: int, n_psi: int) -> Panel:
    setting = {"n_phi": n_phi, "n_psi": n_psi}
    return Panel(title, "anti_causal", setting, "environments", environment_numbers(scenario))


TARGETS: dict[str, Target] = {
    "table1": Target(
        "Table 1: selection bias (RMSE over ten test environments)",
        (
            *(
                _bias(f"Scenario 1: r = {r}", "table1", "scenario1", i, r=r)
                for i, r in enumerate((1.5, 1.9, 2.3))
            ),
            *(
                _bias(
                    f"Scenario 2: d = {d}, n_b = {d // 10}",
                    *("table1", "scenario2", i),
                    n_features=d,
                    n_biased=d // 10,
                )
                for i, d in enumerate((10, 20, 40))
            ),
        ),
    ),
    "table2": Target(
        "Table 2: anti-causal effect (RMSE in each environment; e1 to e3 are trained on)",
        (
            _anti_causal("Scenario 1: n_phi = 9, n_psi = 1", "scenario1", 9, 1),
            _anti_causal("Scenario 2: n_phi = 5, n_psi = 5", "scenario2", 5, 5),
        ),
    ),
    "table3": Target(
        "Table 3: selection bias, other settings (RMSE over ten test environments)",
        (
            *(
                _bias(
                    f"Scenario 3: kappa = {kappa}, n = {n}",
                    *("table3", "scenario3", i),
                    kappa=kappa,
                    n_samples=n,
                )
                for i, (kappa, n) in enumerate(((0.9, 1000), (0.95, 2000), (0.975, 4000)))
            ),
            *(
                _bias(f"Scenario 4: n_b = {n_b}", "table3", "scenario4", i, n_biased=n_b)
                for i, n_b in enumerate((1, 3, 5))
            ),
        ),
    ),
    "figure-task2vec": Target(
        "Figure: Task2Vec distance between environments (selection bias, r = 1.9)",
        draw=distance_figure,
        extra=(("selection_bias", {"r": 1.9}, DISTANCES),),
    ),
    "figure-car": Target(
        "Figure: car insurance (error rate; sex and label correlate at r in training, -r in tests)",
        tuple(Panel(f"r = {r}", "car_insurance", {"r": r}, "train and test") for r in STRENGTHS),
        car_figure,
        most=1,
    ),
    "figure-income": Target(
        "Figure: income (error rate in ten groups; trained on two)",
        (Panel("Income", "income", {}, "all"),),
        income_figure,
        most=1,
    ),
    "figure-house": Target(
        "Figure: house prices (RMSE in standard deviations of the first period's log price)",
        (Panel("House prices", "house_price", {}, "all"),),
        house_figure,
        most=1,
    ),
    "nonlinear": Target(
        "Nonlinear: the cases of Kernelized HRM (error rate, or RMSE, over the test environments)",
        tuple(Panel(title, *case, "spread") for title, case in CASES.items()),
        most=3,
    ),
}
