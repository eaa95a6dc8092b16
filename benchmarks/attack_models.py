"""Attack model files: crafted, mutated, damaged. Nothing may run, crash, hang or fill the memory.

Every file is opened in a child process with limits on time and memory; what opens must predict,
and every command of the command line must take it or refuse it in a sentence. Run it with

    python benchmarks/attack_models.py --count 2000 --out models.json

on any versions `pyproject.toml` allows. The exit code is 1 if anything did not hold; HETRISK_KEEP
names a folder for the files that did not.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import random
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

import hetrisk
from attacking import Tally, in_child, options
from hetrisk import modelfile
from hetrisk.cli.app import cli
from hetrisk.core.predictor import HingesPart, LevelPart, LinearPart, Predictor, TreesPart, single
from hetrisk.core.result import (
    ColumnEvidence,
    Expected,
    Forecast,
    Horizon,
    Ranked,
    ReachLine,
    Tested,
)
from hetrisk.modelfile import Deployed
from hetrisk.report import render, stored
from hetrisk.tables.encoder import TableEncoder
from hetrisk.tables.time import TimeColumn

ODD = [
    *(None, True, -1, 0, 1, 2, 2**31, 2**63, 2**70, -(2**63), 1e308, -0.0, 1e-320),
    *("", "x", "\x00", "../..", "nan", "inf", "__class__", "os.system", "builtins.eval"),
    *([], {}, [[]], [None] * 50, "9" * 5000, "softmax", "labels", "trees", "level"),
    {"shape": [1 << 39], "at": 0},
    {"shape": [1, 1], "at": 0},
    {"kind": "linear"},
    ["a", "b"],
    {"x": 1},
]
NUMBERS = [-1, 0, 1, 2, 5, 1 << 31, 1 << 62, -(1 << 62)]
FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.5]


def table(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    dates = pd.date_range("2019-04-14", periods=n).strftime("%Y-%m-%d")
    kind, sold = rng.choice(["u", "v", "w"], n), rng.choice(["yes", "no"], n)
    opens = [f"{h % 24:02}:30" for h in range(n)]
    made = made.assign(when=dates, site=rng.choice(["p", "q", "new"], n), kind=kind)
    return made.assign(sold=sold, opens=opens)


def grown(rng: np.random.Generator, K: int, uses_time: bool = False) -> TreesPart:
    """Return eight trees of seven nodes."""
    at = np.arange(56)
    inner = at % 7 < 3
    left = np.where(inner, at + at % 7 + 1, at)
    return TreesPart(
        feature=rng.integers(0, 3 + uses_time, 56),
        threshold=rng.normal(size=56),
        left=left,
        right=left + inner,
        missing_left=rng.integers(0, 2, 56),
        value=rng.normal(size=56),
        root=at[::7],
        output=rng.integers(0, K, 8),
        base=np.zeros(K),
        depth=3,
        n_features=3,
        uses_time=uses_time,
    )


def of_table() -> Deployed:
    """Return a model that encodes every kind of column."""
    rng = np.random.default_rng(0)
    encoder = TableEncoder().fit(table(80))
    names = encoder.encoding_.feature_names
    line = LinearPart(rng.normal(size=(len(names), 1)), np.zeros(1), np.zeros(1))
    return Deployed(
        kind="numbers",
        target="y",
        predictor=single(line),
        columns=names,
        encoder=encoder.encoding_,
    )


def by_hand() -> Iterator[tuple[str, Deployed]]:
    """Yield models of every part the predictor knows."""
    rng = np.random.default_rng(0)
    for K in (1, 3):
        slope = np.full(K, 0.1)
        line = LinearPart(rng.normal(size=(3, K)), np.zeros(K), slope, 18_000.0)
        level = LevelPart(rng.normal(size=(2, K)), np.zeros(K))
        bent = HingesPart(
            rng.integers(0, 3, 6),
            rng.normal(size=6),
            rng.normal(size=(6, K)),
            np.zeros(K),
            3,
        )
        members = ((line, level), (bent, grown(rng, K)), (grown(rng, K, uses_time=True),))
        link = "identity" if K == 1 else "softmax"
        widths = np.array([[1.0, 1, 1, 1, 2, 3, 4, 5], [3.0, 3, 3, 3, 4, 5, 6, 7]])
        yield (
            f"by hand, {K} scores",
            Deployed(
                kind="numbers" if K == 1 else "labels",
                target="y",
                predictor=Predictor(members, np.array([0.5, 0.25, 0.25]), link),
                columns=("a", "b", "c"),
                time_name="when",
                time=TimeColumn(np.empty(0), "when", "date", "ISO8601"),
                environment_name="site",
                environment_levels=("p", "q"),
                classes=None if K == 1 else np.array(["x", "y", "z"]),
                intervals=widths if K == 1 else None,
                summary=summary("RMSE" if K == 1 else "log loss"),
            ),
        )


def summary(unit: str) -> dict[str, object]:
    """Return what a page is made of, with something of everything."""
    expected = Expected(1.0, 0.5, 2.0)
    ahead = tuple(Horizon(h, f"{h:g} years", expected, expected, expected, 4) for h in (1.0, 2.0))
    names = ("constant", "plain", "ridge")
    return {
        "origin": {
            "source": "t.csv",
            "target": "y",
            "task": "regression",
            "reason": "it holds numbers",
            "n_rows": 40,
            "n_columns": 6,
            "time": "when",
            "environment": "site",
            "notes": (("a", "read as a number"),),
            "left_out": (("id", "it differs in every row"),),
            "leaks": ("'b' gives it away",),
        },
        "reach": 1.0,
        "ranking": tuple(
            Ranked(name, 1.0, 2.0, 4.0, 0.5, 0.4, 0.6, name == "ridge", "") for name in names
        ),
        "backtest": tuple(
            Tested(name, str(year), str(year - 1), 1.0, False, 7, 1.5 + year % 2)
            for name in names
            for year in range(2001, 2006)
        ),
        "forecast": Forecast(1.0, 0.5, 2.0, expected, expected, ahead, 3.0, unit, 4),
        "reach_curve": tuple(ReachLine(float(t), 1.0 + t, 1.0 + 2 * t, 3.0) for t in range(4)),
        "break_even": 0.5,
        "columns": tuple(
            {"name": c, "weight": 0.5, "p_slope": 0.1, "slopes": (0.1, 0.9), "reason": "steady"}
            for c in "abc"
        ),
        "evidence": (ColumnEvidence("a", True, (1.0, -1.0), 0.2, 0.1, 0.9, "it stays"),),
        "differences": ({"environment": "p", "n_rows": 20, "sentences": ("a is higher",)},),
        "cautions": ("rows are few",),
        "advice": ("name a time",),
        "quality": {
            "outcome": "" if unit == "RMSE" else "x",
            **dict.fromkeys(("predicted", "observed", "low", "high"), (0.1, 0.5, 0.9)),
            "count": (10, 10, 20),
            "held_out": True,
        },
    }


def fitted(shop: Path) -> Iterator[tuple[str, bytes]]:
    """Yield files as the command line writes them, with a table beside them."""
    frame = table(300)
    rng = np.random.default_rng(1)
    years = np.sort(rng.integers(2001, 2013, len(frame))).astype(str)
    score = 2 * frame["a"] - frame["b"] + (frame["kind"] == "u") + rng.normal(size=len(frame))
    label = np.where(score > 1, "high", np.where(score < -1, "low", "even"))
    frame = frame.assign(when=years + "-06-01", y=score, label=label)
    frame.to_csv(shop / "table.csv", index=False)
    ways = {
        "time and site": ["-t", "y", "--drop", "label", "--time", "when", "-e", "site"],
        "labels of sites": ["-t", "label", "--drop", "y", "--environment", "site"],
        "trees": ["-t", "y", "--drop", "label", "--time", "when", "--candidate", "trees"],
        "alone": ["-t", "y", "--drop", "label"],
    }
    for name, way in ways.items():
        out = shop / "sound.hetrisk"
        given = ["fit", shop / "table.csv", *way, "--out", out]
        done = CliRunner().invoke(cli, [str(part) for part in given])
        assert done.exit_code == 0, done.stderr
        yield name, out.read_bytes()


def models(shop: Path) -> Iterator[tuple[str, bytes]]:
    """Yield models of every make, as files."""
    for name, deployed in (*by_hand(), ("of a table", of_table())):
        yield name, modelfile.dumps(deployed)
    yield from fitted(shop)


def used(deployed: Deployed) -> None:
    """Ask a model everything it can be asked in Python."""
    frame = table()
    deployed.predict(frame)
    if deployed.classes is not None:
        deployed.predict_proba(frame)
    elif deployed.intervals is not None:
        deployed.predict_interval(frame, 0.9)
    page = stored.from_record(deployed.summary)
    if page is not None:
        assert "<script>alert" not in render(page)
    modelfile.loads(modelfile.dumps(deployed))


def commanded(file: bytes, shop: Path) -> str:
    """Give the file to every command; return what is wrong with what they said."""
    model, data, out = shop / "m.hetrisk", shop / "table.csv", shop / "out"
    model.write_bytes(file)
    for command in (
        ["predict", model, data, "--out", shop / "p.csv"],
        ["predict", model, data, "--json"],
        ["check", model, data, "--report", shop / "c.html"],
        ["check", model, data, "--json"],
        ["report", model, "--out", shop / "r.html", "--force"],
        ["adapt", model, data, "--out", out],
    ):
        given = [str(part) for part in command]
        done = CliRunner().invoke(cli, given)
        if done.exit_code not in (0, 1, 2, 3, 4) or "unforeseen" in done.stderr:
            return f"{given[0]}: exit {done.exit_code}, {done.stderr[-600:]}"
        acting = set("\x1b\x07\x08\x0b\x0c\x7f\u202e") & set(done.stderr)
        if acting or ("--json" not in given and set("\x1b\x07\u202e") & set(done.stdout)):
            return f"{given[0]}: characters that act reach the terminal"
    return ""


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def places(node: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield the way to every node of a tree of JSON."""
    yield path
    if isinstance(node, (dict, list)):
        for key, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(part, (*path, key))


