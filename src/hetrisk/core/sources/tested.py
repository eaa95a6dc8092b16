"""Sources of environments that rows carry, tested: do environments differ along them?

A source differs if one of its partitions does, with a correction for how many it has; of those
that do the one with the most regret is heard first. Over the sources, p-values are corrected by
Holm's rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.multiplicity import holm, normal_score
from hetrisk.core.numerics.rows import BoolArray, FloatArray, IntArray, RowSource
from hetrisk.core.reach.effects import effect_p_values
from hetrisk.core.reach.forms import FORMS
from hetrisk.core.reach.heterogeneity import Heterogeneity, heterogeneity, one_noise
from hetrisk.core.result import SearchSettings, SourceRecord
from hetrisk.core.sources.hinted import hinted
from hetrisk.core.sources.named import named
from hetrisk.core.sources.proposal import HINTED, Proposal
from hetrisk.core.thresholds import THRESHOLDS


@dataclass(frozen=True, eq=False)
class TestedSource:
    """A source and the partition of it that is to decide.

    ``p_value`` is that of one regression, ``effects`` (d,) those of one mechanism for each effect
    of the target (one for other columns), ``noise`` that of noise of one size; all are corrected
    for the number of sources, the first for that of partitions as well, and held against ``level``.
    ``others`` are further partitions that surely differ, to be heard where this one leaves nothing
    out.
    """

    proposal: Proposal
    found: Heterogeneity
    p_value: float
    effects: FloatArray
    noise: float
    level: float
    others: tuple[TestedSource, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the environments have regressions of their own."""
        return self.p_value < self.level

    @property
    def shifting(self) -> BoolArray:
        """(d,) effects of the target whose mechanism differs between the environments."""
        shifting: BoolArray = self.effects < self.level
        return shifting

    @property
    def used(self) -> bool:
        """Whether it takes part in the decision by itself."""
        return self.differs or bool(self.shifting.any())

    @property
    def noisy(self) -> bool:
        """Whether the environments differ in the size of their noise."""
        return self.noise < self.level


def test_sources(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings, level: float
) -> list[TestedSource]:
    """Test every source: the surest of its partitions, corrected for their number (Bonferroni)
    and, over the sources, by Holm's step-down rule; all of them together at ``level``. Other
    partitions of a source, if they are to decide, have to differ surely by themselves.

    Effects of the target have as much again, and so has the noise, where columns leave: either is a
    reason to leave some out, and to shrink no direction.
    """
    proposals = [hinted(rows, family, groups, column) for column in settings.hints]
    if settings.environments is not None:
        proposals.insert(0, named(rows, family, groups, settings.environments, settings.cells))
    asked: list[tuple[list[Proposal], list[Heterogeneity], FloatArray]] = []
    for several in proposals:
        found = [heterogeneity(p.merged.cells, family.n_targets) for p in several]
        if found:
            # Bonferroni within a source: its partitions (six intervals, two halves) are looks at
            # the same column, and one of them decides.
            each = np.minimum(len(found) * np.array([f.p_value for f in found]), 1.0)
            asked.append((several, found, each))
    corrected = holm(np.array([float(each.min()) for _, _, each in asked]))
    tested = []
    for (several, found, each), least in zip(asked, corrected, strict=True):
        p_values = np.minimum(len(asked) * each, 1.0)
        p_values[np.argmin(each)] = least
        telling = [
            TestedSource(
                several[i],
                found[i],
                float(p_values[i]),
                *_further(several[i], family, groups, settings, len(asked)),
                level,
            )
            for i in _telling(several, found, p_values, level)
        ]
        tested.append(replace(telling[0], others=tuple(telling[1:])))
    return tested


def _telling(
    several: list[Proposal], found: list[Heterogeneity], p_values: FloatArray, level: float
) -> list[int]:
    """Numbers of the partitions that surely differ, most regret first; else of the surest one.

    Of coarse ones then: where nothing differs, what is shown is known as well as may be.
    """
    sure = [i for i in range(len(found)) if p_values[i] < level]
    if sure:
        return sorted(sure, key=lambda i: -found[i].regret)
    return [min(range(len(found)), key=lambda i: (several[i].merged.fine, p_values[i]))]


def _further(
    proposal: Proposal, family: Family, groups: IntArray, settings: SearchSettings, n_sources: int
) -> tuple[FloatArray, float]:
    """P-values of one mechanism of each effect (d,) and of one noise, corrected for the sources."""
    if not FORMS[settings.form].leaves_columns:
        return np.ones(len(groups)), 1.0
    effects = effect_p_values(proposal.merged.cells, proposal.levels, family.n_targets, groups)
    noise = one_noise(proposal.merged.cells, family.n_targets).p_value
    return np.minimum(n_sources * effects, 1.0), min(n_sources * noise, 1.0)


def source_records(
    tested: list[TestedSource],
    settings: SearchSettings,
    blamed: IntArray | None = None,
    used: Sequence[TestedSource] = (),
) -> tuple[SourceRecord, ...]:
    """What every source showed, and the hints that nothing could be asked of.

    ``blamed`` are the columns that left in the environments of the sources ``used``, if some did,
    the one that takes most of the regret away first.
    """
    asked = {t.proposal.source for t in tested}
    silent = [column.name for column in settings.hints if column.name not in asked]
    return (
        *(_record(t, settings, blamed if t in used else None) for t in tested),
        *(_silent_record(name) for name in silent),
    )


def _silent_record(name: str) -> SourceRecord:
    sentence = f"{name}: no two groups of rows to compare; it has no effect."
    return SourceRecord(name, HINTED, 1, 1.0, normal_score(1.0), None, False, sentence)


def _record(
    tested: TestedSource, settings: SearchSettings, blamed: IntArray | None
) -> SourceRecord:
    """What a source showed; ``blamed`` are columns that left in its environments, if some did.

    It speaks most against the one of them whose coefficient differs most surely; without any, of
    all columns: beside a shortcut that moves the coefficients of the causes move, too, and may do
    so more surely.
    """
    column = _most_about(tested)
    if blamed is not None:
        column = int(blamed[np.argmin(tested.found.column_p_values[blamed])])
    count, proposal = len(tested.found.environments.rows), tested.proposal
    p_value, used = tested.p_value, tested.used
    if tested.differs:
        about = "no column by itself" if column is None else f"most about {settings.name(column)}"
        what = f"{count} environments differ beyond chance, {about}"
    elif tested.used:
        p_value, column = float(tested.effects.min()), int(np.argmin(tested.effects))
        what = (
            f"{settings.name(column)}, an effect of the target, follows from it in another way in "
            f"some of {count} environments"
        )
    elif tested.noisy and blamed is not None:
        p_value, used = tested.noise, True
        what = f"{count} environments differ in the size of their noise"
    elif count < 2:
        what = "one environment, nothing to compare"
    else:
        changes = f"nothing {'but the noise ' if tested.noisy else ''}changes beyond chance"
        if tested.p_value < THRESHOLDS.alpha:
            changes = "something may change, by less than three standard errors,"
        what = f"{changes} between its {count} environments; it has no effect"
    return SourceRecord(
        proposal.source,
        proposal.kind,
        count,
        p_value,
        normal_score(p_value),
        column if used else None,
        used,
        f"{proposal.source} ({proposal.how}): {what}.",
    )


def _most_about(tested: TestedSource) -> int | None:
    """The column whose coefficient differs most surely; None where none does by itself."""
    p_values = tested.found.column_p_values
    column = int(np.argmin(p_values)) if len(p_values) else None
    if column is None or p_values[column] * len(p_values) >= THRESHOLDS.alpha:
        return None
    return column
