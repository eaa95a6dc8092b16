"""Imports may only point down the list of layers."""

import ast
from pathlib import Path

import hetrisk

ROOT = Path(hetrisk.__file__).parent
LEVEL = {
    "atomic": 0,
    "core": 0,
    "blocks": 1,
    "estimators": 2,
    "datasets": 2,
    "tables": 2,
    "modelfile": 3,
    "baselines": 3,
    "metrics": 3,
    "compare": 4,
    "plotting": 5,
    "reproduce": 4,
    "report": 4,
    "monitoring": 5,
    "bench": 5,
    "cli": 6,
}
# Inside core, a room imports itself and the rooms named here.
NUMERICS, MIXTURE, RESULT, THRESHOLDS = "numerics", "mixture", "result", "thresholds"
ROOMS = {
    NUMERICS: set(),
    THRESHOLDS: {NUMERICS},
    RESULT: {NUMERICS},
    MIXTURE: {NUMERICS, RESULT},
    "paper": {NUMERICS, MIXTURE, RESULT},
    "reach": {NUMERICS, RESULT, THRESHOLDS},
    "sources": {NUMERICS, MIXTURE, RESULT, THRESHOLDS, "reach"},
    "drift": {NUMERICS},
}
# Above the rooms of core: they may import any of them.
DRIVERS = {"search", "given", "inferred", "pricing"}
MODULE, FUNCTION = 400, 50  # lines, at most
CORE_MAY_IMPORT = {"__future__", "numpy", "scipy", "hetrisk"}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def core_rooms() -> dict[Path, str]:
    """Every module of core, and the room it stands in."""
    found = {}
    for path in modules():
        parts = path.relative_to(ROOT).parts
        if parts[0] == "core" and parts[1:] != ("__init__.py",):
            found[path] = parts[1].removesuffix(".py")
    return found


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "hetrisk":
                names |= {f"hetrisk.{alias.name}" for alias in node.names}
    return names


def test_every_module_has_a_layer():
    assert {layer(path) for path in modules()} <= set(LEVEL)


def test_no_upward_import():
    upward = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in modules()
        for name in imported(path)
        if name.startswith("hetrisk.") and LEVEL.get(name.split(".")[1], -1) > LEVEL[layer(path)]
    ]
    assert not upward


def test_every_module_of_core_has_a_room():
    assert set(core_rooms().values()) <= set(ROOMS) | DRIVERS


def test_the_rooms_of_core_import_only_the_rooms_below():
    crossing = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path, room in core_rooms().items()
        if room not in DRIVERS
        for name in imported(path)
        if name.startswith("hetrisk.core.") and name.split(".")[2] not in ROOMS[room] | {room}
    ]
    assert not crossing


def test_core_needs_only_numpy_and_scipy():
    import sys

    allowed = CORE_MAY_IMPORT | set(sys.stdlib_module_names)
    foreign = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in modules()
        if layer(path) == "core"
        for name in imported(path)
        if name.split(".")[0] not in allowed
    ]
    assert not foreign


def longest(path: Path) -> list[tuple[str, int]]:
    """Functions of a module, and their lines without the docstring."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                first = node.body[0]
                lines -= (first.end_lineno or 0) - first.lineno + 1
            found.append((f"{path.relative_to(ROOT)}: {node.name}", lines))
    return found


def test_modules_and_the_functions_of_core_are_short_enough_to_be_read():
    long_modules = [path for path in modules() if len(path.read_text().splitlines()) > MODULE]
    assert not long_modules
    functions = [found for path in core_rooms() for found in longest(path)]
    assert [name for name, lines in functions if lines > FUNCTION] == []
