"""From what a search found to its result: the same account of costs, whoever searched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.mixture.mixture import MixtureParameters
from hetrisk.core.numerics.cells import FOLDS, Assignment, CellMoments, cell_moments
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.floors import TINY
from hetrisk.core.numerics.glm import fit_glm
from hetrisk.core.numerics.partition import Partition
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.reach.brier import BrierScores
from hetrisk.core.reach.column_prices import column_prices
from hetrisk.core.reach.columns import take_back_path
from hetrisk.core.reach.curve import Line, model_line, reach_curve
from hetrisk.core.reach.heterogeneity import environments_of
from hetrisk.core.reach.regret import Environments, fit_set, shown_by_chance, sparing
from hetrisk.core.reach.resampling import RESAMPLES, resample_sets
from hetrisk.core.reach.set_errors import evaluate_path
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
    # One environment has nothing to resample: what leaves there leaves by assumption.
    acts = findings.verdict == INVARIANT and findings.partition.n_environments > 1
    # Folds are there to be resampled: where nothing is done, one will do.
    cells = cell_moments(rows, family, SoftAssignment(findings.partition), FOLDS if acts else 1)
    # Environments made from y show regret by chance alone, which ``null`` says how much.
    environments = _environments(cells, family, findings.support, null)
    path = take_back_path(environments, settings.reach, groups, findings.support)
    tried = _resampled(cells, environments, path, settings.reach) if acts else _untried(path)
    drawn = _curve(rows, family, settings, findings, environments, path, tried.lines)
    n_environments = findings.partition.n_environments
    return SearchResult(
        support=findings.support,
        gates=findings.gates,
        partition=findings.partition,
        environment_names=tuple(str(k + 1) for k in range(n_environments)),
        evidence=_evidence(environments, findings, groups, settings.reach),
        sources=findings.sources,
        curve=drawn,
        stability=tried.stability,
        n_resamples=tried.n_resamples,
        agreement=tried.agreement,
        leave_one_out=(),
        verdict=findings.verdict,
        reason=findings.reason,
        history=findings.history or (step(findings.support, n_environments, drawn, settings),),
        coef=findings.coef,
        intercept=findings.intercept,
    )


def _environments(
    cells: CellMoments, family: Family, support: BoolArray, null: tuple[Environments, ...]
) -> Environments:
    environments = environments_of(cells, family.n_targets)
    environments = replace(environments, null=null, sorted_by_noise=True)
    if not null:
        return environments
    return sparing(environments, [np.ones(environments.n_columns, dtype=bool), support])


@dataclass(frozen=True)
class _Tried:
    """How a set of columns does on resampled rows; see `SearchResult` and `reach_curve`."""

    lines: tuple[Line, Line] | None
    stability: FloatArray
    agreement: float
    n_resamples: int


def _resampled(
    cells: CellMoments, environments: Environments, path: BoolArray, reach: float
) -> _Tried:
    """The first set of the path against the last, that of all columns."""
    resampled, full = resample_sets([cells], environments, path, path[:0], reach), len(path) - 1
    # Environments made from y show regret by chance in resamples as they do on all rows.
    chance = np.array([shown_by_chance(environments, columns) for columns in path])
    resampled = replace(resampled, errors=resampled.errors.less(chance))
    return _Tried(
        resampled.lines(0, full),
        resampled.stability(resampled.errors.costs.removed(full) >= 0.0),
        resampled.agreement(0, full),
        RESAMPLES,
    )


def _untried(path: BoolArray) -> _Tried:
    return _Tried(None, np.zeros(path.shape[1]), 1.0, 0)


def _curve(
    rows: RowSource,
    family: Family,
    settings: SearchSettings,
    findings: Findings,
    environments: Environments,
    path: BoolArray,
    lines: tuple[Line, Line] | None,
) -> ReachCurve:
    """The reach curve of least squares on the support."""
    coef = fit_set(environments, findings.support).coef[0]
    model = model_line(environments, coef, findings.support)
    return reach_curve(
        environments,
        model,
        settings.reach,
        path,
        evaluate_path(environments, path).costs,
        lines,
        error_unit(family),
        _start(rows, family, findings),
    )


def _evidence(
    environments: Environments, findings: Findings, groups: IntArray, reach: float
) -> Evidence:
    """What decided about each column, and what that is worth."""
    d = environments.n_columns
    prices = column_prices(environments, findings.support, groups, reach)
    return Evidence(
        prices.margin,
        prices.price,
        prices.regret,
        np.ones(d) if findings.p_value is None else findings.p_value,
        np.zeros(d, dtype=bool) if findings.assumed is None else findings.assumed,
        findings.reasons,
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
    support: BoolArray, n_environments: int, drawn: ReachCurve, settings: SearchSettings
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
