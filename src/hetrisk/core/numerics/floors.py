"""The smallest numbers arithmetic is trusted with: one home, one explanation.

None of these decides anything about data. They keep divisions and logarithms finite where the
exact answer is 0/0 or 0 log 0, and say how much of a result is rounding. Numbers that *decide*
are thresholds of a search, and stand in its settings (`hetrisk.core.numerics.thresholds`).

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