def at(tree: object, path: tuple) -> object:
    for key in path:
        tree = tree[key]
    return tree


def mutated_records(data: bytes, rng: random.Random) -> bytes:
    """Change one to three nodes: another value, another node of the tree, a part gone or added."""
    parts = unpacked(data)
    tree = json.loads(parts["records.json"])
    for _ in range(rng.randint(1, 3)):
        every = list(places(tree))
        path = rng.choice([p for p in every if p] or [()])
        if not path:
            break
        home, key = at(tree, path[:-1]), path[-1]
        what = rng.random()
        if what < 0.45:
            home[key] = copy.deepcopy(rng.choice(ODD))
        elif what < 0.7:
            home[key] = copy.deepcopy(at(tree, rng.choice(every)))
        elif what < 0.85:
            del home[key]
        elif isinstance(home, dict):
            home[rng.choice(["x", "__class__", "predict", "kind", "of", "at"])] = rng.choice(ODD)
        else:
            home.append(copy.deepcopy(rng.choice(ODD)))
    return packed({**parts, "records.json": json.dumps(tree).encode()})


def nudged(data: bytes, rng: random.Random) -> bytes:
    """Change one leaf of the records to another of its type: what a reader is likely to open."""
    parts = unpacked(data)
    tree = json.loads(parts["records.json"])
    leaves = [p for p in places(tree) if p and not isinstance(at(tree, p), (dict, list))]
    for path in rng.sample(leaves, min(len(leaves), rng.randint(1, 3))):
        home, key = at(tree, path[:-1]), path[-1]
        kind = type(home[key])
        values = {
            bool: [True, False],
            int: NUMBERS,
            float: [0.0, -1.0, 1e300, 5e-324, "nan"],
            str: [
                "",
                "x",
                "nan",
                "inf",
                "\x1b[31m",
                "<script>alert(1)",
                "é" * 300,
                "numbers",
                "2020-01-01",
            ],
        }.get(kind, [None, "x", 0])
        home[key] = rng.choice(values)
    return packed({**parts, "records.json": json.dumps(tree).encode()})


