"""Pages that live at the root of the repository, on the site as well.

The changelog and the guide for contributors are read where the code is; the site shows the same
text. Links that lead out of ``docs`` in any page are turned to where the site has the target.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
SHOWN = {"CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing"}


def moved_in(text: str) -> str:
    """Links of a page at the root, as they read from ``docs``."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, page in SHOWN.items():
        text = text.replace(f"]({name}", f"]({page}.md")
    return text


def write_pages(app: Sphinx, config: Any) -> None:
    """Write each page beside the others, if it changed."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in SHOWN.items():
        text = moved_in((ROOT / name).read_text())
        text = re.sub(r"\]\((?![a-z]+:|#)", "](../../", text)
        write(folder / f"{page}.md", text)


def turn_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Point links that leave ``docs`` at the site's own pages."""
    up = "../" * name.count("/")
    source[0] = source[0].replace("](../README.md)", f"]({up}index.md)")
    for file, page in SHOWN.items():
        source[0] = source[0].replace(f"](../{up}{file})", f"]({up}reference/generated/{page}.md)")


def write(path: Path, text: str) -> None:
    """Write a file unless it holds the text already, so that Sphinx need not read it again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pages with Sphinx."""
    app.connect("config-inited", write_pages)
    app.connect("source-read", turn_links)
    return {"parallel_read_safe": True}
