"""Environments and hints as users pass them: in memory, Parquet, dask; and what is refused."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetrisk import HRMClassifier, HRMRegressor, InvariantRegressor
from hetrisk.blocks import ArrayBlocks
from hetrisk.blocks.aside import described, side_numbers
from hetrisk.estimators.keep import kept_columns
from hetrisk.estimators.side_information import read_side
from hetrisk.report import summarize


def rows(n=600, d=4, seed=0):
    """A last column whose slope changes sign in the second of three shops."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    shop = np.array(["a", "b", "c"])[np.arange(n) % 3]
    y = X[:, 0] + np.where(shop == "b", -2.0, 2.0) * X[:, -1] + 0.3 * rng.standard_normal(n)
    return X, y, shop


def day(shop):
    return pd.Timestamp("2020-01-01") + pd.to_timedelta(
        np.select([shop == "a", shop == "b"], [0, 400], 800) + np.arange(len(shop)) % 300, "D"
    )


def hint_of(kind, shop):
    return {
        "category": pd.Series(shop, name="shop").astype("category"),
        "text": pd.Series(shop, name="shop"),
        "number": pd.Series(pd.factorize(shop)[0], name="shop"),
        "date": pd.Series(day(shop), name="day"),
        "array": shop,
    }[kind]


def test_named_environments_leave_out_the_column_that_flips():
    X, y, shop = rows()
    model = HRMRegressor().fit(X, y, environments=shop)
    assert model.verdict_ == "invariant"
    assert model.support_.tolist() == [True, True, True, False]
    assert model.environment_labels_ == ("a", "b", "c")
    assert np.array_equal(np.array(["a", "b", "c"])[model.environments_], shop)
    assert model.break_even_ <= model.reach
    assert model.sources_[0].column == 3
    assert len(model.leave_one_out_) == 3


@pytest.mark.parametrize("kind", ["category", "text", "number", "date", "array"])
def test_a_hint_of_any_kind_does_what_the_names_do(kind):
    X, y, shop = rows()
    model = HRMRegressor().fit(X, y, hints=hint_of(kind, shop))
    assert model.support_.tolist() == [True, True, True, False]
    assert [s.kind for s in model.sources_ if s.used] == ["hinted"]


def test_hints_with_missing_values_and_beside_useless_ones():
    X, y, shop = rows()
    rng = np.random.default_rng(1)
    hints = pd.DataFrame({"noise": rng.random(len(y)), "shop": shop})
    hints.loc[rng.random(len(y)) < 0.2, "shop"] = None
    model = HRMRegressor().fit(X, y, hints=hints)
    assert [s.used for s in model.sources_] == [False, True]
    assert "no effect" in model.sources_[0].sentence
    assert not model.support_[-1]


