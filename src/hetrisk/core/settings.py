"""Every number the default search believes in, in one place, each with where it comes from.

What only bounds the work (rows looked at, iterations, candidates scored exactly) stands where it
is used; it decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """The statistical thresholds of the default search.

    Attributes
    ----------
    alpha : level of all tests together, each question its share, each family of tests within a
        question corrected (Holm 1979). Conventional.
    draws : targets of one population that a score is set against. Derived: with 20 the score's t
        distribution has 19 degrees of freedom, which costs 0.3 at level 0.01 against a known
        spread.
    term_margin : how far a term of the flexible mean must be above ``sqrt(2 log P)``, the expected
        maximum of P scores. Derived: the maximum exceeds it by 1 with probability below 0.01
        for a thousand candidates and more.
    scale_score : robust score at which the size of the noise follows a column. Conventional (two
        sided 0.01).
    noise_block : rows of similar mean whose noise has one shape. Measured: 50 to 200 make no
        difference to power or level (docs/research/hidden.md).
    misfit : of the fitted population, in roots of mean log likelihood, added to the spread of a
        score. Measured: bent means that no term draws exactly (sines, log-normal products) gain
        up to 0.04 beyond the draws (docs/research/hidden.md).
    needed_score : robust score at which the flexible model needs a column, twice that for a curve
        of its own. Measured on the first simulations (docs/research/pooled.md).
    proxy_share : of its linear coefficient, that a proxy keeps in the flexible model at most.
        Measured (docs/research/pooled.md).
    dependent : p-value at which a column depends on others. Conventional for a screening that
        every column goes through.
    independent : p-value above which it does not, once the target is known. Conventional.
    dependence_left : or the part of the dependence that may be left then, in tables so large that
        nothing is independent. Measured (docs/research/pooled.md).
    copy_dominance : times as much that a copy of a label says about it as any column that stays,
        where fewer than two causes are recognised. An assumption, as the rule is.
    copy_share : of what all columns explain of a label, that those which are no effects must
        explain for a copy to leave. An assumption.
    copy_rise : factor by which the deviance may rise when copies leave. An assumption.
    fewest_rows : a column, below which nothing is searched for. Conventional.
    """

    alpha: float = 0.05
    draws: int = 20
    term_margin: float = 1.0
    scale_score: float = 2.5
    noise_block: int = 100
    misfit: float = 0.02
    needed_score: float = 4.0
    proxy_share: float = 0.2
    dependent: float = 1e-6
    independent: float = 1e-3
    dependence_left: float = 0.05
    copy_dominance: float = 2.0
    copy_share: float = 0.1
    copy_rise: float = 10.0
    fewest_rows: int = 5
