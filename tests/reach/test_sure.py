"""Is most of what moves gone on other rows, too? The jackknife that says so, and what follows."""

import numpy as np
import pytest
from scipy.special import ndtri

from hetrisk import HRMRegressor
from hetrisk.core.numerics.cells import folds
from hetrisk.core.numerics.rows import Rows
from hetrisk.core.reach.heterogeneity import environments_of, heterogeneity
from hetrisk.core.reach.regret import fit_set
from hetrisk.core.reach.resampling import resamples, surely_cured, without_a_fold
from hetrisk.core.reach.set_errors import evaluate_path
from hetrisk.core.thresholds import THRESHOLDS
from reach.made import cells_of, table


def two_slopes_move(second, seed=16, n=600):
    """The first column's slope differs by two between environments, that of the next by less."""
    rng = np.random.default_rng(seed)
    X, codes = rng.standard_normal((n, 8)), rng.integers(0, 2, n)
    side = np.where(codes == 0, 1.0, -1.0)
    y = 0.5 * X[:, 0] + X[:, 1:].sum(axis=1) + side * (X[:, 0] + second * X[:, 1])
    return X, y + rng.standard_normal(n), codes


def without(*columns):
    """A path: all columns but some, and all columns."""
    return np.stack([~np.isin(np.arange(8), columns), np.ones(8, dtype=bool)])


def test_all_but_a_fold_is_what_the_other_rows_give():
    X, y, codes = two_slopes_move(0.5)
    cells = cells_of(X, y, codes)
    several = without_a_fold([cells], heterogeneity(cells, 1).environments)
    fold = folds(Rows(X, y, np.ones(len(y))), 10)
    assert several.gram.shape[0] == 10
    for f in (0, 7):
        stay = fold != f
        alone = environments_of(cells_of(X[stay], y[stay], codes[stay]), 1)
        assert several.gram[f] == pytest.approx(alone.gram)
        assert several.rows[f] == pytest.approx(alone.rows)


def test_the_standard_error_is_that_of_fits_without_each_fold():
    path, answers = without(0), []
    # In steps so fine that a standard error of another size would pass another of them.
    for second in np.linspace(0.35, 0.6, 26):
        X, y, codes = two_slopes_move(second)
        cells = cells_of(X, y, codes)
        environments = heterogeneity(cells, 1).environments

        def left(environments):
            first, all_columns = evaluate_path(environments, path).mean
            return first - (1.0 - THRESHOLDS.removed) * all_columns

        several = without_a_fold([cells], environments)
        each = np.array([left(several.some(f)) for f in range(10)])
        error = np.sqrt(9 / 10 * ((each - each.mean()) ** 2).sum())
        sure = left(environments) + ndtri(THRESHOLDS.agreement) * error <= 0.0
        assert asked(X, y, codes, path) == [sure, False]
        answers.append((bool(sure), bool(left(environments) <= 0.0)))
    # Sure, most of it gone but not surely, and not gone.
    assert set(answers) == {(True, True), (False, True), (False, False)}


def asked(X, y, codes, path):
    cells = cells_of(X, y, codes)
    environments = heterogeneity(cells, 1).environments
    costs = evaluate_path(environments, path).costs
    return surely_cured([cells], environments, path, costs).tolist()


def test_what_surely_goes_and_what_surely_stays():
    table = two_slopes_move(0.0)
    assert asked(*table, without(0)) == [True, False]
    assert asked(*table, without(0, 3)) == [True, False]
    assert asked(*table, without(3)) == [False, False]


def test_a_column_stays_where_it_hangs_on_some_rows_whether_most_of_what_moves_goes_with_it():
    X, y, codes = two_slopes_move(0.5)
    cells = cells_of(X, y, codes)
    environments = heterogeneity(cells, 1).environments
    path = without(0)
    # On all rows most of it goes.
    assert evaluate_path(environments, path).costs.cured(1)[0]
    model = HRMRegressor(keep=[1])
    with pytest.warns(UserWarning, match="hangs on some of them"):
        model.fit(X, y, environments=codes)
    assert model.verdict_ == "unstable"
    assert model.support_.all()
    assert "whether most of what moves goes with x0" in model.verdict_reason_
    # Where the other slope is the same everywhere, nothing is in doubt.
    X, y, codes = two_slopes_move(0.0)
    sure = HRMRegressor(keep=[1]).fit(X, y, environments=codes)
    assert np.array_equal(np.flatnonzero(~sure.support_), [0])


def test_chance_in_resamples_is_the_mean_regret_where_nothing_differs():
    """A draw adds its own noise to that of the rows: with half of it, the ratio is two."""
    shown, chance = [], []
    for seed in range(12):
        X, y, codes = table(seed=seed, n=900, flip=0.0)
        cells = cells_of(X, y, codes)
        environments = environments_of(cells, 1)
        for drawn in resamples([cells], environments):
            fits = fit_set(drawn, np.ones(X.shape[1], dtype=bool))
            shown.append(fits.regret.mean())
            chance.append(fits.chance.mean())
    assert np.mean(shown) == pytest.approx(np.mean(chance), rel=0.1)