def test_many_thin_sites_fall_into_kinds():
    X, y, shop = rows(1200)
    # The site says which shop, and there are two hundred of them.
    site = np.char.add(shop, (np.arange(len(y)) % 198 // 3).astype(str))
    model = HRMRegressor().fit(X, y, hints=pd.Series(site, name="site"))
    assert not model.support_[-1]
    assert "kind" in model.environment_labels_[0]


def test_responsibilities_are_taken_as_they_are():
    X, y, shop = rows()
    shares = np.eye(3)[pd.factorize(shop)[0]] * 0.94 + 0.02
    model = HRMRegressor().fit(X, y, environments=shares)
    assert not model.support_[-1]


def test_keep_and_groups_are_respected():
    X, y, shop = rows()
    kept = HRMRegressor(keep=[3]).fit(X, y, environments=shop)
    assert kept.support_[-1]
    assert kept.evidence_.reason[-1] == "Kept: asked for."
    groups = [0, 1, 2, 2]
    support = HRMRegressor(feature_groups=groups).fit(X, y, environments=shop).support_
    assert support[2] == support[3]


@pytest.mark.parametrize("known", ["environments", "hints", None])
def test_a_level_that_no_row_has_does_not_decide_about_its_group(known):
    X, y, shop = rows()
    wider = np.column_stack([X, np.zeros(len(y))])
    side = {known: shop} if known else {}
    model = HRMRegressor(feature_groups=[0, 1, 2, 3, 3]).fit(wider, y, **side)
    assert model.support_.tolist() == [*HRMRegressor().fit(X, y, **side).support_, False]


def test_a_column_that_is_kept_keeps_its_group():
    X, y, shop = rows()
    model = HRMRegressor(feature_groups=[0, 1, 2, 2], keep=[2]).fit(X, y, environments=shop)
    assert model.support_[2:].all()


def test_thin_sites_fall_into_kinds_beside_a_column_that_never_varies():
    X, y, shop = rows(2_400)
    # Sites of twelve rows, each in one shop.
    site = [f"{s}{i // 36}" for i, s in enumerate(shop)]
    wider = np.column_stack([X, np.full(len(y), 7.0)])
    model = HRMRegressor().fit(wider, y, environments=site)
    assert model.support_.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("known", ["environments", "hints", None])
def test_reach_zero_is_plain_least_squares(known):
    X, y, shop = rows()
    model = HRMRegressor(reach=0).fit(X, y, **({known: shop} if known else {}))
    Z = np.column_stack([np.ones(len(y)), X])
    assert np.allclose(model.coef_, np.linalg.lstsq(Z, y, rcond=None)[0][1:], atol=1e-8)


def test_labels_of_two_and_three_classes():
    X, y, shop = rows(900)
    two = HRMClassifier().fit(X, y > 0, environments=shop)
    three = HRMClassifier().fit(X, np.digitize(y, [-1, 1]), environments=shop)
    assert not two.support_[-1]
    assert not three.support_[-1]


@pytest.mark.parametrize("form", ["columns", "directions"])
def test_memory_parquet_and_dask_agree(tmp_path, form):
    pytest.importorskip("pyarrow")
    dd = pytest.importorskip("dask.dataframe")
    from hetrisk.blocks import ParquetBlocks

    X, y, shop = rows()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, shop=shop, day=day(shop))
    frame[:250].to_parquet(tmp_path / "0.parquet")
    frame[250:].to_parquet(tmp_path / "1.parquet", row_group_size=90)
    far = dd.from_pandas(frame, npartitions=3)
    features = list("abcd")
    for named in (True, False):
        key = {"environments": frame["shop"]} if named else {"hints": frame[["day"]]}
        held = HRMRegressor(form=form).fit(frame[features], y, **key)
        name = {"environments": "shop"} if named else {"aside": ["day"]}
        files = ParquetBlocks(tmp_path, "y", features, **name)
        filed = HRMRegressor(form=form).fit(files)
        key = {"environments": far["shop"]} if named else {"hints": far[["day"]]}
        spread = HRMRegressor(form=form).fit(far[features], far["y"], **key)
        for other in (filed, spread):
            assert np.array_equal(other.support_, held.support_)
            assert np.abs(other.coef_ - held.coef_).max() < 1e-10
            assert np.abs(other.reach_curve_.error - held.reach_curve_.error).max() < 1e-8


def test_metadata_routing_hands_environments_to_fit():
    import sklearn
    from sklearn.model_selection import cross_validate

    X, y, shop = rows()
    with sklearn.config_context(enable_metadata_routing=True):
        model = HRMRegressor().set_fit_request(environments=True)
        found = cross_validate(
            model, X, y, params={"environments": shop}, cv=2, return_estimator=True
        )
    assert all(not m.support_[-1] for m in found["estimator"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"environments": np.full(90, "a")}, "at least two different labels; got one, 'a'"),
        ({"environments": np.zeros(90, dtype=int)}, r"different labels; got one, 0\.$"),
        ({"environments": np.arange(90)}, "must repeat; got 90 different labels for 90 rows"),
        ({"environments": np.array(["a", "b", None] * 30)}, "30 of 90 are missing, the first in"),
        ({"environments": np.zeros(89)}, "must have length n_samples=90; got 89"),
        ({"environments": np.ones((90, 2))}, "non-negative with rows summing to one"),
        ({"hints": [None] * 90}, "holds no value: all 90 are missing"),
        ({"hints": np.full(90, np.inf)}, "must be finite or missing"),
        ({"hints": np.zeros(3)}, "hints must have length n_samples=90; got 3"),
    ],
)
def test_side_information_that_makes_no_sense_is_refused(given, message):
    X, y, _ = rows(90)
    with pytest.raises(ValueError, match=message):
        HRMRegressor().fit(X, y, **given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reach": -1.0}, "reach"),
        ({"reach": np.inf}, r"in the range \[0.0, 1000000.0\]. Got inf"),
        ({"reach": 1e154}, r"in the range \[0.0, 1000000.0\]. Got 1e\+154"),
        ({"keep": ["height"]}, "there is no column 'height'"),
        ({"keep": [9]}, "positions below n_features=4; got 9"),
        ({"method": "gates"}, "infers environments itself"),
        ({"method": "gates-literal"}, "method='gates-literal' infers environments itself"),
        ({"invariance_penalty": 1.0}, "invariance_penalty has no meaning with method='auto'"),
        ({"method": "gates", "keep": [1]}, r"keep has no meaning with method='gates'.*got \[1\]"),
        ({"method": "gates-literal", "form": "directions"}, "form has no meaning.*'directions'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    X, y, shop = rows(90)
    with pytest.raises(ValueError, match=message):
        HRMRegressor(**settings).fit(X, y, environments=shop)


def test_names_that_are_numbers_have_an_order():
    years = np.repeat(["1999", "2001", "2003"], 5)
    side = read_side(years, None, 15)
    assert side.labels.ordered
    assert side.labels.names == ("1999", "2001", "2003")
    assert not read_side(np.repeat(["a", "b", "c"], 5), None, 15).labels.ordered


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.integers(-(2**62), 2**62) | st.integers(-5, 5), min_size=2, max_size=8, unique=True
    ),
    st.integers(0, 1000),
    st.sampled_from([np.int64, np.int8, np.uint64, np.float64, str, object]),
)
def test_codes_are_places_among_the_sorted_labels(labels, seed, dtype):
    """However labels are looked up: integers close to each other are counted."""
    with np.errstate(over="ignore"):
        labels = np.unique(np.array(labels).astype(dtype))
    if len(labels) < 2:
        return
    place = np.random.default_rng(seed).permutation(np.arange(120 * len(labels)) % len(labels))
    side = read_side(labels[place], None, len(place))
    assert len(side.labels.names) == len(labels)
    if dtype is not str:
        assert np.array_equal(side.values[:, 0], place)
    assert [name for name, _ in side.named] == sorted(map(str, labels))
    assert np.allclose([share for _, share in side.named], 1 / len(labels))


