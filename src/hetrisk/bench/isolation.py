"""A function run in a process of its own, so that its peak of memory is its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def isolated(function: Callable[..., dict[str, Any]], **arguments: Any) -> dict[str, Any]:
    """Call a module-level function in a new process and return the record it returns."""
    name = f"{function.__module__}:{function.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "hetrisk.bench.isolation", name, json.dumps(arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}")
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def resident_bytes() -> int:
    """Memory this process holds now."""
    return _status("VmRSS:")


def peak_bytes() -> int:
    """Most memory this process has held."""
    return _status("VmHWM:")


def _status(field: str) -> int:
    # Not getrusage: its peak is inherited from the process that started this one.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no field {field}")


def _main() -> None:
    module, name = sys.argv[1].split(":")
    record = getattr(import_module(module), name)(**json.loads(sys.argv[2]))
    print(json.dumps(record))


if __name__ == "__main__":
    _main()
