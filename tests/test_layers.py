"""Imports may only point down the list of layers; inside core, down the list of rooms."""

import ast
import sys
from pathlib import Path

import hetrisk

ROOT = Path(hetrisk.__file__).parent
# From the ground up. What stands in one line does not import each other.
LAYERS = (
    ("atomic", "core"),
    ("columns",),
    ("blocks", "tables"),
    ("estimators",),
    ("datasets", "baselines", "metrics"),
    ("modelfile",),
    ("plotting", "report", "monitoring", "reproduce"),
    ("cli",),
)
# Inside a layer some may lean on a neighbour, and on it alone.
NEIGHBOURS = {
    ("metrics", "datasets"),
    ("baselines", "metrics"),
    ("plotting", "report"),  # pictures and displays draw from one description
    ("monitoring", "report"),
    ("reproduce", "plotting"),
    ("reproduce", "report"),
}
# A room of core imports itself and the rooms named here.
ROOMS: dict[str, set[str]] = {
    "numerics": set(),
    "records": {"numerics"},
    "result": {"numerics", "records"},
    "predictor": {"numerics"},
    "mixture": {"numerics", "result"},
    "paper": {"numerics", "mixture", "result"},
    "environments": {"numerics", "mixture", "result"},
    "stable": {"numerics", "mixture", "environments", "result", "predictor"},
    "backtest": {"numerics", "environments", "stable", "result", "predictor", "records"},
    "drift": {"numerics", "result"},
}
CORE_MAY_IMPORT = {"__future__", "numpy", "scipy", "hetrisk"}
RECORDS = ("core/records.py", "pandas")  # records convert to a frame where one is asked for


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def height(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "hetrisk":
                names |= {f"hetrisk.{alias.name}" for alias in node.names}
    return names


def arrows():
    """(module, layer it stands in, layer it imports), within the package."""
    known = {name for names in LAYERS for name in names}
    for path in modules():
        for name in imported(path):
            target = name.split(".")[1] if name.startswith("hetrisk.") else ""
            if target in known and target != layer(path):
                yield path.relative_to(ROOT), layer(path), target


def test_every_module_has_a_layer():
    assert {layer(path) for path in modules()} <= {name for names in LAYERS for name in names}


def test_imports_point_down():
    wrong = [
        f"{path} -> {target}"
        for path, here, target in arrows()
        if height(target) >= height(here) and (here, target) not in NEIGHBOURS
    ]
    assert not wrong


def test_tables_and_estimators_could_be_packages_of_their_own():
    pairs = {(here, target) for _, here, target in arrows()}
    assert ("tables", "estimators") not in pairs
    below = ("atomic", "columns")
    wrong = [f"{p} -> {t}" for p, h, t in arrows() if h == "tables" and t not in below]
    assert not wrong


def test_the_rooms_of_core_import_only_the_rooms_below():
    wrong = []
    for path in modules():
        parts = path.relative_to(ROOT).parts
        if parts[0] != "core" or parts[1:] == ("__init__.py",):
            continue
        room = parts[1].removesuffix(".py")
        allowed = ROOMS.get(room, set()) | {room}
        wrong += [
            f"{path.relative_to(ROOT)} -> {name}"
            for name in imported(path)
            if name.startswith("hetrisk.core.") and name.split(".")[2] not in allowed
        ]
        wrong += [str(path.relative_to(ROOT))] if room not in ROOMS else []
    assert not wrong


def test_core_needs_only_numpy_and_scipy():
    allowed = CORE_MAY_IMPORT | set(sys.stdlib_module_names)
    foreign = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in modules()
        if layer(path) == "core"
        for name in imported(path)
        if name.split(".")[0] not in allowed
        and (path.relative_to(ROOT).as_posix(), name) != RECORDS
    ]
    assert not foreign