def test_integers_too_far_apart_to_count_are_looked_up():
    side = read_side(np.array([-(2**62), 2**62, 5] * 4), None, 12)
    assert side.values[:3, 0].tolist() == [0.0, 2.0, 1.0]
    narrow = read_side(np.tile(np.array([-128, 127], dtype=np.int8), 300), None, 600)
    assert narrow.values[:2, 0].tolist() == [0.0, 1.0]
    assert narrow.labels.names == ("-128", "127")


def test_labels_written_alike_are_one_in_the_list():
    side = read_side(np.array(["1", 1, "2", 2] * 3, dtype=object), None, 12)
    assert side.named == (("1", 0.5), ("2", 0.5))


def test_where_training_rows_belong_is_said_on_request_and_after_pickling():
    X, y, shop = rows()
    model = HRMRegressor().fit(X, y, environments=shop)
    again = pickle.loads(pickle.dumps(model))
    for fitted in (model, again):
        assert np.array_equal(np.array(fitted.environment_labels_)[fitted.environments_], shop)
        assert fitted.environment_proba_.shape == (len(y), 3)
        assert fitted.environment_proba_ is fitted.environment_proba_


def test_kept_columns_by_name_and_position():
    assert kept_columns("b", ["a", "b"], 2).tolist() == [False, True]
    assert kept_columns([0], None, 2).tolist() == [True, False]


