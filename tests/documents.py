"""What the documentation promises: links that lead somewhere, examples that print what is shown.

In a Markdown file, ``<!-- runs -->`` above a fenced block has it run. The blocks of a page share
a folder and, in Python, their names. A ``python`` block is followed by what it prints, if it
prints anything: a ``text`` block. A ``console`` block mixes commands (``$ ...``) with what they
print. With HETRISK_UPDATE_DOCS=1 what is printed replaces what is shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MADE = {"generated", "gallery"}  # what `make site` leaves in docs
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if not MADE & set(path.parts)
)
RUNS = "<!-- runs -->"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, and where the text begins and ends."""

    language: str
    text: str
    start: int
    end: int
    runs: bool


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [
        Block(m[1], m[2], m.start(2), m.end(2), page[: m.start()].rstrip().endswith(RUNS))
        for m in FENCE.finditer(page)
    ]


def examples(page: str, folder: Path) -> Iterator[tuple[Block, str]]:
    """Run what a page says runs; yield each block that shows output, and what was printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(page)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if not block.runs:
            continue
        if block.language == "python":
            printed = run_python(block.text, names, folder)
            shows = after is not None and after.language == "text"
            if shows or printed:
                assert shows, f"the example prints, but the page does not show it:\n{printed}"
                yield after, printed
        else:
            assert block.language == "console", f"cannot run a block of {block.language!r}"
            yield block, "".join(run_console(block.text, folder))


def run_python(code: str, names: dict[str, Any], folder: Path) -> str:
    """Return what the code prints when run in the folder."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(textwrap.dedent(code), "<example>", "exec"), names)
    return printed.getvalue()


def run_console(text: str, folder: Path) -> Iterator[str]:
    """Yield each command and what it prints, at the width of the documentation."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for line in text.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                ["bash", "-c", line[2:]],
                cwd=folder,
                env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            shown = [row.rstrip() for row in done.stdout.splitlines() if not row.endswith("…")]
            yield f"{line}\n" + "".join(f"{row}\n" for row in shown)


def updated(page: str, printed: list[tuple[Block, str]]) -> str:
    """Return the page with what was printed in place of what is shown."""
    for block, text in reversed(printed):
        page = page[: block.start] + text + page[block.end :]
    return page


def same(shown: str, printed: str) -> bool:
    """Whether two outputs agree: words exactly, numbers nearly (the last digits may differ)."""
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (shown, printed)]
    numbers = [
        [float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (shown, printed)
    ]
    return words[0] == words[1] and all(
        abs(a - b) <= 0.01 + 0.05 * abs(a) for a, b in zip(*numbers, strict=True)
    )


def anchors(page: str) -> set[str]:
    """Return the names that links may give after #: the headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def broken_links(path: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    page = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text()))
    broken = []
    for link in ("".join(found) for found in LINK.findall(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        known = target.exists() and ROOT in [target, *target.parents]
        if not known or (anchor and anchor not in anchors(target.read_text())):
            broken.append(link)
    return broken
