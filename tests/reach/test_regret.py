"""Regret and what follows from it, against brute force on the rows."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk import HRMRegressor
from hetrisk.core.numerics.cells import CellMoments
from hetrisk.core.numerics.families import Multinomial
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.reach import forms, resampling
from hetrisk.core.reach.anchor import anchor_fit
from hetrisk.core.reach.columns import choose_columns, take_back_path
from hetrisk.core.reach.curve import Line, break_even
from hetrisk.core.reach.directions import choose_strength, fit_directions, significant
from hetrisk.core.reach.forms import refit_columns
from hetrisk.core.reach.heterogeneity import environments_of, heterogeneity
from hetrisk.core.reach.leave_one_out import leave_one_out
from hetrisk.core.reach.regret import combined, fit_set, gradient_shift, risk_of, sparing
from hetrisk.core.reach.resampling import halves, resamples
from hetrisk.core.reach.set_errors import evaluate_path, evaluate_sets
from hetrisk.core.reach.sweep import SweptFit
from hetrisk.core.reach.thresholds import REACH_THRESHOLDS

from .made import cells_of, table

FULL = np.ones(4, dtype=bool)


def brute_force(X, y, codes, columns):
    """Risk and regrets by least squares on the rows."""
    Z = np.column_stack([np.ones(len(y)), X[:, columns]])
    pooled = np.linalg.lstsq(Z, y, rcond=None)[0]
    risk = np.mean((y - Z @ pooled) ** 2)
    regrets = []
    for k in np.unique(codes):
        z, own = Z[codes == k], y[codes == k]
        best = np.linalg.lstsq(z, own, rcond=None)[0]
        regrets.append(np.mean((own - z @ pooled) ** 2) - np.mean((own - z @ best) ** 2))
    return risk, np.array(regrets)


@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [0, 2], []])
def test_risk_and_regret_are_those_of_the_rows(columns):
    X, y, codes = table()
    chosen = np.isin(np.arange(4), columns)
    fits = fit_set(environments_of(cells_of(X, y, codes), 1), chosen)
    risk, regrets = brute_force(X, y, codes, chosen)
    assert fits.risk == pytest.approx(risk, rel=1e-6)
    assert np.allclose(fits.regret, regrets, rtol=1e-3, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 3), st.floats(0, 5))
def test_swept_fits_equal_fits_from_scratch(seed, d, targets, reach):
    """Taking a column out of a fit, or in, is the fit on the other set."""
    X, y, codes = table(seed, d=d)
    family = None
    if targets > 1:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, targets + 1)[1:-1])).astype(float)
        family = Multinomial(max(targets, 2))
    environments = environments_of(cells_of(X, y, codes, family=family), max(targets, 1))
    columns = np.arange(d) % 2 == 0
    state = SweptFit.of(environments, columns)
    for j in range(d):
        other = columns.copy()
        other[j] = not other[j]
        change = state.without if columns[j] else state.with_more
        slow = state._leaving if columns[j] else state._coming
        wanted = fit_set(environments, other).expected(reach)
        for costs in (change([np.array([j])]), slow(np.array([j]))):
            assert costs.expected(reach)[0] == pytest.approx(wanted, rel=1e-6, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 3), st.booleans())
def test_sets_along_a_path_are_each_set_on_its_own(seed, d, targets, empty):
    """One factorisation for all of them, and for all resamples, is one fit for each."""
    X, y, codes = table(seed, d=d)
    if targets > 1:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, targets + 1)[1:-1])).astype(float)
    cells = cells_of(X, y, codes, family=Multinomial(targets) if targets > 1 else None)
    environments = environments_of(cells, targets)
    entry = np.random.default_rng(seed).integers(0, 4, d)
    path = np.array([entry <= step for step in range(-empty, 3)])
    (batch,) = resamples([cells], environments, 3)
    for some in (environments, batch):
        nested = evaluate_path(some, path)
        for i, columns in enumerate(path):
            fits = fit_set(some, columns)
            single = fits.risk, fits.noise_gap, fits.excess, fits.own, fits.mean
            for one, other in zip(nested.parts, single, strict=True):
                each = one[..., i, :] if one.ndim > nested.risk.ndim else one[..., i]
                assert np.allclose(each, other, rtol=1e-7, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 9))
def test_any_sets_side_by_side_are_each_set_on_its_own(seed, d, count):
    """In whatever order they come, and whichever hold which."""
    X, y, codes = table(seed, d=d)
    cells = cells_of(X, y, codes)
    environments = environments_of(cells, 1)
    sets = np.random.default_rng(seed).random((count, d)) < 0.6
    (batch,) = resamples([cells], environments, 3)
    for some in (environments, batch):
        found = evaluate_sets(some, sets)
        for i, columns in enumerate(sets):
            fits = fit_set(some, columns)
            assert np.allclose(found.risk[..., i], fits.risk, rtol=1e-7, atol=1e-9)
            assert np.allclose(found.regrets[..., i, :], fits.excess, rtol=1e-7, atol=1e-9)


def test_a_resample_is_its_environments_on_their_own():
    """What is computed for many at once is what each of them gives alone."""
    X, y, codes = table(flip=2.0)
    cells = cells_of(X, y, codes)
    environments = heterogeneity(cells, 1).environments
    sides = halves([cells], environments)
    pooled, directions = fit_set(sides, FULL).coef[:, 0], fit_directions(sides, 2.0)
    for i in range(len(sides.rows)):
        alone = sides.some(i)
        coef = fit_set(alone, FULL).coef[0]
        assert np.allclose(coef, pooled[i], atol=1e-10)
        assert np.allclose(fit_directions(alone, 2.0), directions[i], atol=1e-10)
        shift = gradient_shift(alone, coef)
        assert np.allclose(shift, gradient_shift(sides, pooled)[i], atol=1e-10)


def test_errors_without_an_environment_are_those_of_a_fit_to_the_other_rows():
    """All are left out side by side; the model is plain ERM on all columns, and by rows."""
    X, y, codes = table(flip=2.0, K=4)
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    refit = partial(refit_columns, rivals=FULL[None], reach=2.0)
    scores = leave_one_out(environments, refit, ("a", "b", "c", "d"))
    assert [score.label for score in scores] == ["a", "b", "c", "d"]
    Z = np.column_stack([np.ones(len(y)), X])
    for e, score in enumerate(scores):
        coef = np.linalg.lstsq(Z[codes != e], y[codes != e], rcond=None)[0]
        error = np.sqrt(np.mean((y - Z @ coef)[codes == e] ** 2))
        assert score.error_erm == pytest.approx(error, rel=1e-4)
        assert score.error == score.error_erm
        # Anchor regression by rows: what is common to an environment counts more.
        seen = np.column_stack([X, y])[codes != e]
        mean, of_row = seen.mean(axis=0), codes[codes != e]
        common = np.empty_like(seen)
        for k in np.unique(of_row):
            common[of_row == k] = seen[of_row == k].mean(axis=0) - mean
        moved = seen - mean + (np.sqrt(REACH_THRESHOLDS.anchor_gamma) - 1.0) * common
        slope = np.linalg.lstsq(moved[:, :-1], moved[:, -1], rcond=None)[0]
        residual = (y - mean[-1] - (X - mean[:-1]) @ slope)[codes == e]
        assert score.error_anchor == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-4)


def test_an_environment_without_rows_in_a_resample_shows_nothing_there():
    X, y, codes = table(flip=2.0)
    cells = cells_of(X, y, codes)
    thin = CellMoments(*(part.copy() for part in (cells.weight, cells.square, cells.gram)))
    for part in (thin.weight, thin.square, thin.gram):
        part[2, 1:] = 0.0  # all its rows are in one fold
    environments = heterogeneity(thin, 1).environments
    (batch,) = resamples([thin], environments, 20)
    absent = batch.share[:, 2] == 0.0
    assert 0 < absent.sum() < 20
    fits = fit_set(batch, FULL)
    assert np.allclose(fits.regret[absent, 2], 0.0)
    assert np.isfinite(fits.excess).all()
    assert np.allclose(batch.share.sum(axis=1), 1.0)


def test_folds_add_up_whatever_the_blocks():
    X, y, codes = table()
    whole = cells_of(X, y, codes)
    from hetrisk.core.numerics.cells import CellPass
    from hetrisk.core.numerics.families import Gaussian

    from .made import Given

    one = CellPass(Gaussian(), Given(codes, 3), 10)
    parts = [
        one(Rows(X[a:b], y[a:b], np.ones(b - a), start=a))
        for a, b in ((0, 7), (7, 150), (150, 400))
    ]
    total = parts[0] + parts[1] + parts[2]
    assert np.allclose(total.gram, whole.gram)
    assert np.array_equal(total.weight, whole.weight)


def test_chance_is_the_mean_regret_of_environments_that_do_not_differ():
    excess = []
    for seed in range(150):
        X, y, codes = table(seed, flip=0.0)
        fits = fit_set(environments_of(cells_of(X, y, codes), 1), FULL)
        excess.append((fits.regret - fits.chance).mean() / fits.chance.mean())
    assert abs(np.mean(excess)) < 4 * np.std(excess) / np.sqrt(len(excess)) + 0.02


@pytest.mark.parametrize("bent", [False, True])
def test_p_values_are_calibrated_whatever_mean_and_noise(bent):
    p = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, codes = rng.exponential(size=(600, 3)), rng.integers(0, 3, 600)
        y = X.sum(axis=1) + (X[:, 0] * X[:, 1] if bent else 0.0)
        y = y + (0.3 + X[:, 0] * bent) * rng.standard_t(4, 600)
        p.append(heterogeneity(cells_of(X - 1, y, codes), 1).p_value)
    for level in (0.01, 0.05, 0.1):
        assert np.mean(np.array(p) < level) < level + 3 * np.sqrt(level / 200)


def test_a_change_is_found_and_laid_at_the_door_of_its_column():
    X, y, codes = table(flip=2.0)
    found = heterogeneity(cells_of(X, y, codes), 1)
    assert found.p_value < 1e-6
    assert int(np.argmin(found.column_p_values)) == 3


def test_copies_of_a_shortcut_leave_together():
    rng = np.random.default_rng(0)
    n = 2000
    codes = np.arange(n) % 2
    x = rng.standard_normal((n, 2))
    y = x.sum(axis=1) + rng.standard_normal(n)
    sign = np.where(codes == 0, 1.0, -0.2)
    copies = sign[:, None] * y[:, None] + 0.5 * rng.standard_normal((n, 4))
    environments = heterogeneity(cells_of(np.column_stack([x, copies]), y, codes), 1).environments
    nothing = np.zeros(6, dtype=bool)
    chosen = choose_columns(environments, 3.0, np.arange(6), nothing)
    assert chosen.support.tolist() == [True, True, False, False, False, False]
    kept = choose_columns(environments, 3.0, np.arange(6), np.arange(6) == 5)
    assert kept.support[5]
    grouped = choose_columns(environments, 3.0, np.array([0, 0, 0, 1, 1, 1]), nothing)
    assert len(set(grouped.support[:3])) == len(set(grouped.support[3:])) == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.permutations(range(4)), st.permutations(range(3)))
def test_order_of_columns_and_names_of_environments_do_not_matter(seed, order, names):
    X, y, codes = table(seed, flip=2.0)
    nothing = np.zeros(4, dtype=bool)
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    first = choose_columns(environments, 2.0, np.arange(4), nothing).support
    moved = cells_of(X[:, list(order)], y, np.array(names)[codes])
    second = choose_columns(heterogeneity(moved, 1).environments, 2.0, np.arange(4), nothing)
    assert np.array_equal(second.support, first[list(order)])


def test_the_path_back_is_nested_and_ends_with_all_columns():
    X, y, codes = table(flip=2.0)
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    path = take_back_path(environments, 2.0, np.arange(4), np.array([True, False, False, False]))
    assert len(path) == 4
    assert all((a <= b).all() for a, b in pairwise(path))
    assert path[-1].all()


def test_leaving_out_what_moves_removes_its_regret_and_leaving_out_the_rest_does_not():
    X, y, codes = table(flip=2.0)
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    moving = int(np.argmin(heterogeneity(cells_of(X, y, codes), 1).column_p_values))
    without, other = FULL.copy(), FULL.copy()
    without[moving] = other[(moving + 1) % 4] = False
    removed = evaluate_sets(environments, np.array([FULL, without, other])).costs.removed(0)
    assert removed[0] == 0.0
    assert removed[1] > 0.8
    assert removed[2] < 0.5


def test_directions_do_not_depend_on_the_axes():
    X, y, codes = table(flip=2.0)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    plain = fit_directions(environments_of(cells_of(X, y, codes), 1), 2.0)
    turned = fit_directions(environments_of(cells_of(X @ turn, y, codes), 1), 2.0)
    assert np.allclose(turn @ turned[1:], plain[1:], atol=1e-5)


@pytest.mark.parametrize("reach", [0.0, 1.0, 3.0])
def test_directions_with_shifting_means_alone_are_anchor_regression(reach):
    """Two environments that differ by their means: the penalty is the scatter between them."""
    rng = np.random.default_rng(0)
    base, noise = rng.standard_normal((300, 3)), 0.5 * rng.standard_normal(300)
    X = np.vstack([base + 1.0, base - [1.0, 0.5, 0.0]])
    y = np.concatenate([base.sum(axis=1) + noise + 2.0, base.sum(axis=1) + noise])
    cells = cells_of(X, y, np.repeat([0, 1], 300))
    known = replace(environments_of(cells, 1), phi=np.zeros(2))  # moments without noise
    shrunk = fit_directions(known, reach)[:, 0]
    anchored = anchor_fit(cells.moments(1), 1.0 + reach**2)
    assert np.allclose(shrunk[1:], anchored.coef, atol=1e-4)
    assert shrunk[0] == pytest.approx(anchored.intercept, abs=1e-4)


def test_of_differences_between_environments_only_what_stands_out_is_used():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 12))
    y = X.sum(axis=1) + rng.standard_normal(3000)
    codes = rng.integers(0, 3, 3000)
    alike = environments_of(cells_of(X, y, codes), 1)
    left = np.linalg.norm(significant(alike).gram - alike.pooled)
    assert left < 0.3 * np.linalg.norm(alike.gram - alike.pooled)
    X[codes == 0, 0] *= 1.5
    differ = environments_of(cells_of(X, y, codes), 1)
    found = significant(differ)
    gap, clean = (e.gram[0] - e.pooled for e in (differ, found))
    assert clean[1, 1] == pytest.approx(gap[1, 1], rel=0.05)
    inside = np.ix_(range(2, 13), range(2, 13))
    assert np.linalg.norm(clean[inside]) < 0.4 * np.linalg.norm(gap[inside])


def test_an_environment_left_out_is_tried_with_directions_where_directions_are_shrunk():
    X, y, codes = table(n=900, K=4, flip=2.0)
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    scores = leave_one_out(environments, partial(fit_directions, reach=3.0), ("a", "b", "c", "d"))
    inside = codes != 3
    rest = environments_of(cells_of(X[inside], y[inside], codes[inside]), 1)
    coef = fit_directions(rest, 3.0)[:, 0]
    error = np.sqrt(np.mean((y[~inside] - coef[0] - X[~inside] @ coef[1:]) ** 2))
    assert scores[3].error == pytest.approx(error, rel=1e-3)
    X[:, -1] = (0.3 + 0.5 * codes) * y + 0.3 * X[:, -1]  # an effect, more of it here than there
    shrunk = HRMRegressor(form="directions", reach=6.0).fit(X, y, environments=codes)
    assert shrunk.verdict_ == "invariant"
    assert (shrunk.stability_ == 0.0).all()
    given = [score.error != score.error_erm for score in shrunk.leave_one_out_]
    assert all(given)


def test_directions_are_plain_where_no_strength_pays(monkeypatch):
    monkeypatch.setattr(forms, "choose_strength", lambda *given: 0.0)
    X, y, codes = table(flip=2.0)
    model = HRMRegressor(form="directions").fit(X, y, environments=codes)
    assert model.verdict_ == "homogeneous"
    assert "nothing does better than plain ERM" in model.verdict_reason_


def test_strengths_are_judged_where_a_half_lacks_an_environment():
    X, y, codes = table(n=900, flip=2.0)
    cells = cells_of(X, y, codes)
    only = np.arange(10) == 3
    some = [np.where(only, m[0], 0.0) for m in (cells.weight, cells.square)]
    gram = np.where(only[:, None, None], cells.gram[0], 0.0)
    thin = CellMoments(
        *(
            np.concatenate([s[None], m[1:]])
            for s, m in zip([*some, gram], (cells.weight, cells.square, cells.gram), strict=True)
        )
    )
    environments = heterogeneity(thin, 1).environments
    assert choose_strength([thin], environments, 2.0) >= 0.0


def test_gradient_shift_of_the_pooled_fit_is_its_regret():
    X, y, codes = table(flip=2.0)
    environments = heterogeneity(cells_of(X, y, codes), 1).environments
    fits = fit_set(environments, FULL)
    shift = gradient_shift(environments, fits.coef[0])
    # The noise is taken with the model's own risk in place of the environment's best.
    risk = risk_of(environments, fits.coef[0])[1:]
    noise = environments.noise(risk[:, None], 5)[:, 0]
    assert np.allclose(shift + noise, fits.regret, rtol=1e-6)


def test_resamples_are_the_same_each_time_and_near_the_whole():
    X, y, codes = table(n=3000)
    cells = cells_of(X, y, codes)
    environments = environments_of(cells, 1)
    (first,), (second,) = (resamples([cells], environments, 5) for _ in range(2))
    assert np.array_equal(first.pooled, second.pooled)
    assert np.abs(first.pooled.mean(axis=0) - environments.pooled).max() < 0.3


def test_environments_that_do_not_differ_show_no_mean_regret():
    shown = []
    for seed in range(20):
        environments = environments_of(cells_of(*table(seed=seed, n=900, K=6, flip=0.0)), 1)
        found = evaluate_sets(environments, FULL[None])
        shown.append(found.mean[0] / found.risk[0])
        assert evaluate_path(environments, FULL[None]).mean[0] == pytest.approx(found.mean[0])
    # Five coefficients in six environments of 150 rows: chance alone is about 0.03.
    assert np.mean(shown) < 0.005


def test_resamples_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch):
    X, y, codes = table()
    cells = cells_of(X, y, codes)
    environments = environments_of(cells, 1)
    (whole,) = resamples([cells], environments, 5)
    monkeypatch.setattr(resampling, "BATCH", 2 * environments.gram.size)
    parts = list(resamples([cells], environments, 5))
    assert [len(part.rows) for part in parts] == [2, 2, 1]
    assert np.allclose(np.concatenate([part.gram for part in parts]), whole.gram)


def line(risk, noise_gap, regret):
    return Line(risk, noise_gap, np.array([regret]), np.array([risk]))


@pytest.mark.parametrize(
    ("model", "plain", "reach"),
    [
        ((1.1, 0.0, 0.0), (1.0, 0.0, 0.1), 1.0),
        ((1.0, 0.0, 0.0), (1.0, 0.0, 0.1), 0.0),
        ((1.1, 0.0, 0.2), (1.0, 0.0, 0.1), np.inf),
        ((1.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.0),
        ((1.1, 0.0, 0.0), (1.0, 0.2, 0.0), 0.5),  # quieter, and nothing else
        ((1.1, 0.0, 0.0), (1.0, 0.05, 0.0), np.inf),
        ((1.0 + 1e-15, 0.1, 0.0), (1.0, 0.0, 0.2), 0.5),  # all but as cheap, and noisier
    ],
)
def test_break_even(model, plain, reach):
    assert break_even(line(*model), line(*plain)) == pytest.approx(reach)


@settings(max_examples=200, deadline=None)
@given(*(st.tuples(*(st.integers(low, 64) for low in (8, 0, 0))) for _ in range(2)))
def test_from_the_break_even_on_the_model_errs_no_more(model, plain):
    """And just before it, more: by a grid of reaches."""
    ours, theirs = (line(*(part / 64 for part in parts)) for parts in (model, plain))
    even = break_even(ours, theirs)
    if np.isinf(even):
        far = np.array([1e6])
        assert ours.expected(far) > theirs.expected(far)
        return
    # Multiples of 1/64 are exact: equal means equal.
    beyond = np.concatenate([np.linspace(even, 1.0 + even, 50), even + np.geomspace(1.0, 1e3, 20)])
    gap = ours.expected(beyond) - theirs.expected(beyond)
    assert (gap <= 1e-9 * (1.0 + beyond**2)).all()
    if even > 1e-6:
        before = np.array([even * (1.0 - 1e-6)])
        assert ours.expected(before) >= theirs.expected(before) - 1e-12


def test_at_reach_one_the_error_is_that_of_the_worst_environment_or_more():
    """The future is all like one environment seen: its noise, and what the pooled fit loses."""
    X, y, codes = table(n=3000, flip=1.0)
    y = y + 2.0 * (codes == 1) * np.random.default_rng(0).standard_normal(len(y))
    environments = environments_of(cells_of(X, y, codes), 1)
    fits = fit_set(environments, FULL)
    seen = risk_of(environments, fits.coef[0])[1:]
    assert fits.expected(1.0) >= seen.max() - fits.chance.max()
    assert fits.noise_gap > 2.0
    assert fits.expected(0.5) == pytest.approx(fits.risk + 0.5 * fits.noise_gap + 0.25 * fits.worst)
    # Rows that were placed by their noise: what environments err by tells how they were made.
    assert fit_set(replace(environments, sorted_by_noise=True), FULL).noise_gap == 0.0


def test_noise_is_compared_within_a_partition_and_not_where_it_placed_the_rows():
    """Two partitions of the same rows side by side have the larger of their gaps."""
    X, y, codes = table(n=1200, flip=2.0)
    loud = y + 2.0 * (codes == 0) * np.random.default_rng(1).standard_normal(len(y))
    cells = [cells_of(X, loud, c) for c in (codes, np.arange(len(y)) % 2)]
    parts = [heterogeneity(c, 1).environments for c in cells]
    both = combined(parts)
    gaps = [float(fit_set(e, FULL).noise_gap) for e in parts]
    assert float(fit_set(both, FULL).noise_gap) == pytest.approx(max(gaps), rel=1e-3)
    assert gaps[0] > 5 * gaps[1]
    placed = replace(both, sorted_by_noise=True)
    assert all(drawn.sorted_by_noise for drawn in resamples(cells, placed, 2))
    assert halves(cells, placed).sorted_by_noise


def test_chance_takes_no_more_than_there_is_and_leaves_the_gap_between_sets():
    """Environments made from y: what one population shows is subtracted from every set."""
    X, y, codes = table(flip=2.0)
    null = environments_of(cells_of(X, 3.0 * table(flip=2.0)[1], codes), 1)
    made = replace(environments_of(cells_of(X, y, codes), 1), null=(null,))
    without = np.array([True, True, True, False])
    shown = [fit_set(null, s).excess.max() for s in (FULL, without)]
    bare = [fit_set(replace(made, null=()), s).excess.max() for s in (FULL, without)]
    spared = sparing(made, [FULL, without])
    left = [fit_set(spared, s).excess.max() for s in (FULL, without)]
    assert fit_set(made, FULL).excess.max() == 0.0
    assert min(left) == pytest.approx(0.0, abs=1e-12)
    assert left[0] - left[1] == pytest.approx((bare[0] - shown[0]) - (bare[1] - shown[1]), rel=1e-6)
