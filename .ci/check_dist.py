"""Check what goes into the wheel and the source archive.

Usage: python .ci/check_dist.py dist
"""

import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

LARGEST_WHEEL = 2_000_000  # bytes: the library is text and one small table
SHIPPED_DATA = {"hetrisk/datasets/economy.csv.gz"}  # what `hetrisk demo` shows
DATA_SUFFIXES = {".csv", ".gz", ".parquet", ".zip", ".npz", ".npy", ".pkl", ".arff", ".xlsx"}
NEEDED = {"hetrisk/__init__.py", "hetrisk/py.typed", "hetrisk/report/page.html"}
NEEDED_IN_SOURCE = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"}


def wheel_faults(path: Path) -> list[str]:
    """Return what is wrong with a wheel, in sentences."""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    faults = [f"{path.name} lacks {name}." for name in sorted(NEEDED - names)]
    for name in sorted(names):
        parts = PurePosixPath(name).parts
        if parts[0] != "hetrisk" and not parts[0].endswith(".dist-info"):
            faults.append(f"{path.name} holds {name}, which is not part of the package.")
        if {"tests", "benchmarks"} & set(parts):
            faults.append(f"{path.name} holds {name}: no tests or benchmarks in a wheel.")
        if PurePosixPath(name).suffix in DATA_SUFFIXES and name not in SHIPPED_DATA:
            faults.append(f"{path.name} holds data: {name}.")
    if path.stat().st_size > LARGEST_WHEEL:
        faults.append(f"{path.name} has {path.stat().st_size:,} bytes; at most {LARGEST_WHEEL:,}.")
    return faults


def source_faults(path: Path) -> list[str]:
    """Return what is wrong with a source archive, in sentences."""
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    faults = [f"{path.name} lacks {name}." for name in sorted(NEEDED_IN_SOURCE - names)]
    made = sorted(n for n in names if n.startswith(("out/", "docs/gallery/", ".venv/")))
    return faults + [f"{path.name} holds {name}, which is made, not written." for name in made]


def main(folder: Path) -> int:
    """Print what is wrong, or what is there; return the exit code."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        print(f"{folder} must hold one wheel and one source archive.")
        return 1
    faults = wheel_faults(wheels[0]) + source_faults(sources[0])
    print("\n".join(faults) or f"{wheels[0].name} and {sources[0].name} hold what they should.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