def test_environments_and_hints_are_used_together():
    """One column turns round with the site that is named, another with the year that is hinted."""
    rng = np.random.default_rng(0)
    X, site, year = (
        rng.standard_normal((3000, 4)),
        rng.integers(0, 3, 3000),
        rng.integers(0, 4, 3000),
    )
    y = X.sum(axis=1) - 2.0 * (site == 0) * X[:, 0] - 2.5 * (year == 3) * X[:, 1]
    y += 0.5 * rng.standard_normal(3000)
    hint = pd.Series(year.astype(str), name="year")

    def left_out(**known):
        model = HRMRegressor(reach=3.0).fit(X, y, **known)
        used = [source.name for source in model.sources_ if source.used]
        return np.flatnonzero(~model.support_).tolist(), used

    assert left_out(environments=site) == ([0], ["environments"])
    assert left_out(hints=hint) == ([1], ["year"])
    assert left_out(environments=site, hints=hint) == ([0, 1], ["environments", "year"])
    nothing = rng.integers(0, 3, 3000)
    assert left_out(environments=nothing, hints=hint) == ([1], ["year"])
    together = HRMRegressor().fit(X, y, environments=site, hints=hint)
    assert np.array_equal(together.environments_, site)


def test_numbers_that_merely_number_the_sites_fall_into_kinds_too():
    """Thin sites of two kinds, numbered at random: neighbours have nothing in common."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 40, 1200)
    flips = rng.random(40) < 0.3
    X = rng.standard_normal((1200, 4))
    y = X[:, :3].sum(axis=1) + np.where(flips[site], -1.5, 1.5) * X[:, 3]
    y += 0.3 * rng.standard_normal(1200)
    model = HRMRegressor().fit(X, y, environments=site)
    assert model.support_.tolist() == [True, True, True, False]
    assert all(label.startswith("kind") for label in model.environment_labels_)


def test_environments_of_many_levels_say_which_they_hold():
    rng = np.random.default_rng(0)
    site, X = np.repeat(np.arange(40), 30), rng.standard_normal((1200, 6))
    y = X[:, 0] + np.where(site < 25, 1.5, -1.5) * X[:, 1] + rng.standard_normal(1200)
    names = np.array([f"site {s}" for s in site])
    model = HRMRegressor().fit(X, y, environments=names)
    # Kinds are numbered as they come.
    assert model.environment_labels_ == (
        "kind 1 (site 0, site 1 and 23 more)",
        "kind 2 (site 25, site 26 and 13 more)",
    )
    thin = np.array([f"small {i % 3}" for i in range(1200)])
    few = np.where(site < 20, "A", np.where(site < 39, "B", thin))
    model = HRMRegressor().fit(X, y, environments=few)
    assert model.environment_labels_ == ("A", "B", "all others (small 0, small 1 and 1 more)")


def test_a_source_speaks_against_the_column_that_leaves():
    """Beside a shortcut that moves, those of the causes move more surely than its own."""
    rng = np.random.default_rng(1)
    site = rng.integers(0, 3, 1500)
    X = rng.standard_normal((1500, 3))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(1500)
    X[:, 2] = np.array([1.0, 1.6, 0.2])[site] * y + 0.4 * rng.standard_normal(1500)
    model = HRMRegressor().fit(X, y, environments=site)
    assert model.support_.tolist() == [True, True, False]
    assert model.sources_[0].column == 2
    assert model.sources_[0].sentence.endswith("most about x2.")


def test_intervals_are_named_by_the_values_they_hold():
    rng = np.random.default_rng(0)
    clinic = rng.integers(1, 95, 1200)
    X = rng.standard_normal((1200, 3))
    y = X[:, 0] + np.where(clinic <= 40, 2.0, -2.0) * X[:, 1] + rng.standard_normal(1200)
    model = HRMRegressor().fit(X, y, hints=pd.Series(clinic, name="clinic"))
    ends = [name.split(" to ") for name in model.environment_labels_]
    assert ends[0][0] == "1"
    assert ends[-1][-1] == "94"
    assert all(int(a) <= int(b) for a, b in ends)


def test_environments_that_do_not_differ_ask_no_resample():
    X, y, _ = rows()
    model = HRMRegressor().fit(X, y, environments=np.arange(len(y)) % 2)
    assert "does not differ beyond chance" in model.verdict_reason_
    assert model.n_resamples_ == 0
    assert not model.stability_.any()


def test_a_label_with_too_few_rows_is_said_to_be_in_none():
    X, y, shop = rows()
    shop = shop.astype("U9")
    shop[:4] = "tiny"
    model = HRMRegressor().fit(X, y, environments=shop)
    assert model.environment_labels_ == ("a", "b", "c")
    assert (
        "environments (as named; in none, for want of rows: tiny): 3" in model.sources_[0].sentence
    )


def test_verbose_says_what_was_looked_at_and_the_verdict(capsys):
    X, y, shop = rows()
    model = HRMRegressor(verbose=1).fit(X, y, environments=shop)
    said = capsys.readouterr().out.splitlines()
    assert said == [model.sources_[0].sentence, f"{model.verdict_}: {model.verdict_reason_}"]
    HRMRegressor().fit(X, y, environments=shop)
    assert capsys.readouterr().out == ""


def test_many_labels_that_are_all_thin_fall_into_kinds():
    """Forty sites of 20 rows and 12 columns: none can be fitted alone, and they do differ."""
    rng = np.random.default_rng(0)
    site, X = np.repeat(np.arange(40), 20), rng.standard_normal((800, 12))
    y = X[:, 0] + np.where(site < 25, 2.0, -2.0) * X[:, 1] + rng.standard_normal(800)
    names = np.array([f"site {s}" for s in site])
    model = HRMRegressor().fit(X, y, environments=names)
    assert model.sources_[0].n_environments == 2
    assert not model.support_[1]
    nothing = HRMRegressor().fit(X, X[:, 0] + rng.standard_normal(800), environments=names)
    assert nothing.verdict_ == "homogeneous"


def test_one_environment_with_rows_enough_is_nothing_to_search():
    X, y, _ = rows()
    shop = np.where(np.arange(len(y)) < 4, "tiny", "large")
    model = HRMRegressor().fit(X, y, environments=shop)
    assert model.verdict_ == "unsearched"
    assert "all environments but one hold too few rows" in model.verdict_reason_
    assert model.sources_[0].sentence.endswith("one environment, nothing to compare.")


def test_a_hint_that_says_nothing_is_said_to():
    X, y, shop = rows()
    hints = pd.DataFrame({"shop": shop, "country": "NL", "rare": shop == "none"})
    model = HRMRegressor().fit(X, y, hints=hints)
    said = {source.name: source.sentence for source in model.sources_}
    assert set(said) == {"shop", "country", "rare"}
    assert said["country"] == "country: no two groups of rows to compare; it has no effect."


def test_a_column_that_was_to_be_kept_says_so():
    X, y, shop = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "gamma"])
    model = HRMRegressor(keep=["gamma"]).fit(frame, y, environments=shop)
    assert model.evidence_.reason[3] == "Kept: asked for."
    assert "nothing that keeps gamma does better than plain ERM" in model.verdict_reason_
    found = summarize(model)
    assert [feature.asked for feature in found.features] == [False, False, False, True]
    said = {point.question: point.answer for point in found.recommendation.points}
    paid = said["From which shift on it pays"]
    assert paid.startswith("Without gamma it would err")
    assert paid.endswith("; it stays because it is to be kept.")
    assert (
        "no other choice of columns that keeps gamma does better" in found.recommendation.sentence
    )


def test_columns_of_one_group_are_named_and_the_groups_counted():
    X, y, shop = rows()
    X = np.column_stack([X, 0.5 * X[:, 3] + X[:, 0]])
    for groups in (list("aabbb"), [0, 0, 1, 2, 2]):
        model = HRMRegressor(feature_groups=groups).fit(X, y, environments=shop)
        gone = [f"x{j}" for j in np.flatnonzero(~model.support_)]
        assert len(gone) > 1
        together = f"of {len(set(groups))} groups of columns left out ({', '.join(gone)})"
        assert together in model.verdict_reason_


def test_a_source_that_is_counted_twice_makes_no_further_environments():
    X, y, shop = rows()
    once = HRMRegressor().fit(X, y, environments=shop)
    assert "3 environments differ beyond chance" in once.verdict_reason_
    twice = HRMRegressor().fit(X, y, environments=shop, hints=shop)
    assert "the environments of 2 sources differ beyond chance" in twice.verdict_reason_
    assert "6 environments" not in twice.verdict_reason_
    kept = HRMRegressor(keep=[3]).fit(X, y, environments=shop, hints=shop)
    assert kept.verdict_reason_.startswith("The environments of 2 sources differ beyond chance")


def test_evidence_says_of_a_kept_column_what_is_true_of_it():
    """Beside a column that leaves, leaving out does pay; of directions it is not asked."""
    seen = set()
    for seed in range(12):
        X, y, shop = moving(seed)
        model = HRMRegressor().fit(X, y, environments=shop)
        left = not model.support_.all()
        for why, kept in zip(model.evidence_.reason, model.support_, strict=True):
            if kept and "would lower" in why:
                assert ("as well would lower" in why) is left
                assert ("alone would lower" in why) is not left
                seen.add(left)
    assert True in seen
    X, y, shop = rows()
    model = HRMRegressor(form="directions").fit(X, y, environments=shop)
    assert set(model.evidence_.reason) == {"Kept: directions leave no column out."}


def moving(seed):
    """A column whose slope flips, and another whose slope moves by a little."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 3, 3000)
    X = rng.standard_normal((3000, 4))
    y = X[:, 0] + np.array([1.0, 1.05, 0.9])[shop] * X[:, 2] * 0.1
    y = y + np.array([2.0, 2.0, -2.0])[shop] * X[:, 3] + 0.3 * rng.standard_normal(3000)
    return X, y, shop


