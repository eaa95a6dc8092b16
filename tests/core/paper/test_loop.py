"""The loop: what a run is, and how runs are compared."""

from dataclasses import replace

import numpy as np
import pytest

from hetrisk.blocks import ArrayBlocks
from hetrisk.core.numerics.families import Gaussian
from hetrisk.core.paper.loop import STARTS, HardPartition, LoopSettings, joint_loop
from hetrisk.datasets import load_task

FIXED = LoopSettings(invariance=10.0, price=0.003)


@pytest.fixture(scope="module")
def rows():
    X, y, _ = load_task("selection_bias", seed=1).train
    return ArrayBlocks((X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std())


def run(rows, settings):
    return joint_loop(rows, Gaussian(), np.arange(rows.n_features), settings)


def test_a_run_ends_where_its_selection_returns(rows):
    found = run(rows, FIXED)
    (only,) = found.runs
    supports = [turn.fit.support.tolist() for turn in only.rounds]
    assert found.answer is only.rounds[-1]
    assert len(supports) <= FIXED.max_rounds
    assert all(supports[-1] == s or supports.count(s) == 1 for s in supports)


def test_one_round_clusters_on_all_columns_alone(rows):
    found = run(rows, replace(FIXED, invariance=None, max_rounds=1))
    assert all(r.start is None and len(r.rounds) == 1 for r in found.runs)


def test_runs_start_from_all_columns_and_from_the_most_useful_ones(rows):
    found = run(rows, LoopSettings())
    starts = {r.start for r in found.runs}
    assert None in starts
    assert len(starts) == 1 + min(STARTS, rows.n_features)
    best = min(float(s.min()) for s in found.scores)
    assert found.scores[found.run][found.round] == best


def test_columns_only_leave_at_the_end(rows):
    found = run(rows, LoopSettings())
    chosen = found.runs[found.run].rounds[found.round].fit.support
    assert not (found.answer.fit.support & ~chosen).any()


def test_hard_rows_are_in_one_environment(rows):
    answer = run(rows, replace(FIXED, assignment="hard")).answer
    assert isinstance(answer.partition, HardPartition)
    shares = answer.partition.responsibilities(rows.X, rows.y)
    assert set(np.unique(shares)) == {0.0, 1.0}
    assert answer.environments.weight.sum() == pytest.approx(len(rows.X))


def test_gates_of_a_group_move_together(rows):
    groups = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])
    found = joint_loop(rows, Gaussian(), groups, FIXED)
    assert found.answer.fit.support.shape == (4,)


def test_effects_that_look_stable_leave_in_environments_of_their_own():
    X, y, _ = load_task("anti_causal", seed=80003, n_phi=5, n_psi=5).train
    rows = ArrayBlocks((X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std())
    found = run(rows, LoopSettings())
    chosen = found.runs[found.run].rounds[found.round].fit.support
    assert chosen[5:].any()
    np.testing.assert_array_equal(found.answer.fit.support, np.arange(10) < 5)
