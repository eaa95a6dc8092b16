"""The quick part of `benchmarks/attack_models.py`: what it made of earlier versions, and chance."""

import random
import sys
import warnings
from pathlib import Path

import pytest

from hetrisk import modelfile

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
attacking = pytest.importorskip("attacking", reason="needs the benchmarks, and a system that forks")
attack = pytest.importorskip("attack_models")


@pytest.fixture(scope="module")
def files():
    made = (*attack.by_hand(), ("of a table", attack.of_table()))
    return [modelfile.dumps(deployed) for _, deployed in made]


def test_files_made_with_intent_are_refused_and_nothing_runs(files):
    """Writes beyond arrays, memory bombs, pickles: in a child that watches, with limits."""

    def refused() -> str:
        made = [kind for kind, file in attack.crafted(files[0]) if _opens(file)]
        return "refused" if not made else f"opened: {made}"

    outcome, detail = attacking.in_child(refused)
    assert (outcome, detail) == ("refused", "")
    assert not Path("/tmp/hetrisk-was-here").exists()


def test_the_watch_sees_what_a_loader_that_trusts_its_file_does():
    def trusting() -> str:
        import pickle

        pickle.loads(pickle.dumps(attack.Bomb()))
        return "opened"

    outcome, detail = attacking.in_child(trusting)
    assert outcome == "breach"
    assert "os.system" in detail
    Path("/tmp/hetrisk-was-here").unlink(missing_ok=True)


@pytest.mark.parametrize("kind", attack.DRAWN)
def test_files_changed_by_chance_are_refused_or_used(kind, files):
    rng = random.Random(0)
    for _ in range(100):
        file = attack.DRAWN[kind][0](rng.choice(files), rng)
        outcome = attack.opened(file)
        assert outcome in ("refused", "opened and used", "opened, and the table refused")


def _opens(file: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            modelfile.loads(file)
        except modelfile.ModelFileError:
            return False
    return True