def test_directions_need_columns_that_differ():
    """Where only slopes differ the penalty is the same for every model: nothing is shrunk."""
    rng = np.random.default_rng(0)
    shop = np.repeat([0, 1], 1000)
    half = rng.standard_normal((1000, 2))
    X = np.vstack([half, half])
    y = X[:, 0] + np.where(shop == 1, -1.0, 2.0) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    model = HRMRegressor(form="directions").fit(X, y, environments=shop)
    assert np.allclose(model.coef_, model.erm_coef_, atol=1e-3)


def shares_of(shop):
    return np.eye(3)[pd.factorize(shop)[0]] * 0.94 + 0.02


def spread_over(kind, X, y, shares):
    """Rows with responsibilities where they do not lie in one array; and what `fit` is given."""
    if kind == "blocks":
        return (ArrayBlocks(X, y, None, shares),)
    if kind == "view":
        return (ArrayBlocks(X, y, None, shares).viewed(_same),)
    da = pytest.importorskip("dask.array")
    far = da.from_array(X, chunks=(170, 2)), da.from_array(y, chunks=170)
    if kind == "dask":
        return *far, da.from_array(shares, chunks=(130, 1))
    if kind == "dask beside memory":
        return *far, shares.tolist()
    dd = pytest.importorskip("dask.dataframe")
    return *far, dd.from_pandas(pd.DataFrame(shares), chunksize=170)