def mutated_arrays(data: bytes, rng: random.Random) -> bytes:
    """Overwrite some numbers of the arrays, with sound checksums."""
    parts = unpacked(data)
    raw = bytearray(parts["arrays.bin"])
    for _ in range(rng.randint(1, 6)):
        where = rng.randrange(0, max(len(raw) - 8, 1), 8)
        if rng.random() < 0.5:
            value = rng.choice([*NUMBERS, rng.getrandbits(63)]).to_bytes(8, "little", signed=True)
        else:
            value = np.float64(rng.choice([*FLOATS, rng.gauss(0, 10)])).tobytes()
        raw[where : where + 8] = value[: len(raw) - where]
    return packed({**parts, "arrays.bin": bytes(raw)})


def flipped(data: bytes, rng: random.Random) -> bytes:
    raw = bytearray(data)
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def spliced(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:]


DRAWN = {
    "records mutated": (mutated_records, 0.35),
    "a leaf of the records nudged": (nudged, 0.3),
    "arrays mutated": (mutated_arrays, 0.2),
    "bit flipped": (flipped, 0.05),
    "cut off": (cut, 0.05),
    "spliced": (spliced, 0.05),
}


class Bomb:
    def __reduce__(self):
        import os

        return (os.system, ("touch /tmp/hetrisk-was-here",))


