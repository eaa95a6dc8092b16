"""The mixture beside other libraries' work on the same rows, in the same run."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from hetrisk.bench.adapters import YARDSTICKS, Flexmix, Missing
from hetrisk.bench.clock import shortest
from hetrisk.bench.iteration import away_from, iteration_seconds, standardised
from hetrisk.bench.metric import Metric, Size
from hetrisk.bench.rows import table, true_mixture
from hetrisk.blocks import ArrayBlocks
from hetrisk.core.mixture.mixture import MixtureParameters, em
from hetrisk.core.numerics.linear import least_squares
from hetrisk.core.numerics.moments import moments
from hetrisk.core.numerics.rows import FloatArray, IntArray, Rows

FLEXMIX_ROWS, FLEXMIX_FEATURES = 20_000, 10


def yardsticks(size: Size) -> list[Metric]:
    """One EM iteration over the work of others, per row."""
    n, d = size.rows, size.features
    X, y = table(n, d)
    one = iteration_seconds(
        standardised(ArrayBlocks(X, y)), away_from(true_mixture(d)), size.repeats
    )
    metrics = []
    for adapter in YARDSTICKS:
        name = f"one EM iteration / {adapter.name}"
        try:
            note = f"{adapter.version()}; n = {n:,}, d = {d}"
            theirs = min(adapter.seconds(X, y) for _ in range(1 if size.quick else 2))
            metrics.append(Metric("others", name, one / theirs, note=note))
        except Missing as missing:
            metrics.append(Metric("others", name, math.nan, note=f"missing: {missing}"))
    return metrics


def flexmix(size: Size) -> list[Metric]:
    """The same mixture from the same start: time to converge, and likelihood reached."""
    n, d = (FLEXMIX_ROWS // 4 if size.quick else FLEXMIX_ROWS), FLEXMIX_FEATURES
    name = "mixture to convergence, hetrisk / R flexmix"
    adapter = Flexmix()
    try:
        version = adapter.version()
    except Missing as missing:
        return [Metric("others", name, math.nan, note=f"missing: {missing}")]
    X, y = table(n, d)
    start = _assignment(X, y)
    theirs = adapter.fit(X, y, start)
    source, first = ArrayBlocks(X, y), _parameters(X, y, start)
    run = partial(em, source, first, tied_variance=False, tol=1e-8)
    ours = run()
    taken = shortest({"ours": run}, size.repeats)["ours"]
    note = (
        f"n = {n:,}, d = {d}, K = 3; {version}; {theirs.iterations} iterations in "
        f"{theirs.seconds:.2f} s against {ours.n_iter} in {taken:.2f} s"
    )
    gap = (theirs.log_likelihood - n * float(ours.path[-1])) / n
    return [
        Metric("others", name, taken / theirs.seconds, bound=1.0, guarded=True, note=note),
        Metric(
            "others",
            "log likelihood a row, flexmix less hetrisk",
            gap,
            bound=1e-6,
            note="from the same start; not above 0 means as likely or more",
        ),
    ]


def _assignment(X: FloatArray, y: FloatArray) -> IntArray:
    """Return hard labels near the truth, a third of them redrawn at random."""
    random = np.random.default_rng(0)
    labels = true_mixture(X.shape[1]).responsibilities(X, y).argmax(axis=1)
    return np.where(random.random(len(y)) < 1 / 3, random.integers(3, size=len(y)), labels)


def _parameters(X: FloatArray, y: FloatArray, labels: IntArray) -> MixtureParameters:
    """Return the M-step of hard labels: where both start."""
    mixture = true_mixture(X.shape[1])
    fits = []
    for k in range(3):
        mine = labels == k
        fits.append(least_squares(moments(Rows(X[mine], y[mine], np.ones(int(mine.sum()))))))
    return replace(
        mixture,
        weights=np.bincount(labels, minlength=3) / len(labels),
        coef=np.stack([fit.coef for fit in fits]),
        intercept=np.array([fit.intercept for fit in fits]),
        variance=np.array([fit.variance for fit in fits]),
    )
