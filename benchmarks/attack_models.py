"""Attack model files: crafted, mutated, damaged. Nothing may run, crash, hang or fill the memory.

Every file is opened in a child process; what opens must predict. Run it with

    python benchmarks/attack_models.py --count 2000 --out models.json

on any versions `pyproject.toml` allows. The exit code is 1 if anything did not hold.
"""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import sklearn
from sklearn import ensemble, linear_model

import hetrisk
from attacking import Tally, in_child, options
from hetrisk import HRMClassifier, HRMRegressor, InvariantRegressor, modelfile
from hetrisk.tables import Table
from hetrisk.tables.model import fit_table

ODD = [
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    2**70,
    -(2**63),
    1e308,
    -0.0,
    "",
    "x",
    "\x00",
    "../..",
    "__class__",
    "os.system",
    "builtins.eval",
    [],
    {},
    [[]],
    [None] * 50,
    "9" * 5000,
    {"is": "array", "type": "<f8", "shape": [1 << 39], "at": 0},
    {"is": "array", "type": "|O", "shape": [1], "at": 0},
    {"is": "hetrisk", "type": "hetrisk.tables.encoder.TableEncoder", "of": {}},
    {"is": "scikit-learn", "type": "SVR", "parameters": {}, "of": {}},
    {"is": "method", "of": ["os", "system"]},
]


def models() -> Iterator[tuple[str, bytes, Callable[[object], object]]]:
    """Yield models of every make, as files, with a way to use each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.abs(X[:, 0] - X[:, 1]) + 0.1 * rng.random(60)
    labels = np.where(y > 1, "b", np.where(y < 0.4, "a", "c"))
    finals = {
        "linear": None,
        "forest": ensemble.RandomForestRegressor(3, random_state=0),
        "boosted": ensemble.GradientBoostingRegressor(n_estimators=3),
        "histogram": ensemble.HistGradientBoostingRegressor(max_iter=3),
        "lasso": linear_model.Lasso(0.01),
    }

    def use(model):
        return model.predict(X)

    for name, final in finals.items():
        model = HRMRegressor("gates", max_rounds=1, final_estimator=final).fit(X, y)
        yield name, modelfile.dumps(model), use
    yield "auto", modelfile.dumps(HRMRegressor(random_state=0).fit(X, y)), use
    forest = ensemble.RandomForestClassifier(3, random_state=0)
    labelled = HRMClassifier("gates", max_rounds=1, final_estimator=forest).fit(X, labels)
    yield "labels", modelfile.dumps(labelled), lambda model: model.predict_proba(X)
    yield "told", modelfile.dumps(InvariantRegressor().fit(X, y, np.arange(60) % 2)), use
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        kind=np.where(X[:, 2] > 0, "p", "q"), when="2020-01-01", y=y
    )
    frame.loc[::3, "when"] = "2021-05-06"
    table = fit_table(Table(frame.astype(object), "t.csv"), "y")
    yield "table", modelfile.dumps(table), lambda model: model.predict(frame.astype(object))
    frame = frame.assign(place=np.arange(60) % 3, w=rng.random(60))
    roles = {"environment": "place", "hints": ("when",), "weight": "w"}
    told = fit_table(Table(frame.astype(object), "t.csv"), "y", **roles)
    yield "told table", modelfile.dumps(told), lambda model: model.predict(frame.astype(object))


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


def mutated_tree(data: bytes, rng: random.Random) -> bytes:
    """Change one to three nodes: another value, another node of the tree, a part gone or added."""
    parts = unpacked(data)
    tree = json.loads(parts["model.json"])
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
            home[rng.choice(["x", "__class__", "predict", "_loss", "of", "is"])] = rng.choice(ODD)
        else:
            home.append(copy.deepcopy(rng.choice(ODD)))
    return packed({**parts, "model.json": json.dumps(tree).encode()})


def mutated_arrays(data: bytes, rng: random.Random) -> bytes:
    """Overwrite some numbers of the arrays, with sound checksums."""
    parts = unpacked(data)
    raw = bytearray(parts["arrays.bin"])
    for _ in range(rng.randint(1, 6)):
        where = rng.randrange(0, max(len(raw) - 8, 1), 8)
        value = rng.choice([-1, 0, 1, 2, 5, 1 << 31, 1 << 62, -(1 << 62), rng.getrandbits(63)])
        raw[where : where + 8] = value.to_bytes(8, "little", signed=True)[: len(raw) - where]
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
    "tree mutated": (mutated_tree, 0.5),
    "arrays mutated": (mutated_arrays, 0.25),
    "bit flipped": (flipped, 0.15),
    "cut off": (cut, 0.05),
    "spliced": (spliced, 0.05),
}


class Bomb:
    def __reduce__(self):
        import os

        return (os.system, ("touch /tmp/hetrisk-was-here",))


def skops_files() -> Iterator[bytes]:
    """Yield files as skops 0.11 wrote them, with the nodes that reach code there."""
    system = {"__class__": "system", "__module__": "posix", "__loader__": "FunctionNode"}
    json_node = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    touch = {**json_node, "content": '"touch /tmp/hetrisk-was-here"', "is_json": True}
    method = {"__class__": "method", "__module__": "builtins", "__loader__": "MethodNode"}
    for attribute in ("__class__", "__globals__", "__reduce__", "fit", "__init__", "system"):
        yield _skops({**method, "content": {"obj": system, "func": attribute}})
    for name in ("call", "methodcaller", "attrgetter", "itemgetter"):
        attrs = {
            "__class__": "tuple",
            "__module__": "builtins",
            "__loader__": "TupleNode",
            "content": [system, touch],
        }
        node = {"__class__": name, "__module__": "operator", "__loader__": "OperatorFuncNode"}
        yield _skops({**node, "attrs": attrs})
    partial = {"__class__": "partial", "__module__": "functools", "__loader__": "PartialNode"}
    yield _skops({**partial, "content": {"func": system, "args": touch, "kwds": {}}})
    vectorizer = {
        "__class__": "CountVectorizer",
        "__module__": "sklearn.feature_extraction.text",
        "__loader__": "ObjectNode",
        "content": {"input": "filename"},
    }
    yield _skops(vectorizer)
    yield _skops({"__class__": "SVR", "__module__": "sklearn.svm", "__loader__": "ObjectNode"})


def _skops(schema: dict) -> bytes:
    schema = {**schema, "protocol": 2, "_skops_version": "0.11.0"}
    label = {"format": 1, "versions": {"hetrisk": "0.1.0"}}
    parts = {"schema.json": json.dumps(schema).encode(), "hetrisk.json": json.dumps(label).encode()}
    return packed(parts)


def crafted(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield files made with intent."""
    for file in skops_files():
        yield "skops exploit", file
    for protocol in range(6):
        yield "pickle", pickle.dumps(Bomb(), protocol)
        renamed = pickle.dumps(Bomb(), protocol)
        yield "pickle", packed({**unpacked(data), "model.json": renamed})
        yield "pickle", packed({**unpacked(data), "arrays.bin": renamed})
    parts = unpacked(data)
    zeros = {**parts, "arrays.bin": bytes(1 << 27)}
    yield "bomb", packed(zeros, zipfile.ZIP_DEFLATED)
    yield "bomb", packed({**parts, "model.json": b"[" * 200_000 + b"]" * 200_000})
    yield "bomb", packed({**parts, "model.json": b"[" + b"[]," * 5_000_000 + b"[]]"})
    one = {"is": "array", "type": "|u1", "shape": [len(parts["arrays.bin"])], "at": 0}
    yield "bomb", packed({**parts, "model.json": json.dumps([one] * 100_000).encode()})
    wide = {"is": "texts", "type": "U", "shape": [900_001], "of": ["x" * 900_000] + [""] * 900_000}
    yield "bomb", packed({**parts, "model.json": json.dumps([wide]).encode()})
    yield "bomb", packed({**parts, "model.json": b"1" * 4_000_000})


