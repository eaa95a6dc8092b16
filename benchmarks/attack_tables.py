"""Attack the command line with hostile tables: every answer must be a result or a sentence.

Tables are drawn at random: odd names and cells, broken quoting and encodings, columns that
vanish, huge and tiny numbers, columns of time and of environments filled with what nobody expects,
every format. Each goes to one command, in this process, a hundred to a child. An answer holds if
the exit code is a documented one; nothing calls itself a fault of hetrisk; no control character
reaches the terminal; inputs are as they were; and no part of a file is left behind. Run it with

    python benchmarks/attack_tables.py --count 5000 --out tables.json

HETRISK_KEEP names a folder for the tables that did not hold.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import random
import shutil
import tempfile
import warnings
from functools import partial
from pathlib import Path

import pandas as pd
from click.testing import CliRunner

from attacking import in_batches, options
from hetrisk.cli.app import cli

NAMES = [
    *("a", "b", "y", "id", "kind", "when", "site", "", " ", "a", "a\u200b", "\u202ey", "y\x1b[31m"),
    *("prediction", "probability of x", "=cmd()", "<b>x</b>", "a,b", 'q"q', "é", "🙂", "n" * 300),
    *(
        "1",
        "None",
        "nan",
        "../x",
        "a\tb",
        "a\nb",
        "\x00",
        "{{ y }}",
        "${HOME}",
        "--out",
        "-1",
        "row",
        "weight",
    ),
]
CELLS = [
    *("", " ", "0", "1", "-1", "1e5", "1e308", "-1e308", "1e-320", "1e400", "nan", "inf"),
    *(
        "-inf",
        "NA",
        "None",
        "true",
        "no",
        "2020-01-01",
        "31.12.1999",
        "1999-13-45",
        "1,234.5",
        "1.234,5",
    ),
    *(
        "12,5%",
        "$3",
        "3 EUR",
        "12:30",
        "٣",
        "1_000",
        "0x10",
        "x",
        "\x1b[2J",
        "\u202e",
        "a\u200b",
        "🙂",
        "é",
    ),
    *("=1+1", "<script>", '"', "'", "long " * 200, "9" * 400, "1e", "--", "\x00", "5e-324"),
]
TIMES = [
    *("2020-01-01", "2020-13-01", "1.2.2020", "13/01/2020", "2020Q1", "2020-W53", "202001", "1999"),
    *("2020-01-01T00:00:00+02:00", "99999-01-01", "1e308", "0", "-1", "", "nan", "inf", "x", "٣"),
    *("0001-01-01", "2262-04-12", "2020M0", "12:30", "1_000", "\x1b[2J", "9" * 400),
]
COMMANDS = [("predict", 0.4), ("fit", 0.3), ("check", 0.2), ("adapt", 0.1)]
BATCH = 100
KEEP = Path(os.environ["HETRISK_KEEP"]) if "HETRISK_KEEP" in os.environ else None
Models = dict[str, Path]


def table(rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """Names and rows: from nearly sound to nonsense."""
    width, height = rng.randint(1, 7), rng.choice([0, 1, 3, 12, 30, 60, 150])
    sound = rng.random() < 0.7
    names = list(COLUMNS) if sound else [rng.choice(NAMES) for _ in range(width)]
    rows = [sound_row(rng) if sound else [rng.choice(CELLS) for _ in names] for _ in range(height)]
    surprises = rng.choice([0.0, 0.0, 0.01, 0.1])
    for row in rows:
        if rng.random() < surprises:
            row[rng.randrange(len(row))] = rng.choice(CELLS)
    if sound and rng.random() < 0.3:
        names[rng.randrange(len(names))] = rng.choice(NAMES)
    if sound and rng.random() < 0.4:  # one column of nothing but surprises
        column, cells = rng.randrange(len(names)), rng.choice([CELLS, TIMES])
        few = rng.sample(cells, rng.randint(1, 4))
        for row in rows:
            row[column] = rng.choice(few)
    return names, rows


COLUMNS = ("a", "b", "kind", "when", "site", "y", "label")


def sound_row(rng: random.Random) -> list[str]:
    a, b, year = rng.gauss(0, 1), rng.gauss(0, 1), rng.randint(2001, 2012)
    kind, site = rng.choice("pqr"), rng.choice(["north", "south", "east", "west"])
    label = rng.choice(["no", "yes"]) if a > 0 else "yes"
    return [f"{a:.4g}", f"{b:.4g}", kind, f"{year}-06-01", site, f"{2 * a - b:.4g}", label]


def as_text(names: list[str], rows: list[list[str]], rng: random.Random) -> bytes:
    delimiter = rng.choice([",", ",", ";", "\t", "|", ":"])
    quote = rng.random() < 0.8

    def cell(text: str) -> str:
        if quote and (delimiter in text or '"' in text or "\n" in text):
            return '"' + text.replace('"', '""') + '"'
        return text

    lines = [delimiter.join(map(cell, row)) for row in [names, *rows]]
    if rng.random() < 0.1 and lines:
        lines.insert(rng.randrange(len(lines)), rng.choice(['"', delimiter * 9, "", "\x00", "x"]))
    text = rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines)
    encoding = rng.choice(["utf-8"] * 6 + ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
    data = text.encode(encoding, errors="replace")
    what = rng.random()
    if what < 0.05:
        data = gzip.compress(data)
    elif what < 0.08:
        data = data[: rng.randrange(len(data) + 1)]
    elif what < 0.12 and data:
        raw = bytearray(data)
        raw[rng.randrange(len(raw))] = rng.randrange(256)
        data = bytes(raw)
    return data


def write(folder: Path, rng: random.Random) -> Path:
    """Write one table, in some format, and return where."""
    names, rows = table(rng)
    kind = rng.choice(["csv"] * 6 + ["tsv", "parquet", "parquet", "folder", "jsonl", "xlsx"])
    path = folder / f"t.{kind}"
    frame = pd.DataFrame(rows, columns=names)
    if kind in ("csv", "tsv"):
        path.write_bytes(as_text(names, rows, rng))
        return path
    if rng.random() < 0.7:
        frame = frame.apply(lambda column: pd.to_numeric(column, errors="coerce"))
    with contextlib.suppress(Exception):  # what the writers refuse is no table to attack with
        if kind == "parquet":
            frame.to_parquet(path)
        elif kind == "folder":
            path.mkdir()
            frame.iloc[: len(frame) // 2].to_parquet(path / "a.parquet")
            frame.iloc[len(frame) // 2 :].sample(frac=1, axis=1).to_parquet(path / "b.parquet")
        elif kind == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_excel(path, index=False)
    if not path.exists():
        path.write_bytes(as_text(names, rows, rng))
    elif path.is_file() and rng.random() < 0.15:
        raw = bytearray(path.read_bytes())
        raw[rng.randrange(len(raw))] ^= 0xFF
        path.write_bytes(raw)
    return path


def arguments(command: str, data: Path, model: Path, out: Path, rng: random.Random) -> list[str]:
    odd = rng.random() < 0.15
    target = rng.choice(NAMES if odd else ["y", "label"])
    column = rng.choice(NAMES if rng.random() < 0.15 else COLUMNS)
    given = {
        "predict": ["predict", model, data],
        "fit": ["fit", data, "--target", target],
        "check": ["check", model, data],
        "adapt": ["adapt", model, data, "--out", out],
    }[command]
    extra = {
        "predict": [["--out", out], ["--id", column], ["--json"], ["--interval"]],
        "fit": [
            ["--out", out],
            ["--report", out],
            ["--json"],
            ["--feature", column],
            ["--drop", column],
            ["--category", column],
            ["--task", "regression"],
            ["--task", "classification"],
            *([["--environment", "site"]] * 4),
            *([["--time", "when"]] * 4),
            ["--environment", column],
            ["--time", column],
            ["--weight", column],
            ["--encoding", rng.choice(["latin-1", "utf-16", "x"])],
        ],
        "check": [["--json"], ["--report", out], ["--quiet"]],
        "adapt": [["--json"]],
    }[command]
    for more in rng.sample(extra, k=min(len(extra), rng.randint(0, 3))):
        given = [*given, *more]
    return [str(part) for part in given]


def digest(path: Path) -> str:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files if f.is_file())).hexdigest()


def attempt(models: Models, rng: random.Random) -> tuple[str, str, str]:
    """One table, one command: its name, what became of it, and what is wrong with that."""
    command = rng.choices(*zip(*COMMANDS, strict=True))[0]
    model = models[rng.choice(list(models))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = write(folder, rng)
        before = digest(data), digest(model)
        out = folder / rng.choice(["out.csv", "out.parquet", "out", "out.html", data.name])
        given = arguments(command, data, model, out, rng)
        result = CliRunner().invoke(cli, given)
        wrong = faults(result, folder)
        if (digest(data), digest(model)) != before:
            wrong.append("an input was changed")
        said = f"{given}\n{result.stderr[-600:]}"
        if wrong and KEEP is not None:
            kept = KEEP / f"{abs(hash(said))}{data.suffix}"
            (shutil.copytree if data.is_dir() else shutil.copy)(data, kept)
            said += f"\nkept as {kept}"
        return command, f"exit {result.exit_code}", "\n".join([*wrong, said]) if wrong else ""


def faults(result: object, folder: Path) -> list[str]:
    wrong = []
    if result.exit_code not in (0, 1, 2, 3, 4):
        wrong.append(f"exit code {result.exit_code}")
    for word in ("unforeseen", "Traceback"):
        if word in result.stderr:
            wrong.append(word)
    for name, text in (("output", result.stdout), ("errors", result.stderr)):
        acting = set("\x1b\x07\x08\x0b\x0c\x7f\u202e\u200b") & set(text)
        # What predictions copy is the table's own: a cell goes to the file as it is.
        if acting and name == "errors":
            wrong.append(f"{acting} in the {name}")
    if list(folder.rglob("*.part")):
        wrong.append("part of a file is left")
    return wrong


def batch(models: Models, seed: int, count: int) -> str:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    told = [attempt(models, rng) for _ in range(count)]
    return "done\n" + "\x1e".join("\x1f".join(part) for part in told)


def sound_models(folder: Path) -> Models:
    rng = random.Random(0)
    frame = pd.DataFrame([sound_row(rng) for _ in range(400)], columns=list(COLUMNS))
    frame.to_csv(folder / "train.csv", index=False)
    ways = {
        "numbers": ["-t", "y", "--drop", "label", "--time", "when", "--environment", "site"],
        "labels": ["-t", "label", "--drop", "y", "--environment", "site"],
        "alone": ["-t", "y", "--drop", "label"],
    }
    for name, way in ways.items():
        given = ["fit", folder / "train.csv", *way, "--out", folder / name]
        result = CliRunner().invoke(cli, [str(part) for part in given])
        assert result.exit_code == 0, result.stderr
    return {name: folder / name for name in ways}


def main() -> int:
    given = options(__doc__.splitlines()[0], 1000)
    with tempfile.TemporaryDirectory() as place:
        os.environ["TMPDIR"] = place
        tempfile.tempdir = place
        return in_batches(given, BATCH, partial(batch, sound_models(Path(place))), Path(place))


if __name__ == "__main__":
    raise SystemExit(main())
