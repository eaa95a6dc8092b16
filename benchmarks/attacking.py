"""What the attacks share: a child process for each try, and a tally of what became of it.

A try runs in a forked child with a limit on memory and time, so that a crash, a hang or a flood
of memory is seen and counted instead of ending the run. An audit hook in the child notes what no
file may cause: a program started, a connection opened, a file written.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
MEMORY = 6 << 30
SECONDS = 60


@dataclass
class Tally:
    """How many of each kind were tried, and what became of them."""

    tried: Counter = field(default_factory=Counter)
    outcomes: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)

    def add(self, kind: str, outcome: str, held: bool, detail: str = "") -> None:
        self.tried[kind] += 1
        self.outcomes[f"{kind}: {outcome}"] += 1
        if not held:
            failure = {"kind": kind, "outcome": outcome, "detail": detail[-2000:]}
            self.failures.append(failure)
            print(json.dumps(failure, indent=1), file=sys.stderr)

    def report(self, path: Path | None, **facts: object) -> int:
        """Print the tally, write it as JSON, and return the exit code."""
        for outcome, count in sorted(self.outcomes.items()):
            print(f"{count:7,}  {outcome}")
        total = sum(self.tried.values())
        print(f"{total:7,}  tried, {total - len(self.failures):,} held")
        if path is not None:
            record = {**facts, "tried": dict(self.tried), "outcomes": dict(self.outcomes)}
            path.write_text(json.dumps({**record, "failures": self.failures}, indent=1) + "\n")
        return 1 if self.failures else 0


def options(description: str, count: int) -> argparse.Namespace:
    """Parse the options all attacks have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count, help="tries that are drawn at random")
    parser.add_argument("--seconds", type=float, default=1800, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the tally here as JSON")
    return parser.parse_args()


def in_child(
    attempt: Callable[[], str], *, writes: Path | None = None, seconds: int = SECONDS
) -> tuple[str, str]:
    """Run ``attempt`` in a forked child; return its answer and what went wrong, if anything.

    Parameters
    ----------
    attempt : returns a word for what happened.
    writes : the one folder in which files may be written; None for nowhere.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os._exit(_child(attempt, writer, writes))
    os.close(writer)
    deadline, chunks = time.monotonic() + seconds, []
    os.set_blocking(reader, False)
    status = None
    while status is None:
        found, code = os.waitpid(pid, os.WNOHANG)
        status = code if found else None
        _drain(reader, chunks)
        if status is None and time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reader)
            return "hung", f"no answer in {seconds} s"
        time.sleep(0.002)
    _drain(reader, chunks)
    os.close(reader)
    if os.WIFSIGNALED(status):
        return "crashed", f"signal {os.WTERMSIG(status)}"
    outcome, _, detail = b"".join(chunks).decode(errors="replace").partition("\n")
    return outcome or "no answer", detail


def in_batches(
    given: argparse.Namespace, size: int, batch: Callable[[int, int], str], place: Path
) -> int:
    """Try ``given.count`` things, ``size`` of them a child, and return the exit code.

    ``batch`` takes a seed and a number of tries, and returns a record of each: kind, what became
    of it and what was wrong, parted by the control characters that are made for that.
    """
    tally, end = Tally(), time.monotonic() + given.seconds
    for start in range(0, given.count, size):
        count, seed = min(size, given.count - start), given.seed + start
        attempt = partial(batch, seed, count)
        outcome, told = in_child(attempt, writes=place, seconds=600)
        if outcome != "done":
            tally.add(f"batch {start}", outcome, False, told)
            continue
        for line in told.split("\x1e"):
            kind, became, wrong = line.split("\x1f")
            tally.add(kind, became, not wrong.strip(), wrong)
        if time.monotonic() > end:
            print("stopped: out of time")
            break
        print(f"{start + count:,} tried", file=sys.stderr)
    return tally.report(given.out)


def _drain(reader: int, chunks: list[bytes]) -> None:
    try:
        while chunk := os.read(reader, 1 << 16):
            chunks.append(chunk)
    except BlockingIOError:
        pass


def _child(attempt: Callable[[], str], writer: int, writes: Path | None) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    breaches: list[str] = []

    def watch(event: str, arguments: tuple) -> None:
        if event in FORBIDDEN or (event == "open" and _writes_outside(arguments, writes)):
            breaches.append(f"{event} {arguments!r}"[:300])

    sys.addaudithook(watch)
    try:
        answer = attempt()
        detail = ""
    except BaseException:
        answer, detail = "raised", traceback.format_exc()
    if breaches:
        answer, detail = "breach", "; ".join(breaches)
    answer_bytes = f"{answer}\n{detail}".encode(errors="replace")
    while answer_bytes:
        answer_bytes = answer_bytes[os.write(writer, answer_bytes) :]
    return 0


def _writes_outside(arguments: tuple, writes: Path | None) -> bool:
    path, mode, flags = arguments
    writing = (isinstance(mode, str) and set(mode) & set("wax+")) or (
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
    )
    if not writing or not isinstance(path, (str, bytes)):
        return False
    text = os.fsdecode(path)
    inside = writes is not None and Path(text).resolve().is_relative_to(writes.resolve())
    return not inside and not text.startswith(("/dev/", "/proc/"))