def _same(rows):
    return rows


@pytest.mark.parametrize("kind", ["blocks", "view", "dask", "dask beside memory", "dask frame"])
def test_responsibilities_are_used_wherever_the_rows_live(kind):
    X, y, shop = rows()
    shares = shares_of(shop)
    held = HRMRegressor().fit(X, y, environments=shares)
    other = HRMRegressor().fit(*spread_over(kind, X, y, shares))
    assert other.verdict_ == held.verdict_ == "invariant"
    assert other.verdict_reason_ == held.verdict_reason_
    assert other.environment_labels_ == held.environment_labels_ == ("1", "2", "3")
    assert [s.sentence for s in other.sources_] == [s.sentence for s in held.sources_]
    assert np.abs(other.coef_ - held.coef_).max() < 1e-10


@pytest.mark.parametrize("kind", ["memory", "blocks", "dask"])
@pytest.mark.parametrize("wrong", [[-0.5, 1.5, 0.0], [0.0, 0.0, 0.0], [np.nan, 1.0, 0.0]])
def test_responsibilities_that_are_none_are_refused_wherever_the_rows_live(kind, wrong):
    X, y, shop = rows()
    shares = shares_of(shop)
    shares[211] = wrong
    given = (X, y, shares) if kind == "memory" else spread_over(kind, X, y, shares)
    place = r"^partition 1: " if kind == "dask" else "^"
    sentence = "environments given as responsibilities must be non-negative with rows summing to"
    with pytest.raises(ValueError, match=place + sentence):
        HRMRegressor().fit(*given)


