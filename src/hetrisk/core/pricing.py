"""From what a search found to its result: the same account of costs, whoever searched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.cells import FOLDS, Assignment, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows, RowSource
from hetrisk.core.reach.brier import BrierScores
from hetrisk.core.reach.columns import take_back_path
from hetrisk.core.reach.curve import model_line, reach_curve
from hetrisk.core.reach.heterogeneity import environments_of
from hetrisk.core.reach.prices import column_prices
from hetrisk.core.reach.regret import Environments, fit_set, sparing
from hetrisk.core.reach.resampling import RESAMPLES, resample_sets
from hetrisk.core.reach.set_errors import evaluate_path
from hetrisk.core.reach.sweep import Costs
from hetrisk.core.result import (
    BRIER,
    INVARIANT,
    RMSE,
    Evidence,
    Findings,
    HistoryRecord,
    ReachCurve,
    SearchResult,
    SearchSettings,
)
from hetrisk.core.thresholds import THRESHOLDS


def error_unit(family: Family) -> str:
    """What the errors of a reach curve are."""
    return RMSE if family.has_variance else BRIER


@dataclass(frozen=True)
class SoftAssignment(Assignment):
    """A partition that places rows by what they are, as an assignment."""

    partition: Partition

    @property
    def n_environments(self) -> int:
        """Number of environments."""
        return self.partition.n_environments

    def codes(self, rows: Rows) -> IntArray:
        """(n,) the most probable environment."""
        codes: IntArray = self.partition.of_rows(rows).argmax(axis=1)
        return codes

    def shares(self, rows: Rows) -> FloatArray:
        """(n, K) responsibilities."""
        return self.partition.of_rows(rows)


def priced(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    findings: Findings,
    null: tuple[Environments, ...] = (),
) -> SearchResult:
    """Price what a search found, in the environments that it found.

    ``null`` are the same environments made from targets of one population.
    """
    acts = findings.verdict == INVARIANT
    cells = cell_moments(rows, family, SoftAssignment(findings.partition), FOLDS if acts else 1)
    environments = replace(environments_of(cells, family.n_targets), null=null)
    d, reach = environments.n_columns, settings.reach
    if null:
        environments = sparing(environments, [np.ones(d, dtype=bool), findings.support])
    coef = fit_set(environments, findings.support).coef[0]
    path = take_back_path(environments, reach, groups, findings.support)
    lines, stability, agreement = None, np.zeros(d), 1.0
    if acts:
        resampled, full = resample_sets([cells], environments, path, path[:0], reach), len(path) - 1
        lines, stability = resampled.lines(0, full), resampled.stability(full, 0.0)
        agreement = resampled.agreement(0, full)
    model = model_line(environments, coef, findings.support)
    start = _start(rows, family, findings)
    found = evaluate_path(environments, path)
    costs = Costs(found.risk, found.worst)
    drawn = reach_curve(environments, model, reach, path, costs, lines, error_unit(family), start)
    prices = column_prices(environments, findings.support, groups, reach)
    return SearchResult(
        support=findings.support,
        gates=findings.gates,
        partition=findings.partition,
        environment_names=tuple(str(k + 1) for k in range(findings.partition.n_environments)),
        evidence=Evidence(
            prices.margin,
            prices.price,
            prices.regret,
            np.ones(d) if findings.p_value is None else findings.p_value,
            np.zeros(d, dtype=bool) if findings.assumed is None else findings.assumed,
            findings.reasons,
        ),
        sources=findings.sources,
        curve=drawn,
        stability=stability,
        n_resamples=RESAMPLES if acts else 0,
        agreement=agreement,
        leave_one_out=(),
        verdict=findings.verdict,
        reason=findings.reason,
        history=findings.history
        or (step(findings.support, findings.partition.n_environments, drawn, settings),),
        coef=findings.coef,
        intercept=findings.intercept,
    )


def _start(rows: RowSource, family: Family, findings: Findings) -> tuple[float, float] | None:
    """For labels: squared errors of the model and of plain ERM, measured out of fold."""
    scores = BrierScores.of(rows, family)
    if scores is None:
        return None
    plain = scores.columns(np.ones_like(findings.support))
    if findings.coef is not None and findings.intercept is not None:
        return scores.given(findings.coef, findings.intercept), plain
    return plain if findings.support.all() else scores.columns(findings.support), plain


def plain_result(
    rows: RowSource,
    family: Family,
    groups: IntArray,
    settings: SearchSettings,
    verdict: str,
    reason: str,
) -> SearchResult:
    """Plain ERM on all columns, in one environment."""
    d = rows.n_features
    full = np.ones(d, dtype=bool)
    findings = Findings(
        support=full,
        gates=full.astype(np.float64),
        partition=one_environment(rows, family),
        verdict=verdict,
        reason=reason,
        reasons=("Kept: nothing speaks against it.",) * d,
        history=(),
    )
    return priced(rows, family, groups, settings, findings)


def one_environment(rows: RowSource, family: Family) -> MixtureParameters:
    """All rows as one environment, whatever environments they carry."""
    fit = fit_glm(rows, family)
    coef, intercept = fit.coef[None], fit.intercept[None]
    if family.n_outputs == 1:
        coef, intercept = coef[:, 0], intercept[:, 0]
    return MixtureParameters(np.ones(1), coef, intercept, np.ones(1), family)


def step(
    support: np.ndarray, n_environments: int, drawn: ReachCurve, settings: SearchSettings
) -> HistoryRecord:
    """The one step of a search that decides at once."""
    at = int(np.searchsorted(drawn.reach, settings.reach))
    return HistoryRecord(
        round=1,
        n_environments=n_environments,
        score=float(drawn.error[at] / max(drawn.error_erm[at], TINY)),
        score_name="expected error at the reach, relative to plain ERM",
        support=tuple(bool(s) for s in support),
        chosen=True,
    )


def too_few(rows: RowSource) -> str:
    """Why nothing was looked for."""
    needed = THRESHOLDS.rows_needed(rows.n_features)
    return (
        f"Not searched: {rows.n_rows} rows are too few for {rows.n_features} columns; at least "
        f"{needed} are needed. The model is plain ERM on all columns."
    )