def tries(count: int, seed: int) -> Iterator[tuple[str, bytes, Callable[[object], object]]]:
    rng = random.Random(seed)
    files = list(models())
    for name, data, use in files:
        yield f"untouched ({name})", data, use
    _, data, use = files[0]
    for kind, file in crafted(data):
        yield kind, file, use
    names, shares = list(DRAWN), [share for _, share in DRAWN.values()]
    for _ in range(count):
        _, data, use = rng.choice(files)
        kind = rng.choices(names, shares)[0]
        yield kind, DRAWN[kind][0](data, rng), use


def opened(file: bytes, use: Callable[[object], object]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = modelfile.loads(file)
        except modelfile.ModelFileError as error:
            return "refused" if "\n" not in str(error) else "refused in many lines"
        try:
            use(model)
        except Exception as error:
            return f"opened, then {type(error).__name__} when used"
    return "opened and used"


def main() -> int:
    given = options(__doc__.splitlines()[0], 1000)
    tally, end = Tally(), time.monotonic() + given.seconds
    warnings.simplefilter("ignore")
    for kind, file, use in tries(given.count, given.seed):
        outcome, detail = in_child(lambda file=file, use=use: opened(file, use))
        held = outcome == "refused" or outcome.startswith("opened")
        if kind.startswith("untouched"):
            held = outcome == "opened and used"
        elif kind in ("skops exploit", "pickle", "bomb", "cut off"):
            held = outcome == "refused"
        tally.add(kind, outcome, held, detail)
        if time.monotonic() > end:
            print("stopped: out of time")
            break
    versions = {"numpy": np.__version__, "scikit-learn": sklearn.__version__}
    print(f"hetrisk {hetrisk.__version__} on {versions}")
    return tally.report(given.out, versions=versions)


if __name__ == "__main__":
    raise SystemExit(main())