def test_array_blocks_bring_hints_of_numbers():
    X, y, shop = rows()
    model = HRMRegressor().fit(ArrayBlocks(X, y, aside=pd.factorize(shop)[0][:, None]))
    assert [(source.name, source.used) for source in model.sources_] == [("side", True)]


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "dask", "dask frame"])
@pytest.mark.parametrize("estimator", [HRMRegressor, InvariantRegressor])
def test_one_column_of_labels_is_labels(kind, estimator):
    X, y, shop = rows()
    column = pd.DataFrame({"shop": shop})
    if kind.startswith("dask"):
        da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
        X, y = da.from_array(X, chunks=(150, 4)), da.from_array(y, chunks=150)
        codes = da.from_array(pd.factorize(shop)[0][:, None], chunks=(150, 1))
        given = codes if kind == "dask" else dd.from_pandas(column, chunksize=150)
    elif kind == "polars":
        given = pytest.importorskip("polars").DataFrame({"shop": shop.tolist()})
    else:
        given = column if kind == "pandas" else shop[:, None]
    model = estimator().fit(X, y, environments=given)
    names = ("0", "1", "2") if kind == "dask" else ("a", "b", "c")
    found = (
        model.environment_names_ if estimator is InvariantRegressor else model.environment_labels_
    )
    assert tuple(map(str, found)) == names


def test_keep_takes_a_mask():
    X, y, shop = rows()
    mask = [False, False, False, True]
    for keep in (mask, np.array(mask), pd.Series(mask)):
        model = HRMRegressor(keep=keep).fit(X, y, environments=shop)
        assert model.evidence_.reason[3] == "Kept: asked for."
        assert sum(reason == "Kept: asked for." for reason in model.evidence_.reason) == 1
    assert kept_columns([], None, 3).tolist() == [False] * 3
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=np.where(X[:, 0] > 0, "ulm", "bonn"))
    model = HRMRegressor(keep=[*mask, False]).fit(frame, y, environments=shop)
    assert model.support_[3]
    with pytest.raises(ValueError, match="keep as a mask must have length n_features=5; got 4"):
        HRMRegressor(keep=mask).fit(frame, y, environments=shop)


@pytest.mark.parametrize("keep", [[1.0], [None], [np.nan], [True, 1], [[True, False]], [pd.NA]])
def test_what_is_no_column_is_refused_in_keep(keep):
    with pytest.raises(ValueError, match="keep must hold names or positions of columns of X, or"):
        kept_columns(keep, ["a", "b"], 2)


def test_a_hint_without_a_name_is_called_hint():
    shop = rows()[2]
    polars = pytest.importorskip("polars")
    for hint in (polars.Series(shop.tolist()), pd.Series(shop), shop, shop[:, None]):
        assert read_side(None, hint, len(shop)).hints[0].name == "side"


def test_one_value_and_none_are_two_groups_whatever_the_kind():
    """The slope turns round where the hint has no value."""
    X, y, shop = rows()
    known = shop != "b"
    hints = {
        "text": np.where(known, "seven", None),
        "number": np.where(known, 7.0, np.nan),
        "date": pd.Series(np.where(known, np.datetime64("2020-01-01"), np.datetime64("NaT"))),
    }
    fits = {kind: HRMRegressor().fit(X, y, hints=hint) for kind, hint in hints.items()}
    assert {kind: fit.environment_labels_ for kind, fit in fits.items()} == {
        "text": ("seven", "missing"),
        "number": ("7", "missing"),
        "date": ("2020-01-01", "missing"),
    }
    for fit in fits.values():
        assert fit.sources_[0].sentence == fits["text"].sources_[0].sentence
        assert np.array_equal(fit.environments_, fits["text"].environments_)
        assert not fit.support_[-1]
    everywhere = HRMRegressor().fit(X, y, hints=np.full(len(y), 7.0))
    assert "no two groups" in everywhere.sources_[0].sentence


