"""Attack running commands: signals at random moments, disks that are full, data that changes.

Each command has an old output to lose. It is stopped by INT, TERM, HUP or KILL at a random
moment, or its files may not grow beyond a random size. Then the old output must be there, or the
new one whole; no part of a file may be left (a KILL allows one); no traceback may be shown; and no
process may live on. Text larger than memory (the limit is lowered for it) is put down in a folder
for temporary files: nothing may be left there (a KILL allows it, and then the same command must
still do its work), and a full disk must be named. Some texts are written to, cut, replaced or
removed while they are read: the answer is a result for the old text or the new one, or a sentence
that names the file. Most tries fork from a process that has loaded everything, so that signals
fall into the work; some start a fresh interpreter, so that they fall into its start. Run it with

    python benchmarks/attack_signals.py --count 200 --out signals.json
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

import hetrisk.modelfile
import hetrisk.report
from attacking import Tally, options
from hetrisk.cli import adapt, app, check, fit, predict, report  # noqa: F401
from hetrisk.tables import inputs

LARGE = "large"  # commands whose data does not fit in the memory they are told of
CHANGES = ["appended to", "cut", "replaced", "removed", "touched"]
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
FRESH = 0.3  # of the tries start a new interpreter
SECONDS = 120


def workshop(folder: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    year, site = np.sort(rng.integers(2001, 2013, 400)), rng.choice(list("nsew"), 400)
    frame = pd.DataFrame({"a": a, "b": b, "kind": rng.choice(list("pqr"), 400), "y": 2 * a - b})
    frame = frame.assign(year=year, site=site, w=rng.random(400))
    frame.to_csv(folder / "table.csv", index=False)
    large = pd.concat([frame] * 10, ignore_index=True)
    large.to_csv(folder / "large.csv", index=False)
    (folder / "many").mkdir()
    for i in range(4):
        pd.concat([frame] * 40).to_parquet(folder / "many" / f"{i}.parquet")
    arguments = ["fit", folder / "table.csv", *TOLD, "--out", folder / "m.hetrisk"]
    done = CliRunner().invoke(app.cli, [str(part) for part in arguments])
    assert done.exit_code == 0, done.stderr


TOLD = ("--target", "y", "--time", "year", "--environment", "site", "--weight", "w")


def commands(folder: Path, out: Path) -> dict[str, list[object]]:
    data, model = folder / "table.csv", folder / "m.hetrisk"
    return {
        "fit": ["fit", data, "--target", "y", "--out", out],
        "fit told": ["fit", data, *TOLD, "--out", f"{out}.m", "--report", out],
        "report": ["report", model, "--out", out, "--force"],
        "check": ["check", model, data, "--report", out],
        "adapt": ["adapt", model, data, "--out", out],
        "predict": ["predict", model, data, "--out", out],
        "predict a folder": ["predict", model, folder / "many", "--out", out],
        f"fit, {LARGE}": ["fit", folder / "large.csv", "-t", "y", "--out", out],
        f"fit told, {LARGE}": ["fit", folder / "large.csv", *TOLD, "--out", out],
        f"predict, {LARGE}": ["predict", model, folder / "large.csv", "--out", out],
    }


def forked(
    arguments: list[str], limit: int | None, errors: int, spool: Path, memory: int | None
) -> int:
    """Start a command in a forked child, and return its id.

    ``limit`` is the size files may grow to, ``errors`` the end of a pipe, ``spool`` the folder for
    temporary files, and ``memory`` what the command is told there is.
    """
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.dup2(errors, 2)
    tempfile.tempdir = str(spool)
    if memory is not None:
        inputs.memory_limit = lambda: memory
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    code = 70
    try:
        app.cli(arguments, prog_name="hetrisk")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:
        code = 130
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def fresh(arguments: list[str], errors: int) -> int:
    """Start a command in a new interpreter, and return its id."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hetrisk.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )
    process.returncode = 0  # waited for below, by its id
    return process.pid


def ended(pid: int) -> int | None:
    """Wait for a child; return its status, or None if it had to be killed."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def survivors(session: int) -> list[int]:
    """Processes of a session that live on."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = entry.read_text().rsplit(")", 1)[1].split()[:4]
            if int(own) == session and state not in "ZX":
                found.append(int(entry.parent.name))
    return found


