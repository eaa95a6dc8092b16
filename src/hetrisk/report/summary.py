"""What the page and the terminal say, as typed values: no model, no template, no raw row.

`hetrisk.report.extraction` fills these from a fitted model; the page, the terminal, the notebook
representation and `hetrisk.plotting` read them and nothing else, so that they cannot disagree.
Arrays are indexed by environment first (K of them), then by column (d), in the model's order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import FloatArray
from hetrisk.estimators.quality import Quality


class Decision(Enum):
    """What became of a feature. The value is the word the page uses."""

    KEPT = "kept"
    DROPPED = "left out"
    UNCERTAIN = "uncertain"


class Action(Enum):
    """What a reader is advised to do."""

    THIS = "use this model"
    PLAIN = "use the plain model"
    UNKNOWN = "cannot say"


@dataclass(frozen=True)
class Point:
    """One thing to know before following a recommendation: a question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Recommendation:
    """What to do, in a sentence, and what to know about it.

    Attributes
    ----------
    action : use this model, use the plain model, or cannot say.
    sentence : the recommendation with its reason.
    points : cost, break-even, stability, assumptions, in this order.
    price : relative rise of the expected error at reach 0 against plain ERM's; NaN if unknown.
    gain : relative fall of the expected error at the reach asked for; NaN if unknown.
    reach, break_even : the reach asked for, and that from which on the model pays (inf: never).
    """

    action: Action
    sentence: str
    points: tuple[Point, ...]
    price: float
    gain: float
    reach: float
    break_even: float


@dataclass(frozen=True)
class Curve:
    """Expected error against reach, of this model and of plain ERM (see `ReachCurve`).

    ``left_out`` says in words which features would be left out at each reach; ``asked`` is the
    reach the model was fitted for.
    """

    reach: FloatArray
    error: FloatArray
    error_erm: FloatArray
    low: FloatArray
    high: FloatArray
    low_erm: FloatArray
    high_erm: FloatArray
    left_out: tuple[str, ...]
    unit: str
    break_even: float
    asked: float

    def anchored(self, this: float, plain: float) -> Curve:
        """The same regrets from errors that were measured, in place of those at reach 0.

        Squared errors move by as much all along a line, its band in proportion.
        """
        moved: dict[str, Any] = {}
        for suffix, level in (("", this), ("_erm", plain)):
            error = getattr(self, f"error{suffix}")
            start = np.sqrt(np.maximum(error**2 - error[0] ** 2, 0.0) + level**2)
            ratio = np.divide(start, error, out=np.ones_like(error), where=error > 0)
            moved[f"error{suffix}"] = start
            for end in ("low", "high"):
                moved[f"{end}{suffix}"] = getattr(self, f"{end}{suffix}") * ratio
        return replace(self, **moved)

    @property
    def flat(self) -> bool:
        """Whether nothing grows with the reach: no environments were found to differ."""
        return bool(np.ptp(self.error_erm) == 0 and np.ptp(self.error) == 0)


@dataclass(frozen=True)
class Feature:
    """One feature and what decided about it (see `hetrisk.core.result.Evidence`).

    A feature is one column of the model, or ``n_columns`` that share a decision: the levels of
    a category. ``position`` is its column, of several the one most spoken against.

    ``label`` is short and unique on the page, ``name`` the longer form; ``used`` says whether
    the model uses it, which an uncertain feature's ``decision`` does not. ``margin`` is the
    number that decides: by how much the error expected at the reach asked for would rise were
    this decision the other way. ``stability`` is the share of resamples in which it left, NaN
    where none were drawn or it left by assumption; ``asked`` says that it was to be kept.
    """

    position: int
    name: str
    label: str
    used: bool
    decision: Decision
    gate: float
    margin: float
    price: float
    regret: float
    p_value: float
    stability: float
    assumed: bool
    reason: str
    asked: bool = False
    n_columns: int = 1


@dataclass(frozen=True)
class Source:
    """One source of environments that was looked at; ``against`` names the feature it speaks of."""

    name: str
    kind: str
    n_environments: int
    p_value: float
    score: float
    against: str
    used: bool
    sentence: str


@dataclass(frozen=True)
class Environment:
    """One group of rows: errors there, and in words what is different, the largest first."""

    label: str
    share: float
    risk: float
    risk_erm: float
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOutEnvironment:
    """Errors in an environment that was not learned from: this model, plain ERM, anchor."""

    label: str
    rows: float
    error: float
    error_erm: float
    error_anchor: float


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
    """One record of the search, as `hetrisk.core.result.HistoryRecord` has it.

    ``kept`` has one flag a feature, or is empty if not recorded.
    """

    number: int
    n_environments: int
    score: float
    score_name: str
    log_likelihood: float
    kept: tuple[bool, ...]
    chosen: bool
    invariance_penalty: float | None
    gate_penalty: float | None
    note: str


@dataclass(frozen=True)
class TableSummary:
    """The table the page was written with: counts and averages, never a row."""

    n_rows: int
    target: str
    error: float


@dataclass(frozen=True)
class Origin:
    """The file a model was fitted from.

    ``notes`` say what was done to which column, ``left_out`` which columns were not used and
    why; ``leaks`` are columns that give the target away, each with its kind and a sentence.
    """

    source: str
    target: str
    n_rows: int
    n_columns: int
    reason: str
    notes: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    leaks: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Where the page comes from: ``settings`` are (name, value, is it the default)."""

    model: str
    final_model: str
    linear: bool
    versions: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str, bool], ...]
    code: str
    repeatable: bool


@dataclass(frozen=True)
class Summary:
    """Everything the page and the terminal show about one fitted model.

    Decisions are about ``features``; coefficients, spreads and steps are about ``columns``,
    which are the same unless columns share a decision.
    """

    task: str
    n_classes: int
    verdict: str
    reason: str
    recommendation: Recommendation
    curve: Curve | None
    risk_name: str
    n_rows: int
    n_resamples: int
    features: tuple[Feature, ...]
    columns: tuple[Feature, ...]
    sources: tuple[Source, ...]
    environments: tuple[Environment, ...]
    leave_one_out: tuple[LeftOutEnvironment, ...]
    coefficients: tuple[Coefficients, ...]
    spreads: tuple[Spread, ...]
    distance: FloatArray
    steps: tuple[Step, ...]
    quality: Quality | None
    table: TableSummary | None
    origin: Origin | None
    provenance: Provenance

    def of(self, decision: Decision) -> tuple[Feature, ...]:
        """Features with this decision, the most important first."""
        return tuple(f for f in by_importance(self.features) if f.decision is decision)


def by_importance(features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Sort features by their margin: first those about which the decision matters most."""

    def key(f: Feature) -> tuple[float, float, int]:
        return -_known(f.margin), -_known(f.price), f.position

    return tuple(sorted(features, key=key))


def _known(value: float) -> float:
    return float(np.nan_to_num(value, nan=-1e300, posinf=1e300, neginf=-1e299))
