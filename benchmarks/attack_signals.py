"""Attack running commands: signals at random moments, and disks that are full.

Each command has an old output to lose. It is stopped by INT, TERM, HUP or KILL at a random
moment, or its files may not grow beyond a random size. Then the old output must be there, or the
new one whole; no part of a file may be left (a KILL allows one); no traceback may be shown; and no
process may live on. Most tries fork from a process that has loaded everything, so that signals fall
into the work; some start a fresh interpreter, so that they fall into its start. Run it with

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
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

import hetrisk.modelfile
import hetrisk.report
from attacking import Tally, options
from hetrisk.cli import app, check, compare, fit, predict, report  # noqa: F401

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
FRESH = 0.3  # of the tries start a new interpreter
SECONDS = 120


def workshop(folder: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    frame = pd.DataFrame({"a": a, "b": b, "kind": rng.choice(list("pqr"), 400), "y": 2 * a - b})
    frame.to_csv(folder / "table.csv", index=False)
    (folder / "many").mkdir()
    for i in range(4):
        pd.concat([frame] * 40).to_parquet(folder / "many" / f"{i}.parquet")
    arguments = ["fit", folder / "table.csv", "--target", "y", "--out", folder / "m.hetrisk"]
    done = CliRunner().invoke(app.cli, [str(part) for part in arguments])
    assert done.exit_code == 0, done.stderr


def commands(folder: Path, out: Path) -> dict[str, list[object]]:
    data, model = folder / "table.csv", folder / "m.hetrisk"
    return {
        "fit": ["fit", data, "--target", "y", "--out", out],
        "fit and report": ["fit", data, "-t", "y", "--out", f"{out}.m", "--report", out],
        "report": ["report", model, data, "--out", out],
        "predict": ["predict", model, data, "--out", out],
        "predict a folder": ["predict", model, folder / "many", "--out", out],
    }


def forked(arguments: list[str], limit: int | None, errors: int) -> int:
    """Start a command in a forked child, and return its id; ``errors`` is the end of a pipe."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.dup2(errors, 2)
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
    """One command, one signal or one full disk: kind, outcome, and what is wrong."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        out = folder / "out"
        out.write_bytes(b"old")
        reader, errors = os.pipe()
        os.set_blocking(reader, False)
        name, arguments = rng.choice(list(commands(shop, out).items()))
        given = [str(part) for part in arguments]
        full, new = rng.random() < 0.25, rng.random() < FRESH
        limit = rng.choice([0, 10, 500, 3000, 20_000]) if full else None
        number = None if full else rng.choice(NUMBERS)
        pid = fresh(given, errors) if new and not full else forked(given, limit, errors)
        os.close(errors)
        if number is not None:
            longest = usual.get(name, 1.0) * (4 if new else 1.2)
            time.sleep(rng.uniform(0, longest) if rng.random() < 0.9 else rng.uniform(0, 0.08))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        status = ended(pid)
        said = told(reader)
        kind = "full disk" if full else f"{signal.Signals(number).name}{', fresh' * new}"
        return kind, *verdict(folder, pid, status, number, said, new)


def told(reader: int) -> str:
    """What a command wrote to its standard error; a pipe holds as much as it says."""
    with open(reader, "rb", buffering=0) as stream:
        return (stream.read() or b"").decode(errors="replace")


def verdict(
    folder: Path, pid: int, status: int | None, number: int | None, said: str, new: bool
) -> tuple[str, list[str]]:
    if status is None:
        return "hung", ["hung"]
    wrong = []
    code = os.waitstatus_to_exitcode(status)
    outcome = "finished" if code == 0 else f"exit {code}"
    content = (folder / "out").read_bytes()
    if content != b"old" and not whole(content):
        wrong.append("the output is neither old nor whole")
    if number != signal.SIGKILL and list(folder.glob(".hetrisk-*.part")):
        wrong.append("part of a file is left")
    # While the interpreter itself starts, no line of ours has run yet: its own words are shown.
    if ("Traceback" in said and not (new and "hetrisk" not in said)) or "unforeseen" in said:
        wrong.append(said[-1500:])
    if "No file was changed" in said and content != b"old":
        wrong.append("it says no file was changed, and one was")
    if alive := survivors(pid):
        wrong.append(f"processes live on: {alive}")
    return outcome, wrong


def whole(content: bytes) -> bool:
    """Whether an output is complete: a page, an archive, or a line of numbers a row."""
    if content.startswith(b"<!"):
        return content.rstrip().endswith(b"</html>")
    if content.startswith(b"PK"):
        try:
            hetrisk.modelfile.loads(content)
        except hetrisk.modelfile.ModelFileError:
            return False
        return True
    return content.startswith(b"prediction") and content.count(b"\n") in (401, 64_001)


def timed(shop: Path) -> dict[str, float]:
    """How long each command takes here, undisturbed."""
    usual = {}
    with tempfile.TemporaryDirectory() as place:
        for name, arguments in commands(shop, Path(place) / "out").items():
            start = time.monotonic()
            pid = forked([str(part) for part in arguments], None, 2)
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
