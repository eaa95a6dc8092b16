"""Where a search stands from round to round: who is still in play, who left, by which route."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows
from hetrisk.core.pooled.probes import Probe
from hetrisk.core.pooled.terms import Term

STAND_IN = "stand-in"
SHIFTING = "shifting consequence"
OF_A_LABEL = "consequence of a label"


@dataclass(frozen=True)
class Finding:
    """What one round says of the m features in play, for one target.

    ``leaving`` maps a route to the features that leave by it; ``suspect`` marks the features
    any route applies to; ``probed`` the features whose slopes were compared; ``quantities`` holds
    whatever else was decided by, under its name.
    """

    terms: tuple[Term, ...]
    leaving: dict[str, BoolArray]
    suspect: BoolArray
    probed: IntArray
    index: FloatArray
    index_error: FloatArray
    p_value: FloatArray
    probes: list[Probe]
    log_likelihood: float
    quantities: dict[str, FloatArray | BoolArray] = field(default_factory=dict)

    def on_table(self, columns: IntArray, d: int) -> dict[str, list[Any]]:
        """Return the quantities as lists over the d features of the table; None where not asked."""
        lists: dict[str, list[Any]] = {}
        for name, values in self.quantities.items():
            lists[name] = [None] * d
            for j, value in zip(columns, values.tolist(), strict=True):
                lists[name][j] = value if value == value else None  # NaN is not JSON
        return lists


@dataclass(frozen=True)
class Trail:
    """Where a search stands: all arrays are over the d features of the table."""

    support: BoolArray
    varies: BoolArray
    index: FloatArray
    index_error: FloatArray
    p_value: FloatArray
    suspect: BoolArray
    route: tuple[str, ...]
    terms: tuple[tuple[Term, ...], ...] = ()
    probes: dict[int, list[Probe]] = field(default_factory=dict)
    records: tuple[dict[str, Any], ...] = ()
    going: bool = True

    @classmethod
    def start(cls, sample: Rows) -> Trail:
        """All features that vary are in play."""
        d = sample.X.shape[1]
        varies = np.ptp(sample.X, axis=0) > 0 if len(sample) else np.zeros(d, dtype=bool)
        zero = np.zeros(d)
        return cls(varies, varies, zero, zero, zero + 1, np.zeros(d, dtype=bool), ("",) * d)

    @property
    def message(self) -> str:
        """A line of progress."""
        last = self.records[-1]
        left = ", ".join(str(j) for j in last["left_out"]) or "none"
        return f"round {last['round']}: {int(self.support.sum())} features in play, left: {left}"

    def after(
        self, number: int, columns: IntArray, groups: IntArray, findings: list[Finding]
    ) -> Trail:
        """Return the trail after one more round over ``columns``, one finding a target."""
        measured = self._measured(number, columns, findings)
        route, support = self._left(columns, groups, findings)
        gone = np.flatnonzero(self.support & ~support)
        terms = tuple(tuple(_on_table(t, columns) for t in f.terms) for f in findings)
        record = {
            "round": number,
            "n_environments": 2,
            "log_likelihood": float(np.mean([f.log_likelihood for f in findings])),
            "objective": float(measured.p_value[columns].min(initial=1.0)),
            "support": support.tolist(),
            "chosen": False,
            "left_out": gone.tolist(),
            "routes": [route[j] for j in gone],
            "instability": measured.index.tolist(),
            "p_value": measured.p_value.tolist(),
            "terms": [[t.kind, *t.features] for target in terms for t in target],
            "evidence": [f.on_table(columns, len(self.support)) for f in findings],
        }
        return replace(
            measured,
            support=support,
            route=route,
            terms=terms,
            records=(*self.records, record),
            going=bool(support.any() and len(gone)),
        )

    def _measured(self, number: int, columns: IntArray, findings: list[Finding]) -> Trail:
        """Take over what was measured: the largest instability, the smallest p-value."""
        index, error, p = self.index.copy(), self.index_error.copy(), self.p_value.copy()
        suspect = self.suspect.copy()
        suspect[columns] = np.any([f.suspect for f in findings], axis=0)
        probes = {j: list(kept) for j, kept in self.probes.items()}
        for finding in findings:
            at = columns[finding.probed]
            own = finding.index[finding.probed]
            higher = own > index[at]
            index[at] = np.where(higher, own, index[at])
            error[at] = np.where(higher, finding.index_error[finding.probed], error[at])
            corrected = np.minimum(len(findings) * finding.p_value[finding.probed], 1.0)
            p[at] = np.minimum(corrected, p[at])
            for probe in finding.probes:
                whole = _probe_on_table(probe, columns, len(index))
                probes.setdefault(whole.feature, []).append(whole)
        return replace(
            self, index=index, index_error=error, p_value=p, suspect=suspect, probes=probes
        )

    def _left(
        self, columns: IntArray, groups: IntArray, findings: list[Finding]
    ) -> tuple[tuple[str, ...], BoolArray]:
        """Routes and support once those that must leave, and their groups, have left."""
        route, support = list(self.route), self.support.copy()
        for finding in findings:
            for name, leaving in finding.leaving.items():
                for j in columns[leaving]:
                    for member in np.flatnonzero((groups == groups[j]) & self.support):
                        route[member] = route[member] or name
                        support[member] = False
        return tuple(route), support


def _on_table(term: Term, columns: IntArray) -> Term:
    return replace(term, features=tuple(int(columns[k]) for k in term.features))


def _probe_on_table(probe: Probe, columns: IntArray, d: int) -> Probe:
    """Return a probe of some columns as a probe of the whole table."""
    m = len(columns)
    prediction = np.zeros(1 + d + len(probe.terms))
    prediction[0] = probe.prediction[0]
    prediction[1 + columns] = probe.prediction[1 : m + 1]
    prediction[1 + d :] = probe.prediction[m + 1 :]
    terms = tuple(_on_table(t, columns) for t in probe.terms)
    feature = int(columns[probe.feature])
    return replace(probe, feature=feature, prediction=prediction, terms=terms)
