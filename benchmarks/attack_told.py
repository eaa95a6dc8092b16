"""Attack what a table may tell beside its features: environments, hints, weights, decimal marks.

The features are sound; the columns named by ``--environment``, ``--hint`` and ``--weight`` are not:
all missing, one value, all different, negative, infinite, beyond any number, of control characters
or of letters without width. Each table goes to ``fit`` or ``compare``, whole or in blocks (the
memory the command is told of is lowered), as text, Parquet or a folder whose files disagree. An
answer holds as in `attack_tables`; besides, a model that was written must open again, and predict.
Run it with

    python benchmarks/attack_told.py --count 1000 --out told.json
"""

from __future__ import annotations

import os
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from attack_tables import NAMES, digest, faults
from attacking import in_batches, options
from hetrisk import modelfile
from hetrisk.cli.app import cli
from hetrisk.tables import inputs

MEMORY = inputs.memory_limit()
BATCH = 50
Column = Callable[[random.Random, int], list]


def _of(*cells: object) -> Column:
    return lambda rng, n: [rng.choice(cells) for _ in range(n)]


ODD: dict[str, Column] = {
    "all missing": _of(None),
    "nearly all missing": lambda rng, n: [None] * (n - 1) + ["x"],
    "empty text": _of("", " "),
    "one value": _of("x"),
    "one number": _of(7),
    "all different": lambda rng, n: [f"v{i}" for i in range(n)],
    "all different numbers": lambda rng, n: [rng.gauss(0, 1) for _ in range(n)],
    "one row apart": lambda rng, n: ["a"] * (n - 1) + ["b"],
    "a row each of many": lambda rng, n: [f"v{i // 2}" for i in range(n)],
    "negative": _of(-1, 2, 3),
    "zeros": _of(0),
    "nearly all zeros": lambda rng, n: [0] * (n - 1) + [1],
    "infinite": _of(1, float("inf")),
    "infinite text": _of("1", "inf", "-inf"),
    "not numbers": _of(1.0, float("nan")),
    "huge": _of(1e308, 1e307),
    "tiny": _of(5e-324, 1e-320),
    "far apart": _of(1e-300, 1e300),
    "beyond numbers": _of("1e999", "1"),
    "control characters": _of("\x1b[31mred", "\x07", "a\tb", "a\rb", "a\nb"),
    "no width": _of("a", "a\u200b", "a\u200d", "\u202ea", "\ufeffa", "\u2060"),
    "spaces": _of("a", " a", "a ", "a\u00a0"),
    "long": _of("x" * 5000, "x" * 4999 + "y"),
    "page": _of("<script>alert(1)</script>", "{{ 7*7 }}", "'\"><img src=x>", "&amp;"),
    "truths": _of(True, False),
    "dates": _of("2020-01-01", "2021-05-06", "2022-02-30"),
    "dates of all kinds": _of("2020-01-01", "31.12.1999", "1/2/03", "Tuesday"),
    "beyond dates": _of("0001-01-01", "9999-12-31", "-0044-03-15"),
    "commas": _of("1,234", "1,5", "1.234,5", "2"),
    "the word for missing": _of("(missing)", None, "x"),
    "NUL": _of("a", "a\0", "\0"),
    "sound": _of("p", "q", "r"),
    "sound weights": lambda rng, n: [rng.random() + 0.1 for _ in range(n)],
}


def table(rng: random.Random) -> tuple[pd.DataFrame, dict[str, str]]:
    """A table of sound features, and what the three columns beside them are filled with."""
    n = rng.choice([12, 30, 60, 200])
    draws = np.random.default_rng(rng.getrandbits(32))
    a, b = draws.normal(size=(2, n))
    noise = draws.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": b, "kind": draws.choice(list("pqr"), n), "y": 2 * a - b})
    frame["y"] += noise
    if rng.random() < 0.25:
        frame["y"] = np.where(frame["y"] > 0, "up", "down")
    fills = {}
    for role in ("place", "hint", "w"):
        name = rng.choice(NAMES) if rng.random() < 0.1 else role
        if name in frame.columns:
            name = role
        fills[name] = rng.choice(list(ODD))
        frame[name] = pd.Series(ODD[fills[name]](rng, n), dtype=object)
    return frame, fills


