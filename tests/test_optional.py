"""Without the optional dependencies everything that does not need them works."""

import subprocess
import sys

import pytest

from hetrisk.datasets import load_task

OPTIONAL = ("pyarrow", "dask", "distributed", "matplotlib", "polars", "statsmodels", "psutil")
# Absent, not None in sys.modules: scikit-learn takes what is there for the library itself.
BARE = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def bare(code, folder):
    """Run code in a Python that has none of the optional dependencies."""
    return subprocess.run(
        [sys.executable, "-c", BARE + code], cwd=folder, capture_output=True, text=True, check=False
    )


def hetrisk(folder, *arguments):
    done = bare(f"from hetrisk.cli import main; sys.argv[1:] = {arguments!r}; main()", folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def table(tmp_path):
    task = load_task("selection_bias", seed=0)
    lines = [",".join([*task.feature_names, "y"])]
    rows = zip(task.train.X[:400], task.train.y[:400], strict=True)
    lines += [",".join(f"{value:.4f}" for value in [*x, y]) for x, y in rows]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    return tmp_path


def test_a_table_is_fitted_explained_kept_and_predicted(table):
    fit = ("fit", "table.csv", "--target", "y", "--out", "m.hetrisk", "--report", "m.html")
    assert "Written: m.hetrisk" in hetrisk(table, *fit)
    assert (table / "m.html").stat().st_size > 10_000
    assert len(hetrisk(table, "predict", "m.hetrisk", "table.csv").splitlines()) == 401


@pytest.mark.parametrize("name", ["ParquetBlocks", "DaskBlocks"])
def test_what_needs_them_says_so(tmp_path, name):
    done = bare(f"from hetrisk.blocks import {name}", tmp_path)
    assert done.returncode == 1
    assert "which is not installed: pip install 'hetrisk[" in done.stderr
