"""The features of a fitted model: their names, what was decided, and which belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from hetrisk.core.result import UNSEARCHED
from hetrisk.estimators.frames import feature_groups, kept
from hetrisk.estimators.keep import kept_columns
from hetrisk.report.labels import LONGEST_LABEL, LONGEST_NAME, brief, unique_labels
from hetrisk.report.seen import encoder_of
from hetrisk.report.summary import Decision, Feature

DOUBTFUL_GATE = (0.05, 0.95)
ROUNDING = 1e-4  # of the target's standard deviation: squared, half the digits of a number
MEANT_IN_ROUNDING = 100.0  # times that error, and more, is no rounding
NOT_SEARCHED = "Kept: too few rows to look for reasons against it."
DOUBTFUL_SHARE = 0.2  # of resamples that decide otherwise


def table_columns(model: Any, final: Any) -> tuple[Feature, ...]:
    """One `Feature` for each column the estimator ``final``, the last step of ``model``, sees."""
    names = _names(model, final)
    labels, groups = unique_labels(names), np.asarray(column_groups(model, final), dtype=object)
    asked = kept_columns(kept(final), getattr(final, "feature_names_in_", None), len(names))
    together = set(groups[asked])  # a column that is asked for keeps its group
    columns = (_column(final, j, names[j], labels[j]) for j in range(len(names)))
    return tuple(
        replace(column, asked=group in together)
        for column, group in zip(columns, groups, strict=True)
    )


def _names(model: Any, final: Any) -> Sequence[object]:
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        try:
            return list(model[:-1].get_feature_names_out())
        except (AttributeError, ValueError, NotImplementedError):
            pass  # a step that cannot name its output: fall back on what the last step saw
    return list(getattr(final, "feature_names_in_", [f"x{j}" for j in range(len(final.support_))]))


def _column(final: Any, j: int, name: object, label: str) -> Feature:
    evidence = final.evidence_
    used, gate = bool(final.support_[j]), float(final.gates_[j])
    resampled = final.n_resamples_ > 0 and not evidence.assumed[j]
    stability = float(final.stability_[j]) if resampled else np.nan
    searched = final.verdict_ != UNSEARCHED  # too few rows to search are too few to price
    return Feature(
        position=j,
        name=brief(name, LONGEST_NAME),
        label=label,
        used=used,
        decision=_decision(used, gate, stability),
        gate=gate,
        margin=_meant(evidence.margin[j], final) if searched else np.nan,
        price=_meant(evidence.price[j], final) if searched else np.nan,
        regret=float(evidence.regret[j]),
        p_value=float(evidence.p_value[j]) if searched else np.nan,
        stability=stability,
        assumed=bool(evidence.assumed[j]),
        reason=brief(evidence.reason[j] if searched else NOT_SEARCHED, 2 * LONGEST_NAME),
    )


def rounding_of(final: Any) -> float:
    """Errors below it are rounding: of the target's standard deviation, half the digits."""
    return ROUNDING * float(final.reference_.sd[-1])


def _meant(change: float, final: Any) -> float:
    """A relative change of the error; NaN where the error is rounding and the change is, too.

    A fit that misses nothing has no error to compare with: only a column without which it would
    miss something has a figure.
    """
    curve = final.reach_curve_
    rounding = curve is not None and float(curve.error_erm[0]) < rounding_of(final)
    return np.nan if rounding and change < MEANT_IN_ROUNDING else float(change)


def _decision(used: bool, gate: float, stability: float) -> Decision:
    """Uncertain: a half-open gate, or resamples that decide otherwise more than now and then."""
    half_open = DOUBTFUL_GATE[0] < gate < DOUBTFUL_GATE[1]
    otherwise = stability if used else 1.0 - stability
    if half_open or otherwise > DOUBTFUL_SHARE:  # never true of a share that was not measured
        return Decision.UNCERTAIN
    return Decision.KEPT if used else Decision.DROPPED


def column_groups(model: Any, final: Any) -> Sequence[object]:
    """Return a group for each column; columns of one group share their decision."""
    encoder = encoder_of(model, final)
    if encoder is not None and (final.feature_groups is None or isinstance(model, Pipeline)):
        return list(encoder.feature_groups_)
    groups = feature_groups(final)
    return range(len(final.support_)) if groups is None else list(groups)


def grouped(columns: tuple[Feature, ...], groups: Sequence[object]) -> tuple[Feature, ...]:
    """One `Feature` for each group of columns: a category counts once, whatever its levels."""
    members: dict[object, list[Feature]] = {}
    for column, group in zip(columns, groups, strict=True):
        members.setdefault(group, []).append(column)
    merged = [_merged(group, together) for group, together in members.items()]
    labels = unique_labels(feature.label for feature in merged)
    return tuple(replace(f, label=label) for f, label in zip(merged, labels, strict=True))


def _merged(group: object, columns: list[Feature]) -> Feature:
    """The column with the strongest evidence against it stands for all of them."""
    if len(columns) == 1:
        (only,) = columns
        # A category of two levels is one column, and still goes by its own name.
        named = only.name.startswith(f"{group}=")
        return replace(only, name=str(group), label=str(group)) if named else only
    worst = min(columns, key=lambda c: float(np.nan_to_num(c.p_value, nan=1.0)))
    name = group if isinstance(group, str) else _common_name(columns)
    gate = min(c.gate for c in columns)
    used = any(c.used for c in columns)
    stability = _largest(c.stability for c in columns)
    return replace(
        worst,
        name=brief(name, LONGEST_NAME),
        label=brief(name, LONGEST_LABEL),
        n_columns=len(columns),
        used=used,
        gate=gate,
        decision=_decision(used, gate, stability),
        margin=_largest(c.margin for c in columns),
        price=_largest(c.price for c in columns),
        regret=_largest(c.regret for c in columns),
        stability=stability,
        assumed=any(c.assumed for c in columns),
        asked=any(c.asked for c in columns),
    )


def _largest(values: Iterable[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return max(known, default=np.nan)


def _common_name(columns: list[Feature]) -> str:
    """Return what the names share before a separator: ``sky`` of ``sky=grey`` and ``sky=blue``."""
    names = [c.name for c in columns]
    for separator in "=:_":
        heads = {name.rpartition(separator)[0] for name in names}
        if len(heads) == 1 and "" not in heads:
            return heads.pop()
    return f"{names[0]} and {len(names) - 1} more"
