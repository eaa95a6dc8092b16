"""What the page says, as typed values: no model, no template, no raw row.

`hetrisk.report.extraction` fills these from a fitted model; the template, the notebook
representation and `hetrisk.plotting` read them. Arrays are indexed by environment first
(K of them), then by feature (d), in the order of the model's columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from hetrisk.core.numerics.rows import FloatArray


class Decision(Enum):
    """What became of a feature. The value is the word the page uses."""

    KEPT = "kept"
    DROPPED = "left out"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True)
class Feature:
    """One feature and the evidence about it (see `hetrisk.core.result.Evidence`).

    A feature is one column of the model, or ``n_columns`` that share a decision: the levels of
    a category. ``position`` is its column, of several the one most spoken against.

    ``label`` is short and unique on the page, ``name`` the longer form; ``used`` says whether
    the model uses it, which an uncertain feature's ``decision`` does not. ``instability`` is
    NaN where it is not known: relative to a mean coefficient that may as well be zero.
    """

    position: int
    name: str
    label: str
    used: bool
    decision: Decision
    gate: float
    instability: float
    instability_error: float
    cost: float
    saving: float
    p_value: float
    reason: str
    n_columns: int = 1


@dataclass(frozen=True)
class Environment:
    """One inferred group of rows; ``risk`` is the model's error there, ``risk_erm`` plain ERM's."""

    label: str
    share: float
    risk: float
    risk_erm: float


@dataclass(frozen=True)
class Coefficients:
    """The linear relation of target and features inside each environment.

    ``target`` names the class these log-odds are of, or is None for one relation. ``effect``
    and ``effect_error`` (K, d) are on a common scale, the change for one standard deviation of
    the feature; ``raw`` and ``raw_error`` are a unit's.
    """

    target: str | None
    effect: FloatArray
    effect_error: FloatArray
    raw: FloatArray
    raw_error: FloatArray


@dataclass(frozen=True)
class Spread:
    """How one feature is spread in each environment.

    ``edges`` (B + 1,) and ``shares`` (K, B) are a histogram where data were given, else None.
    For a feature of few values, ``values`` (B,) names them.
    """

    mean: FloatArray
    sd: FloatArray
    edges: FloatArray | None = None
    shares: FloatArray | None = None
    values: FloatArray | None = None


@dataclass(frozen=True)
class Step:
    """One record of the search. ``kept`` has one flag a feature, or is empty if not recorded."""

    number: int
    n_environments: int
    log_likelihood: float
    objective: float
    kept: tuple[bool, ...]
    chosen: bool


@dataclass(frozen=True)
class TableSummary:
    """The table the page was written with: counts and averages, never a row."""

    n_rows: int
    target: str
    error: float


@dataclass(frozen=True)
class Origin:
    """The file a model was fitted from: what was done to it and which columns were not used."""

    source: str
    target: str
    notes: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Provenance:
    """Where the page comes from: ``settings`` are (name, value, is it the default)."""

    model: str
    method: str
    final_model: str
    linear: bool
    versions: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str, bool], ...]
    code: str
    repeatable: bool


@dataclass(frozen=True)
class Summary:
    """Everything the page shows about one fitted model.

    Decisions are about ``features``; coefficients, spreads and steps are about ``columns``,
    which are the same unless columns share a decision.
    """

    task: str
    n_classes: int
    verdict: str
    headline: str
    reason: str
    risk_name: str
    n_rows: int | None
    features: tuple[Feature, ...]
    columns: tuple[Feature, ...]
    environments: tuple[Environment, ...]
    coefficients: tuple[Coefficients, ...]
    spreads: tuple[Spread, ...]
    distance: FloatArray
    steps: tuple[Step, ...]
    table: TableSummary | None
    origin: Origin | None
    provenance: Provenance

    def of(self, decision: Decision) -> tuple[Feature, ...]:
        """Features with this decision: kept ones by what they are worth, others by instability."""
        chosen = [f for f in by_concern(self.features) if f.decision is decision]
        if decision is Decision.KEPT:
            chosen.sort(key=lambda f: -np.nan_to_num(f.cost, nan=-1e300))
        return tuple(chosen)

    @property
    def worst(self) -> float:
        """The model's error in the environment where it is largest."""
        return max((e.risk for e in self.environments), default=np.nan)

    @property
    def worst_erm(self) -> float:
        """Plain ERM's error in the environment where *that* is largest."""
        return max((e.risk_erm for e in self.environments), default=np.nan)


def by_concern(features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Sort features: left out, uncertain, kept; of each the most unstable first."""
    rank = (Decision.DROPPED, Decision.UNCERTAIN, Decision.KEPT)

    def key(f: Feature) -> tuple[int, float, int]:
        instability = float(np.nan_to_num(f.instability, nan=-1.0, posinf=1e300))
        return rank.index(f.decision), -instability, f.position

    return tuple(sorted(features, key=key))
