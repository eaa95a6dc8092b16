"""Tiny cases and made-up records, so that the machinery is tested without waiting for fits."""

import hashlib

from hetrisk.reproduce.cases import Case, grid
from hetrisk.reproduce.panels import Panel, fill
from hetrisk.reproduce.records import OK, Records
from hetrisk.reproduce.tables import markdown

SETTING = {"n_samples": 60, "n_test": 40}
METHODS = ("mean", "erm", "hrm", "oracle")
PANEL = Panel(
    "Tiny", "selection_bias", SETTING, "spread", {"ERM": {"mean": 0.5, "std": 0.1, "max": 0.6}}
)


def cases(n_seeds=4) -> list[Case]:
    return grid("selection_bias", [SETTING], range(n_seeds), METHODS)


def measure(case: Case) -> dict:
    """A record whose numbers depend on the case alone."""
    digest = hashlib.sha256(case.key.encode()).digest()
    return {
        "key": case.key,
        "task": case.task,
        "setting": dict(case.setting),
        "seed": case.seed,
        "method": case.method,
        "versions": {"hetrisk": "0"},
        "status": OK,
        "errors": {f"e{i}": byte / 255 for i, byte in enumerate(digest[:4])},
        "train_error": digest[5] / 255,
        "seconds": 0.1,
    }


def tables(path, n_seeds=4) -> str:
    filled = [fill(PANEL, Records(path).read(), range(n_seeds))]
    return markdown(filled)
