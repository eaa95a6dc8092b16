"""The trail of a search: what a round measured is taken over, and who leaves takes the group."""

import json

import numpy as np
import pytest

from hetrisk.core.numerics.rows import Rows
from hetrisk.core.pooled.probes import Probe
from hetrisk.core.pooled.terms import Term
from hetrisk.core.pooled.trail import SHIFTING, STAND_IN, Finding, Trail


def start(d=5, constant=()):
    X = np.random.default_rng(0).normal(size=(50, d))
    X[:, list(constant)] = 0.0
    return Trail.start(Rows(X, X[:, 0], np.ones(50))), X


def probe(feature, m, terms=()):
    prediction = np.arange(1.0, 2 + m + len(terms))
    return Probe(feature, prediction, terms, *(np.array([0.6, 0.4]) + k for k in range(4)))


def finding(m, leaving=None, **given):
    values = {
        "terms": (),
        "leaving": leaving or {},
        "suspect": np.zeros(m, dtype=bool),
        "probed": np.arange(m),
        "index": np.full(m, 0.1),
        "index_error": np.full(m, 0.01),
        "p_value": np.full(m, 0.5),
        "probes": [],
        "log_likelihood": -1.0,
    }
    return Finding(**(values | given))


def test_only_columns_that_vary_are_in_play():
    trail, _ = start(constant=[2])
    assert trail.support.tolist() == [True, True, False, True, True]
    empty = Trail.start(Rows(np.empty((0, 3)), np.empty(0), np.empty(0)))
    assert not empty.support.any()


def test_who_leaves_takes_its_group_along():
    trail, _ = start()
    groups = np.array([0, 1, 1, 2, 2])
    leaving = {STAND_IN: np.arange(5) == 1, SHIFTING: np.arange(5) == 4}
    after = trail.after(1, np.arange(5), groups, [finding(5, leaving)])
    assert after.support.tolist() == [True, False, False, False, False]
    assert after.route == ("", STAND_IN, STAND_IN, SHIFTING, SHIFTING)
    assert after.going
    assert after.message == "round 1: 1 features in play, left: 1, 2, 3, 4"
    record = json.loads(json.dumps(after.records[-1]))
    assert record["left_out"] == [1, 2, 3, 4]
    assert record["routes"] == [STAND_IN, STAND_IN, SHIFTING, SHIFTING]
    done = after.after(2, np.array([0]), groups, [finding(1)])
    assert not done.going
    assert done.message == "round 2: 1 features in play, left: none"
    assert len(done.records) == 2


def test_the_search_ends_when_nobody_is_left():
    trail, _ = start()
    everyone = {SHIFTING: np.ones(5, dtype=bool)}
    after = trail.after(1, np.arange(5), np.arange(5), [finding(5, everyone)])
    assert not after.going
    assert not after.support.any()


def test_the_largest_instability_and_the_smallest_p_value_are_kept():
    trail, _ = start()
    columns = np.array([0, 2, 4])
    first = finding(
        3,
        probed=np.array([0, 2]),
        index=np.array([0.5, 9.0, 0.2]),
        index_error=np.array([0.05, 9.0, 0.02]),
        p_value=np.array([0.01, 1e-9, 0.3]),
        suspect=np.array([True, False, False]),
    )
    trail = trail.after(1, columns, np.arange(5), [first])
    np.testing.assert_array_equal(trail.index, [0.5, 0, 0, 0, 0.2])
    np.testing.assert_array_equal(trail.p_value, [0.01, 1, 1, 1, 0.3])
    second = finding(3, index=np.array([0.1, 0.7, 0.3]), p_value=np.array([0.4, 0.2, 0.01]))
    trail = trail.after(2, columns, np.arange(5), [second])
    np.testing.assert_array_equal(trail.index, [0.5, 0, 0.7, 0, 0.3])
    np.testing.assert_array_equal(trail.index_error, [0.05, 0, 0.01, 0, 0.01])
    np.testing.assert_array_equal(trail.p_value, [0.01, 1, 0.2, 1, 0.01])
    assert not trail.suspect.any()


def test_several_targets_share_the_level():
    trail, _ = start()
    p = [np.array([0.01, 0.6, 1.0, 1.0, 1.0]), np.array([0.2, 0.9, 1.0, 1.0, 1.0])]
    after = trail.after(1, np.arange(5), np.arange(5), [finding(5, p_value=q) for q in p])
    np.testing.assert_allclose(after.p_value, [0.02, 1, 1, 1, 1])
    assert after.records[-1]["objective"] == pytest.approx(0.02)


def test_terms_and_probes_are_rewritten_for_the_whole_table():
    trail, X = start()
    columns = np.array([1, 3, 4])
    terms = (Term("product", (0, 2)),)
    part = probe(1, 3, terms)
    found = finding(3, terms=terms, probes=[part])
    after = trail.after(1, columns, np.arange(5), [found])
    whole = after.probes[3][0]
    assert whole.feature == 3
    assert whole.terms == after.terms[0] == (Term("product", (1, 4)),)
    assert after.records[0]["terms"] == [["product", 1, 4]]
    np.testing.assert_allclose(
        whole.responsibilities(X, X[:, 0]), part.responsibilities(X[:, columns], X[:, 0])
    )
    again = after.after(2, columns, np.arange(5), [found])
    assert len(again.probes[3]) == 2
    assert len(after.probes[3]) == 1  # a trail is a value
