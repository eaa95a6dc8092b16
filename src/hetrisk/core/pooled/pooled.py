"""The default search: evidence pooled over many partitions, without anything to tune.

Each round measures every feature still in play on a sample of the rows
(`hetrisk.core.pooled.evidence`): whether it stands in for a curve, whether it is a consequence
of the target, and how its slope changes between the environments of its own probes
(`hetrisk.core.pooled.probes`). A feature leaves

* as a *stand-in*, when a flexible model has no use for it, the linear model leans on it (or it
  plainly follows the others' prediction in two ways), and its slope differs between environments:
  it works only while the features keep their joint distribution;
* as a *shifting consequence*, when it is an effect of the target whose mechanism is not the same
  everywhere: P(target given feature) then differs between environments;
* as a *consequence of a label* that repeats the label better than any other feature tells it: an
  effect of a label that flips more often here than there leaves no trace in a pooled table, so
  its mechanism cannot be tested, and the other features are the safe choice.

What is left when nothing more leaves is the answer. Every test is valid under one homogeneous
population, whatever its mean and noise, so homogeneous data are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, Rows, RowSource
from hetrisk.core.pooled.conclusion import conclude
from hetrisk.core.pooled.evidence import (
    FORK,
    NO_FORK,
    Change,
    Consequences,
    Redundancy,
    consequences,
    explained_share,
    forks,
    mean_log_likelihood,
    one_against_rest,
    redundancy,
    slope_change,
    squared_correlation,
    two_sided,
)
from hetrisk.core.pooled.mechanism import false_discovery
from hetrisk.core.pooled.probes import Probe, fit_probes
from hetrisk.core.pooled.terms import Term, choose_terms, restricted
from hetrisk.core.pooled.trail import OF_A_LABEL, SHIFTING, STAND_IN, Finding, Trail
from hetrisk.core.result import Discovery, SearchSettings

SAMPLE_ROWS = 10_000  # rows the search looks at
DISCOVERY_RATE = 0.05  # of consequences left out though their mechanism is the same everywhere
CHANGE = 1e-4  # p-value at which the slope of a stand-in differs between environments
UNSTABLE_INDEX = 0.4  # and how much it must differ, relative to its mean
CAUSES = 2  # recognised causes of a label that make any stronger consequence of it suspect
DOMINANCE = 2.0  # without them it must say this many times as much about the label
OTHERS_EXPLAIN = 0.1  # share of what all features explain that those which are no effects must
FEWEST = 30  # rows below which nothing is searched for


@dataclass(frozen=True)
class Measured:
    """What one round measured about the m features in play, for one target.

    Attributes
    ----------
    terms : of the flexible mean.
    redundancy, consequences : how the features are used, and which are effects of the target.
    fork : (m,) robust z that a feature follows what the others predict with two slopes; NaN where
        that cannot be told.
    probes : per kind of probe (two slopes, two spreads), one a probed feature.
    raw, excess : per kind, how slopes change between the environments of a feature's own probe:
        in the linear model, and in the flexible one (what a curve cannot explain).
    probed : features whose slopes were compared.
    said : (m,) squared correlation with the target.
    expendable : (m,) effects of a label that its causes can replace.
    log_likelihood : mean over rows, of the linear fit.
    """

    terms: tuple[Term, ...]
    redundancy: Redundancy
    consequences: Consequences
    fork: FloatArray
    probes: tuple[list[Probe], ...]
    raw: tuple[Change, ...]
    excess: tuple[Change, ...]
    probed: IntArray
    said: FloatArray
    expendable: BoolArray
    log_likelihood: float

    @property
    def change_p_value(self) -> FloatArray:
        """(m,) that the slope of a feature is the same in all environments of its probes."""
        return _bonferroni([two_sided(change.z) for change in self.raw])

    @property
    def excess_p_value(self) -> FloatArray:
        """(m,) the same, once curves are allowed for."""
        return _bonferroni([two_sided(change.z) for change in self.excess])

    @property
    def index(self) -> FloatArray:
        """(m,) largest instability over the probes."""
        largest: FloatArray = np.max([change.index for change in self.raw], axis=0)
        return largest

    @property
    def index_error(self) -> FloatArray:
        """(m,) standard error of the largest instability."""
        which = np.argmax([change.index for change in self.raw], axis=0)
        error: FloatArray = np.choose(which, [change.error for change in self.raw])
        return error

    @property
    def p_value(self) -> FloatArray:
        """(m,) of the evidence against each feature, by the route that applies to it.

        A consequence is judged by its mechanism alone: what it says of the target bends when its
        noise is not normal, so its slope changes between probes in one population as well.
        """
        p = np.where(self.consequences.is_effect, self.consequences.mechanism, self.excess_p_value)
        p = np.where(self.is_stand_in, self.change_p_value, p)
        bounded: FloatArray = np.minimum(p, 1.0)
        return bounded

    @property
    def is_stand_in(self) -> BoolArray:
        """(m,) of no use to the flexible model; the linear one leans on it, or it forks plainly."""
        leaning = self.redundancy.stand_in & ~(self.fork < NO_FORK)
        stand_in: BoolArray = leaning | (~self.redundancy.needed & (self.fork > FORK))
        return stand_in

    @property
    def stand_ins(self) -> BoolArray:
        """(m,) stand-ins whose slope changes."""
        unstable = (self.change_p_value < CHANGE) & (self.index > UNSTABLE_INDEX)
        leaving: BoolArray = self.is_stand_in & unstable
        return leaving

    @property
    def shifting(self) -> BoolArray:
        """(m,) consequences whose mechanism changes, at a false discovery rate."""
        effects = np.flatnonzero(self.consequences.is_effect)
        leaving = np.zeros_like(self.consequences.is_effect)
        leaving[effects] = false_discovery(self.consequences.mechanism[effects], DISCOVERY_RATE)
        return leaving


def discover(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> Discovery:
    """Search standardised rows for features whose role changes between hidden environments."""
    sample = _shuffled(rows.sample(SAMPLE_ROWS, settings.seed), settings.seed)
    trail = Trail.start(sample)
    if len(sample) >= max(FEWEST, 3 * sample.X.shape[1]):
        for number in range(1, settings.max_rounds + 1):
            trail = _round(trail, sample, family, groups, number)
            settings.verbose(trail.message)
            if not trail.going:
                break
    return conclude(trail, rows, sample, family, groups, settings)


def _shuffled(sample: Rows, seed: int) -> Rows:
    """Rows in random order: terms and probes look at the first few thousand of them only."""
    order = np.random.default_rng(seed).permutation(len(sample))
    return Rows(sample.X[order], sample.y[order], sample.weight[order])


def _targets(sample: Rows, family: Family) -> list[tuple[Rows, Family]]:
    """One target of numbers or of two labels; more labels are taken one against the rest."""
    return [(sample, family)] if family.n_outputs == 1 else one_against_rest(sample)


def _round(trail: Trail, sample: Rows, family: Family, groups: IntArray, number: int) -> Trail:
    """Measure the features in play and take out those that must leave."""
    columns = np.flatnonzero(trail.support)
    visible = replace(sample, X=np.ascontiguousarray(sample.X[:, columns]))
    found = consequences(visible, family, groups[columns])
    measured = []
    for i, (rows, one) in enumerate(_targets(visible, family)):
        known = restricted(trail.terms[i], columns) if trail.terms else None
        # A term that lost a feature left a curve unexplained: choose again.
        terms = known if known is not None and len(known) == len(trail.terms[i]) else None
        measured.append(measure(rows, one, groups[columns], found, terms, number == 1))
    return trail.after(number, columns, groups, [_finding(m) for m in measured])


def _finding(measured: Measured) -> Finding:
    """What a round says: who leaves, by which route, and the numbers behind it."""
    leaving = {STAND_IN: measured.stand_ins, SHIFTING: measured.shifting}
    if measured.stand_ins.any():
        # One stand-in at a time: of several that stand in for the same curve, each leans less.
        strength = np.minimum(np.abs(measured.redundancy.lean), np.abs(measured.redundancy.shift))
        first = np.argmax(np.where(measured.stand_ins, strength, -1.0))
        leaving[STAND_IN] = np.arange(len(strength)) == first
    leaving[OF_A_LABEL] = measured.expendable & ~measured.shifting
    return Finding(
        terms=measured.terms,
        leaving=leaving,
        suspect=measured.is_stand_in | measured.consequences.is_effect,
        probed=measured.probed,
        index=measured.index,
        index_error=measured.index_error,
        p_value=measured.p_value,
        probes=[probe for kind in measured.probes for probe in kind],
        log_likelihood=measured.log_likelihood,
        quantities={
            "lean": measured.redundancy.lean,
            "shift": measured.redundancy.shift,
            "needed": measured.redundancy.needed,
            "fork": measured.fork,
            "change_p_value": measured.change_p_value,
            "excess_p_value": measured.excess_p_value,
            "is_effect": measured.consequences.is_effect,
            "is_cause": measured.consequences.is_cause,
            "mechanism_p_value": measured.consequences.mechanism,
            "squared_correlation": measured.said,
        },
    )


def measure(
    rows: Rows,
    family: Family,
    groups: IntArray,
    found: Consequences,
    terms: tuple[Term, ...] | None = None,
    everything: bool = True,
) -> Measured:
    """Measure the features of these rows.

    Parameters
    ----------
    rows : sample of standardised rows.
    family : Gaussian or Bernoulli.
    groups : (m,) columns of one group share a decision.
    found : consequences of the whole target. (Given one label against the rest, features still
        depend on each other through the other labels.)
    terms : of the flexible mean, or None to choose them.
    everything : probe every feature, not only those that may leave.
    """
    m = rows.X.shape[1]
    if terms is None:
        terms = choose_terms(rows, family, groups)
    fits = redundancy(rows, family, terms)
    probed = np.arange(m) if everything else np.flatnonzero(~fits.needed | found.is_effect)
    probes, raw, excess = _changes(rows, fits, terms, groups, probed)
    said = squared_correlation(rows)
    return Measured(
        terms=terms,
        redundancy=fits,
        consequences=found,
        fork=forks(rows, fits.flexible, probes[0]),
        probes=probes,
        raw=raw,
        excess=excess,
        probed=probed,
        said=said,
        expendable=_expendable(rows, family, found, said),
        log_likelihood=mean_log_likelihood(fits.linear, rows, family),
    )


def _changes(
    rows: Rows,
    fits: Redundancy,
    terms: tuple[Term, ...],
    groups: IntArray,
    probed: IntArray,
) -> tuple[tuple[list[Probe], ...], tuple[Change, ...], tuple[Change, ...]]:
    """Probe features, compare their slopes; for stand-ins, with all other slopes set free."""
    m = rows.X.shape[1]
    probes: list[list[Probe]] = []
    raw: list[Change] = []
    excess: list[Change] = []
    sharp = probed[fits.stand_in[probed]]
    for tied in (True, False):
        kind = fit_probes(rows, fits.flexible, terms, groups, probed, tied)
        probes.append(kind)
        second = np.zeros((len(rows), m))
        for probe in kind:
            second[:, probe.feature] = probe.responsibilities(rows.X, rows.y)[:, 1]
        for fit, changes in ((fits.linear, raw), (fits.flexible, excess)):
            change = slope_change(fit, rows, probed, second[:, probed]).spread_over(probed, m)
            sharper = slope_change(fit, rows, sharp, second[:, sharp], others=True)
            changes.append(change.updated(sharper.spread_over(sharp, m), fits.stand_in))
    return tuple(probes), tuple(raw), tuple(excess)


def _expendable(rows: Rows, family: Family, found: Consequences, said: FloatArray) -> BoolArray:
    """Effects of a label that repeat it better than anything else, and can be replaced.

    The strongest effects leave, as few as possible such that each says more about the label
    (squared correlation) than any feature that stays: `DOMINANCE` times as much, or just more
    where two causes or more have been recognised. Features that are not effects must explain a
    share of what all explain.
    """
    none = np.zeros(len(found.is_effect), dtype=bool)
    if family.closed_form:
        return none
    factor = 1.0 if found.is_cause.sum() >= CAUSES else DOMINANCE
    effects = np.flatnonzero(found.is_effect)
    shortcuts = none.copy()
    for j in effects[np.argsort(-said[effects], kind="stable")]:
        shortcuts[j] = True
        if said[j] > factor * said[~shortcuts].max(initial=0.0):
            # Effects cannot vouch for each other: with nothing else to go by, all of them stay.
            enough = explained_share(rows, family, ~found.is_effect) >= OTHERS_EXPLAIN
            return shortcuts if enough else none
    return none


def _bonferroni(p_values: list[FloatArray]) -> FloatArray:
    smallest: FloatArray = np.minimum(len(p_values) * np.min(p_values, axis=0), 1.0)
    return smallest