def test_a_level_for_each_row_has_no_effect():
    """More levels than are told apart are no error."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25_000, 3))
    y = X[:, 0] + rng.standard_normal(len(X))
    site = [f"row {i}" for i in range(len(X))]
    model = HRMRegressor().fit(X, y, hints=pd.Series(site, name="site"))
    assert model.verdict_ == "homogeneous"
    assert not model.sources_[0].used
    assert "it has no effect" in model.sources_[0].sentence


def sites(n_sites, rows_each, d=3):
    """Sites of two kinds, in a third of which a slope turns round."""
    rng = np.random.default_rng(0)
    site = np.tile(np.arange(n_sites), rows_each)
    X = rng.standard_normal((len(site), d))
    turned = rng.random(n_sites) < 1 / 3
    y = X[:, 0] + np.where(turned[site], -2.0, 2.0) * X[:, -1] + 0.3 * rng.standard_normal(len(X))
    return X, y, pd.Series(np.char.add("site ", site.astype(str)), name="site")


def test_more_sites_than_are_told_apart_fall_into_kinds():
    X, y, site = sites(12_000, 3)
    model = HRMRegressor().fit(X, y, hints=site)
    assert model.support_.tolist() == [True, True, False]
    how = r"site \(10000 levels in 2 kinds; those with fewer rows in none\): 2 environments differ"
    assert re.match(how, model.sources_[0].sentence)


def test_the_levels_with_the_most_rows_are_told_apart(monkeypatch):
    monkeypatch.setattr("hetrisk.blocks.aside.MOST_LEVELS", 2)
    parts = [pd.Series(list("zazbzc")), pd.Series(list("dafezg"))]
    found = described("x", 0, lambda: parts, 12)
    assert (found.levels, found.further) == (("a", "z"), True)
    assert side_numbers(pd.Series(["a", None, "c", "z"]), found)[[0, 2, 3]].tolist() == [0, -1, 1]


def test_levels_that_wide_rows_leave_no_memory_for_are_in_none(monkeypatch):
    X, y, site = sites(60, 40)
    site = pd.concat([site, pd.Series([f"rare {i}" for i in range(30)])]).rename("site")
    X, y = np.vstack([X, X[:30]]), np.append(y, y[:30])
    monkeypatch.setattr("hetrisk.core.sources.hinted.MOST_CELLS", 2 * 60 * 5**2)
    model = HRMRegressor().fit(X, y, hints=site)
    assert not model.support_[-1]
    assert "those with fewer rows in none" in model.sources_[0].sentence
    assert np.allclose(model.environment_proba_[-30:], 1 / model.environment_proba_.shape[1])


def test_gates_refuse_what_blocks_carry_and_take_a_keep_of_nothing():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((200, 3)), np.arange(200) % 2
    y = X.sum(axis=1) + rng.standard_normal(200)
    rows = ArrayBlocks(X, y, None, np.eye(2)[codes])
    with pytest.raises(ValueError, match="method='gates' infers environments itself"):
        HRMRegressor(method="gates").fit(rows)
    kept = HRMRegressor(method="gates", max_rounds=1, keep=[], random_state=0).fit(X, y)
    free = HRMRegressor(method="gates", max_rounds=1, random_state=0).fit(X, y)
    assert np.array_equal(kept.gates_, free.gates_)


def test_directions_leave_no_column_out_not_even_one_that_never_varies():
    X, y, shop = rows()
    wider = np.column_stack([X, np.full(len(y), 3.0)])
    model = HRMRegressor(form="directions").fit(wider, y, environments=shop)
    assert model.support_.all()
    assert np.allclose(model.predict(wider), model.final_estimator_.predict(wider))