def edited(data: bytes, change: Callable[[dict, dict], None]) -> bytes:
    """Return a file whose records went through ``change``, which also gets the predictor."""
    parts = unpacked(data)
    tree = json.loads(parts["records.json"])
    change(tree, tree["predictor"])
    return packed({**parts, "records.json": json.dumps(tree).encode()})


def overflows(data: bytes) -> Iterator[bytes]:
    """Yield files that made compiled code write or read beyond its arrays in earlier versions.

    More scores than classes, children and features outside, models nested in models.
    """

    def trees(predictor: dict) -> dict:
        members = predictor["predictor"]["members"]
        return next(part for member in members for part in member if part["kind"] == "trees")

    for scores in (0, 2, 4, 64, 10_000, 1 << 31, 1 << 62):
        yield edited(data, lambda tree, p, k=scores: p.update(n_scores=k))
        yield edited(data, lambda tree, p, k=scores: trees(p)["base"].update(shape=[k]))
    for width in (0, 2, 4, 1 << 20, 1 << 31, 1 << 62):
        yield edited(data, lambda tree, p, d=width: trees(p).update(n_features=d))
        yield edited(data, lambda tree, p, d=width: trees(p).update(depth=-1 - d))
        for name in ("left", "right", "feature", "value", "root", "output"):
            yield edited(data, lambda tree, p, d=width, n=name: trees(p)[n].update(shape=[d]))
    yield edited(data, lambda tree, p: p.update(columns=[f"x{j}" for j in range(5_000)]))
    yield edited(data, lambda tree, p: p.update(classes=["x", "y"]))
    yield edited(data, lambda tree, p: trees(p).update(base=trees(p).copy()))
    yield edited(data, lambda tree, p: p.update(predictor=copy.deepcopy(tree)))
    yield edited(data, lambda tree, p: p["predictor"].update(n_jobs=400, verbose=9))