def write(frame: pd.DataFrame, folder: Path, rng: random.Random) -> Path:
    """Write a table as text, Parquet, or files that need not agree, and return where."""
    kind = rng.choice(["csv", "csv", "parquet", "folder"])
    path = folder / f"t.{kind}"
    typed = frame.infer_objects()
    try:
        if kind == "parquet":
            typed.to_parquet(path)
            return path
        if kind == "folder":
            path.mkdir()
            half = len(frame) // 2
            frame.iloc[:half].infer_objects().to_parquet(path / "a.parquet")
            frame.iloc[half:].infer_objects().to_parquet(path / "b.parquet")
            return path
    except (ValueError, TypeError, OverflowError):  # columns Parquet cannot hold
        path = folder / "t.csv"
    mark = rng.choice([",", ",", ";"])
    frame.to_csv(path, index=False, sep=mark, encoding="utf-8", errors="replace")
    return path


def arguments(data: Path, names: list[str], out: Path, rng: random.Random) -> list[str]:
    place, hint, weight = names
    if rng.random() < 0.1:  # one column twice, or one that has another part already
        place, hint, weight = (rng.choice([*names, "y", "a", "none"]) for _ in range(3))
    if rng.random() < 0.3:
        given: list[object] = ["compare", data, "-t", "y", f"--environment={place}", "-m", "erm"]
        extra = [[f"--hint={hint}", "-m", "hrm-hinted"], ["-m", "hrm-told"], ["--rows", "100"]]
        extra += [["--plot", out], ["--json"]]
    else:
        given = ["fit", data, "-t", "y", "--out", out]
        extra = [[f"--environment={place}"], [f"--hint={hint}"], [f"--weight={weight}"]]
        extra += [["--reach", rng.choice(["0", "1e9", "inf"])], ["--form", "directions"]]
        extra += [["--keep", rng.choice(["a", hint])], ["--category", rng.choice(["a", place])]]
        extra = [*rng.sample(extra[:3], rng.randint(1, 3)), *rng.sample(extra[3:], 1)]
    extra.append(["--decimal", rng.choice(["point", "comma"])])
    for more in rng.sample(extra, k=rng.randint(len(extra) // 2, len(extra))):
        given = [*given, *more]
    return [str(part) for part in given]


def attempt(rng: random.Random) -> tuple[str, str, str]:
    """One table, one command: its kind, what became of it, and what is wrong with that."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spool = folder / "spool"
        spool.mkdir()
        tempfile.tempdir = str(spool)
        frame, fills = table(rng)
        data = write(frame, folder, rng)
        before = digest(data)
        blocks = rng.random() < 0.5
        inputs.memory_limit = lambda: 100 if blocks else MEMORY
        out = folder / "out"
        given = arguments(data, list(fills), out, rng)
        result = CliRunner().invoke(cli, given)
        wrong = faults(result, folder)
        if digest(data) != before:
            wrong.append("an input was changed")
        if list(spool.iterdir()):
            wrong.append("temporary files are left")
        if given[0] == "fit" and result.exit_code == 0:
            wrong += unusable(out, frame)
        said = f"{given} {fills}\n{result.stderr[-600:]}"
        kind = f"{given[0]}, {'blocks' if blocks else 'whole'}"
        return kind, f"exit {result.exit_code}", "\n".join([*wrong, said]) if wrong else ""


def unusable(path: Path, frame: pd.DataFrame) -> list[str]:
    """What is wrong with a model that was written: it must open, and predict finite numbers."""
    try:
        found = modelfile.load(path).predict(frame.astype(object))
    except Exception as error:
        return [f"the model does not open or predict: {type(error).__name__}: {error}"]
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        return ["a prediction is not finite"]
    return []


def batch(seed: int, count: int) -> str:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    told = []
    for _ in range(count):
        home = tempfile.tempdir
        told.append(attempt(rng))
        tempfile.tempdir = home
    return "done\n" + "\x1e".join("\x1f".join(part) for part in told)


def main() -> int:
    given = options(__doc__.splitlines()[0], 500)
    with tempfile.TemporaryDirectory() as place:
        os.environ["TMPDIR"] = place
        tempfile.tempdir = place
        return in_batches(given, BATCH, batch, Path(place))


if __name__ == "__main__":
    raise SystemExit(main())
