"""Every number the default search believes in, in one place, each with where it comes from.

What only bounds the work (rows looked at, iterations, candidates scored exactly) stands where it
is used; it decides nothing. docs/thresholds.md is made from this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scipy.special import ndtr, ndtri

from hetrisk.core.numerics.dependence import DEPENDENCE_THRESHOLDS
from hetrisk.core.numerics.named_numbers import assumed, conventional, measured, threshold


@dataclass(frozen=True)
class Thresholds:
    """The statistical thresholds of the default search."""

    alpha: float = threshold(
        0.02,
        "level of all tests of one fit together; families of tests are corrected for (Holm 1979)",
        measured(
            "conventional between 0.01 and 0.05; at 0.01 less is found, at 0.02 no more is harmed "
            "(docs/research/hidden.md)"
        ),
    )
    removed: float = threshold(
        0.75,
        "least share of the regret beyond chance that leaving columns out must remove: of what "
        "leaving out as many would leave if every relation moved, between named or hinted "
        "environments; of all of it, between hidden slopes",
        measured(
            "0.5 to 0.85 harm alike on 228 splits of 76 real tables, and at 0.85 less is found in "
            "designs (docs/research/reach.md); between hidden slopes 0.78 to 1 is gone where "
            "columns are to blame, 0.14 where they only hide it behind noise "
            "(docs/research/hidden.md)"
        ),
    )
    agreement: float = threshold(
        0.8,
        "how sure a choice must be: share of resamples in which it still pays and in which each of "
        "its columns still leaves (half of them where y given the rest is one population), and "
        "one-sided level at which most of the regret is gone",
        conventional("four in five; what each of the three spares: docs/research/reach.md"),
    )
    far: float = threshold(
        3.0,
        "standard deviations beyond which noise and columns count no further, and by which named "
        "or hinted environments must differ: what is multiplied by the square of the reach has to "
        "be known to a third of itself",
        conventional("three standard deviations, one row in 370 of a normal column"),
    )
    blur: float = threshold(
        0.3,
        "standard deviation of the normal noise added to residuals of size one before two slopes "
        "are looked for: edges and ties are then alike in rows and draws",
        measured("docs/research/hidden.md, section 1"),
    )
    least_share: float = threshold(
        0.02,
        "of the rows, that either of two slopes holds; as many at the smallest or largest target "
        "make that a bound",
        measured("0.015 finds the same; counts and censored targets: docs/research/hidden.md"),
    )
    noise_block: int = threshold(
        100,
        "rows of similar mean whose noise has one shape",
        conventional("about as few as show a shape"),
    )
    misfit: float = threshold(
        0.02,
        "of the fitted population, in roots of mean log likelihood, added to the spread of a score",
        measured(
            "bent means that no term draws exactly (sines, log-normal products) gain up to 0.0094 "
            "in mean log likelihood beyond the draws (docs/research/hidden.md)"
        ),
    )
    proxy_share: float = threshold(
        0.2,
        "of its linear coefficient, that a proxy keeps in the flexible model at most",
        measured("docs/research/pooled.md"),
    )
    copy_share: float = threshold(
        0.5,
        "of what all columns explain of a label, that those which are no effects must explain for"
        " a copy to leave",
        assumed("nothing in the rows can show it"),
    )
    copy_rise: float = threshold(
        2.5,
        "factor by which the deviance may rise when copies leave",
        assumed("nothing in the rows can show it"),
    )
    fewest_rows: int = threshold(
        5,
        "rows a column, of eight columns at least, below which nothing is searched for",
        conventional("five to ten rows a coefficient"),
    )

    @property
    def score(self) -> float:
        """Normal score of a single test at the level, two sided."""
        return float(ndtri(1.0 - self.alpha / 2.0))

    @property
    def sure(self) -> float:
        """Level, two sided, at which environments that rows carry differ; a part of ``alpha``."""
        return float(2.0 * ndtr(-self.far))

    @property
    def certain(self) -> float:
        """Normal score at which something is taken to be so, as a dependence between columns is."""
        return DEPENDENCE_THRESHOLDS.certain

    def rows_needed(self, n_columns: int) -> int:
        """Rows below which nothing is searched for."""
        return self.fewest_rows * max(n_columns, 8)


THRESHOLDS: Final = Thresholds()
