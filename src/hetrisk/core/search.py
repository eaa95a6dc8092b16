"""The default search: sources propose partitions, regret decides, the result says the verdict.

Environments that the user names are used as they are, and no others are looked for. Hints are
tested with a correction for how many there are; those along which something changes beyond chance
are used together. With neither, or where no hint speaks, the rows themselves are asked.

Where it is decided that a column leaves: with environments given, in `hetrisk.core.reach.decision`;
without, by the questions of `hetrisk.core.sources.questions`, of whose answer
`hetrisk.core.inferred` keeps what it would not pay to leave out.
"""

from __future__ import annotations

from dataclasses import replace

from hetrisk.core.given import decide_given
from hetrisk.core.inferred import search_inferred
from hetrisk.core.numerics.families import Family
from hetrisk.core.numerics.rows import IntArray, RowSource
from hetrisk.core.pricing import plain_result, too_few
from hetrisk.core.reach.forms import FORMS
from hetrisk.core.result import HOMOGENEOUS, UNSEARCHED, SearchResult, SearchSettings
from hetrisk.core.sources.tested import source_records, test_sources
from hetrisk.core.thresholds import THRESHOLDS

NO_SHIFT = "At reach 0 nothing is to shift: the model is plain ERM on all columns."
NO_DIRECTIONS = (
    "Directions are shrunk between environments that are named, or hinted and seen to differ; "
    "without them it is asked which columns are to leave."
)
ONE_ENVIRONMENT = (
    "Not searched: all environments but one hold too few rows for a regression on these columns. "
    "The model is plain ERM on all columns."
)


def discover(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> SearchResult:
    """Search standardised rows for relations that differ between environments."""
    found = _found(rows, family, groups, settings)
    for source in found.sources:
        settings.verbose(source.sentence)
    settings.verbose(f"{found.verdict}: {found.reason}")
    return found


def _found(
    rows: RowSource, family: Family, groups: IntArray, settings: SearchSettings
) -> SearchResult:
    """Given environments first, then hints; the rows themselves where neither decides."""
    if rows.n_rows < THRESHOLDS.rows_needed(rows.n_features):
        return plain_result(rows, family, groups, settings, UNSEARCHED, too_few(rows))
    level = _level(settings)
    tested = test_sources(rows, family, groups, settings, level)
    used = [t for t in tested if t.used]
    if used:
        return decide_given(rows, family, groups, settings, tested, used)
    named = settings.environments is not None
    if named and len(tested[0].found.environments.rows) > 1:
        return decide_given(rows, family, groups, settings, tested, tested[:1])
    if named:
        found = plain_result(rows, family, groups, settings, UNSEARCHED, ONE_ENVIRONMENT)
    elif settings.reach == 0:
        found = plain_result(rows, family, groups, settings, HOMOGENEOUS, NO_SHIFT)
    else:
        # Where no hint speaks the questions follow: all chances to be wrong share the level. Hints
        # have had one, and where columns leave as much again for effects of the target.
        times = 2.0 if FORMS[settings.form].leaves_columns else 1.0
        spent = times * level if settings.hints else 0.0
        left = THRESHOLDS.alpha - spent
        found = search_inferred(rows, family, groups, settings, left)
        if not FORMS[settings.form].leaves_columns:
            found = replace(found, reason=f"{found.reason} {NO_DIRECTIONS}")
    return replace(found, sources=(*source_records(tested, settings), *found.sources))


def _level(settings: SearchSettings) -> float:
    """Level at which environments that rows carry are said to differ."""
    if FORMS[settings.form].leaves_columns:
        return THRESHOLDS.sure
    # Directions use of a difference only what stands out of its noise: they need no more certainty
    # than any test. Where hints are silent the questions have the other half.
    both = bool(settings.hints) and settings.environments is None
    return THRESHOLDS.alpha / 2 if both else THRESHOLDS.alpha