def bombs(data: bytes) -> Iterator[bytes]:
    """Yield small files that ask for much memory."""
    parts = unpacked(data)
    yield packed({**parts, "arrays.bin": bytes(1 << 27)}, zipfile.ZIP_DEFLATED)
    for text in (b"[" * 200_000 + b"]" * 200_000, b"[" + b"[]," * 5_000_000 + b"[]]"):
        yield packed({**parts, "records.json": text})
    yield packed({**parts, "records.json": b"1" * 4_000_000})
    yield packed({**parts, "records.json": b'{"a":' * 100_000 + b"1" + b"}" * 100_000})
    whole = {"shape": [len(parts["arrays.bin"]) // 8], "at": 0}

    def shared(tree: dict, predictor: dict) -> None:
        line = copy.deepcopy(predictor["predictor"]["members"][0][0])
        predictor["predictor"]["members"] = [[line] * 100] * 1000

    def giant(tree: dict, predictor: dict) -> None:
        predictor["predictor"]["members"][0][0]["coef"] = {"shape": [1 << 30, 1 << 30], "at": 0}

    def repeated(tree: dict, predictor: dict) -> None:
        predictor["predictor"]["weight"] = whole
        predictor["predictor"]["members"][0][0]["intercept"] = whole

    yield from (edited(data, change) for change in (shared, giant, repeated))


def crafted(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield files made with intent."""
    parts = unpacked(data)
    for protocol in range(6):
        bomb = pickle.dumps(Bomb(), protocol)
        yield "pickle", bomb
        yield "pickle", packed({**parts, "records.json": bomb})
        yield "pickle", packed({**parts, "arrays.bin": bomb})
    label = json.dumps({"format": 2, "versions": {"hetrisk": "0.2.0"}}).encode()
    early = {"hetrisk.json": label, "model.json": b"{}", "arrays.bin": b""}
    yield "early format", packed(early)
    yield "early format", packed({"schema.json": b"{}", "hetrisk.json": label})
    yield from (("overflow", file) for file in overflows(data))
    yield from (("memory bomb", file) for file in bombs(data))


def tries(count: int, seed: int, shop: Path) -> Iterator[tuple[str, bytes]]:
    rng = random.Random(seed)
    files = list(models(shop))
    for name, data in files:
        yield f"untouched ({name})", data
    yield from crafted(files[0][1])
    yield from crafted(files[1][1])
    names, shares = list(DRAWN), [share for _, share in DRAWN.values()]
    for _ in range(count):
        _, data = rng.choice(files)
        kind = rng.choices(names, shares)[0]
        yield kind, DRAWN[kind][0](data, rng)


def opened(file: bytes, shop: Path | None = None) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = modelfile.loads(file)
        except modelfile.ModelFileError as error:
            return "refused" if str(error).isprintable() else "refused in more than a sentence"
        outcome = "opened and used"
        try:
            used(model)
        except ValueError as error:  # a sentence about the table, not a fault
            if not _is_sentence(error):
                return f"fault: {error!r}"
            outcome = "opened, and the table refused"
        wrong = "" if shop is None else commanded(file, shop)
        return f"fault: {wrong}" if wrong else outcome


def _is_sentence(error: ValueError) -> bool:
    text = str(error)
    return type(error).__module__.startswith("hetrisk") and text.isprintable()


CERTAIN = ("pickle", "early format", "memory bomb", "overflow", "cut off")


def main() -> int:
    given = options(__doc__.splitlines()[0], 2000)
    tally, end = Tally(), time.monotonic() + given.seconds
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        shop = Path(place)
        for kind, file in tries(given.count, given.seed, shop):
            outcome, detail = in_child(lambda file=file: opened(file, shop), writes=shop)
            held = outcome in ("refused", "opened and used", "opened, and the table refused")
            if kind.startswith("untouched"):
                held = outcome.startswith("opened")
            elif kind in CERTAIN:
                held = outcome == "refused"
            tally.add(kind, outcome, held, detail)
            if not held and (kept := os.environ.get("HETRISK_KEEP")):
                Path(kept, f"{len(tally.failures)}.hetrisk").write_bytes(file)
            if time.monotonic() > end:
                print("stopped: out of time")
                break
    versions = {"numpy": np.__version__, "pandas": pd.__version__}
    print(f"hetrisk {hetrisk.__version__} on {versions}")
    return tally.report(given.out, versions=versions)


if __name__ == "__main__":
    raise SystemExit(main())
