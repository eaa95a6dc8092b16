"""Links lead somewhere, examples print what the pages show, docstrings tell the truth."""

import doctest
import importlib
import importlib.util
import os
from pathlib import Path

import pytest

import hetrisk
from documents import PAGES, ROOT, anchors, blocks, broken_links, examples, same, updated

PACKAGE = Path(hetrisk.__file__).parent
RUNNABLE = [page for page in PAGES if any(block.runs for block in blocks(page.read_text()))]
DOCUMENTED = sorted(path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_somewhere(path):
    assert not broken_links(path)


@pytest.mark.parametrize("path", RUNNABLE, ids=name)
def test_examples_print_what_is_shown(path, tmp_path):
    page = path.read_text()
    printed = list(examples(page, tmp_path))
    if os.environ.get("HETRISK_UPDATE_DOCS"):
        path.write_text(updated(page, printed))
        return
    differ = [(block.text, text) for block, text in printed if not same(block.text, text)]
    assert not differ


def test_the_readme_runs():
    runs = {block.language for block in blocks((ROOT / "README.md").read_text()) if block.runs}
    assert runs == {"python"}


def test_the_page_of_commands_says_what_the_commands_say():
    spec = importlib.util.spec_from_file_location("commands", ROOT / ".ci" / "commands.py")
    commands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(commands)
    page = commands.page()
    if os.environ.get("HETRISK_UPDATE_DOCS"):
        commands.PAGE.write_text(page, encoding="utf-8")
    assert commands.PAGE.read_text(encoding="utf-8") == page


@pytest.mark.parametrize("path", DOCUMENTED, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_in_docstrings_run(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_an_output_that_differs_is_told_from_one_that_does_not():
    assert same("RMSE 0.448 in  1,900 rows\n", "RMSE 0.4479 in 1,900 rows")
    assert not same("RMSE 0.448", "RMSE 0.51")
    assert not same("RMSE 0.448", "error 0.448")
    assert not same("left out: a", "left out: a b")


def test_a_broken_link_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("documents.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# One, two\n[a](page.md) [b](#one-two) [c](https://x.org/none) `[d](in-code.md)`\n"
        '[e](absent.md) [f](#three) ![g](absent.png) <img src="absent.svg" width="9">\n'
        "```\n[h](in-a-block.md)\n# No heading\n```\n"
    )
    assert broken_links(page) == ["absent.md", "#three", "absent.png", "absent.svg"]
    assert anchors(page.read_text()) == {"one-two"}


def test_examples_are_run_and_can_be_written_anew(tmp_path):
    page = (
        "```python\nraise ValueError\n```\n<!-- runs -->\n```python\nx = 1\nprint(x + 1)\n```\n"
        "prints\n```text\n3\n```\n<!-- runs -->\n```console\n$ echo a b\n```\n"
    )
    printed = list(examples(page, tmp_path))
    assert [text for _, text in printed] == ["2\n", "$ echo a b\na b\n"]
    again = updated(page, printed)
    assert "```text\n2\n```" in again
    assert "$ echo a b\na b\n```" in again
    assert all(block.text == text for block, text in examples(again, tmp_path))
