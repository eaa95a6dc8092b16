"""The smallest numbers arithmetic is trusted with: one home, one explanation.

None of these decides anything about data. They keep divisions and logarithms finite where the
exact answer is 0/0 or 0 log 0, and say how much of a result is rounding. Numbers that *decide*
stand where they decide (`hetrisk.core.numerics.named_numbers`).

Standardised columns are of order one, and double precision holds about 16 digits. Of these,
sums of squares over many rows lose three or four: what differs by less than `ROUNDING`, in
relative terms, is equal. Solving a linear system loses as many digits as its condition number
has: a pivot below `SINGULAR` leaves fewer than six good ones.
"""

TINY = 1e-300
"""In place of zero under a fraction or a logarithm: positive, and smaller than any datum."""

TINY_ROOT = 1e-150
"""Its square root: what may be squared without underflow."""

ROUNDING = 1e-12
"""Relative difference that is arithmetic, not data."""

SINGULAR = 1e-10
"""Smallest pivot, relative to the column's own variance, that Cholesky is trusted with."""

NEARLY_SINGULAR = 1e-9
"""Eigenvalue, relative to the largest, that a pseudo-inverse leaves out; and the ridge, on unit
diagonals, that makes a singular matrix solvable."""

FLAT = 1e-8
"""Curvature a saturated probability is held at, so that one row cannot have infinite say; and
the ridge, on columns of order one, that keeps the weight of a column of zeros defined."""

EMPTY_SHARE = 1e-30
"""Share of an empty component where steps are taken in its logarithm, which stays moderate."""

RIDGE = 1e-6
"""Ridge, on columns of order one, for fits that may have fewer rows than columns, or labels that a
column separates."""

EQUAL = 1e-9
"""Relative difference of two errors, each from a system solved, that counts as none."""

EXACT = 1e-9
"""Residual variance, relative to that of the target, of a fit that is exact but for rounding."""

OWN_SHARE = 1e-3
"""Share of a column that others must leave unexplained for its coefficient to be its own."""

NOISE_SHARE = 0.01
"""Of the rows, that either part of a noise is taken to hold."""

LEAST_WEIGHT = 1e-4
"""Of the rows, that a part of a mixture is taken to hold, so that it may come back."""

TIED_VARIANCE, SHARED_VARIANCE, FREE_VARIANCE = 1e-6, 1e-4, 1e-3
"""Least variance in a mixture, relative to that of one regression; without one, the likelihood has
no maximum. With a variance for all components; two that all share; one for each, which a few rows
can pull down most easily."""

LEAST_SCALE = SHARED_VARIANCE**0.5
"""Least size of noise that follows columns, relative to its median: the root of the variance."""

START_RIDGE = 1e-3
"""Ridge for fits to hardly more rows than columns, from which EM starts."""

HALF_A_ROW = 0.5
"""A component that holds less is empty."""

MOST_LEVERAGE = 0.9
"""Weight of a row in its own fitted value that errors are corrected for, at most: at one, the row
has no residual to speak of, and its correction is 0/0."""