def attempt(shop: Path, rng: random.Random, usual: dict[str, float]) -> tuple[str, str, list[str]]:
    """One command, one signal, full disk or change: kind, outcome, and what is wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        out, spool = folder / "out", folder / "spool"
        spool.mkdir()
        out.write_bytes(b"old")
        name = rng.choice(list(commands(shop, out)))
        large = name.endswith(LARGE)
        what = rng.choices(["signal", "full disk", "change"], [0.65, 0.2, 0.15 if large else 0])[0]
        if what == "change":
            shop = copied(shop, folder / "shop")
        given = [str(part) for part in commands(shop, out)[name]]
        new = what == "signal" and not large and rng.random() < FRESH
        limit = rng.choice([0, 10, 500, 3000, 20_000, 100_000]) if what == "full disk" else None
        number = rng.choice(NUMBERS) if what == "signal" else None
        reader, errors = os.pipe()
        os.set_blocking(reader, False)
        start = partial(forked, given, spool=spool, memory=1000 if large else None)
        pid = fresh(given, errors) if new else start(limit, errors)
        os.close(errors)
        change = rng.choice(CHANGES)
        if what != "full disk":
            longest = usual.get(name, 1.0) * (4 if new else 1.2)
            time.sleep(rng.uniform(0, longest) if rng.random() < 0.9 else rng.uniform(0, 0.08))
        if what == "change":
            changed(shop / "large.csv", change)
        elif number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        status = ended(pid)
        said = told(reader)
        kind = what if number is None else f"{signal.Signals(number).name}{', fresh' * new}"
        kind += f", {LARGE}" * large
        outcome, wrong = verdict(folder, pid, status, number, said, new, lines(shop))
        if what == "full disk" and outcome == "exit 1" and str(folder) not in said:
            wrong.append(f"no place is named: {said[-500:]}")
        if what == "change" and outcome == "exit 1" and "large.csv" not in said:
            wrong.append(f"{change}, and no file is named: {said[-500:]}")
        if number == signal.SIGKILL and large and outcome == f"exit {-number}":
            wrong += again(start, folder)
        return kind, outcome, wrong


def copied(shop: Path, place: Path) -> Path:
    """Return a copy of what the commands on large text need."""
    place.mkdir()
    for name in ("large.csv", "m.hetrisk"):
        (place / name).write_bytes((shop / name).read_bytes())
    return place


def changed(path: Path, how: str) -> None:
    """Do to a file what another program may do while it is read."""
    data = path.read_bytes()
    if how == "appended to":
        with path.open("ab") as file:
            file.write(b"1,2,x\n")
    elif how == "cut":
        os.truncate(path, len(data) // 3)
    elif how == "replaced":
        path.with_name("new").write_bytes(data.replace(b"kind", b"sort", 1)[: len(data) // 2])
        path.with_name("new").replace(path)
    elif how == "removed":
        path.unlink()
    else:
        os.utime(path)


def again(start: Callable[[int | None, int], int], folder: Path) -> list[str]:
    """Repeat a command that was killed; return what is wrong."""
    status = ended(start(None, 2))
    left = len(list((folder / "spool").iterdir()))
    if status != 0 or left > 1 or not whole((folder / "out").read_bytes(), {4001}):
        return [f"after a KILL the same command ends with {status}; {left} folders are left"]
    return []


def told(reader: int) -> str:
    """What a command wrote to its standard error; a pipe holds as much as it says."""
    with open(reader, "rb", buffering=0) as stream:
        return (stream.read() or b"").decode(errors="replace")


def verdict(
    folder: Path,
    pid: int,
    status: int | None,
    number: int | None,
    said: str,
    new: bool,
    sizes: set[int],
) -> tuple[str, list[str]]:
    if status is None:
        return "hung", ["hung"]
    wrong = []
    code = os.waitstatus_to_exitcode(status)
    outcome = "finished" if code == 0 else f"exit {code}"
    content = (folder / "out").read_bytes()
    if content != b"old" and not whole(content, sizes):
        wrong.append("the output is neither old nor whole")
    if number != signal.SIGKILL and list(folder.glob(".hetrisk-*.part")):
        wrong.append("part of a file is left")
    if number != signal.SIGKILL and list((folder / "spool").iterdir()):
        wrong.append("temporary files are left")
    # While the interpreter itself starts, no line of ours has run yet: its own words are shown.
    if ("Traceback" in said and not (new and "hetrisk" not in said)) or "unforeseen" in said:
        wrong.append(said[-1500:])
    if "No file was changed" in said and content != b"old":
        wrong.append("it says no file was changed, and one was")
    if alive := survivors(pid):
        wrong.append(f"processes live on: {alive}")
    return outcome, wrong


def lines(shop: Path) -> set[int]:
    """How many lines predictions may have: one a row, of whichever text was read."""
    path = shop / "large.csv"
    now = path.read_bytes().rstrip(b"\n").count(b"\n") + 1 if path.exists() else 4001
    return {401, 4001, 64_001, now}


def whole(content: bytes, sizes: set[int]) -> bool:
    """Whether an output is complete: a page, an archive, or a line of numbers a row."""
    if content.startswith(b"<!"):
        return content.rstrip().endswith(b"</html>")
    if content.startswith(b"PK"):
        try:
            hetrisk.modelfile.loads(content)
        except hetrisk.modelfile.ModelFileError:
            return False
        return True
    return content.startswith(b"prediction") and content.count(b"\n") in sizes


def timed(shop: Path) -> dict[str, float]:
    """How long each command takes here, undisturbed."""
    usual = {}
    with tempfile.TemporaryDirectory() as place:
        for name, arguments in commands(shop, Path(place) / "out").items():
            start = time.monotonic()
            memory = 1000 if name.endswith(LARGE) else None
            pid = forked([str(part) for part in arguments], None, 2, Path(place), memory)
            ended(pid)
            usual[name] = time.monotonic() - start
    return usual


def main() -> int:
    given = options(__doc__.splitlines()[0], 200)
    tally, end, rng = Tally(), time.monotonic() + given.seconds, random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        shop = Path(place)
        workshop(shop)
        usual = timed(shop)
        print({name: round(seconds, 2) for name, seconds in usual.items()}, file=sys.stderr)
        for _ in range(given.count):
            kind, outcome, wrong = attempt(shop, rng, usual)
            tally.add(kind, outcome, not wrong, "\n".join(wrong))
            if time.monotonic() > end:
                print("stopped: out of time")
                break
    return tally.report(given.out)


if __name__ == "__main__":
    raise SystemExit(main())
