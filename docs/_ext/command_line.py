"""The reference of the command line, written from the commands themselves."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import click
from pages import write
from sphinx.application import Sphinx

HEAD = """# Commands

What `hetrisk COMMAND --help` prints, written from the commands by the build of this page.
[The guide](../../cli.md) shows what they do on a table.
"""


def page() -> str:
    """The whole page, in Markdown."""
    from hetrisk.cli.app import COMMANDS, cli

    parent = click.Context(cli, info_name="hetrisk")
    parts = [HEAD]
    for name in COMMANDS:
        command = cli.get_command(parent, name)
        assert command is not None
        parts.append(section(command, click.Context(command, info_name=name, parent=parent)))
    return "\n".join(parts)


def section(command: click.Command, context: click.Context) -> str:
    """One command: usage, explanation, options, examples."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text = inspect.cleandoc(command.help or "").split("\f")[0]
    rows = [option_row(p, context) for p in command.get_params(context)]
    lines = [f"## {command.name}", "", f"```text\n{usage}\n```", "", escaped(text), ""]
    lines += ["| option | meaning |", "| --- | --- |", *filter(None, rows), ""]
    if command.epilog:
        lines += [
            "```text",
            inspect.cleandoc(command.epilog).replace("\b\n", "").strip(),
            "```",
            "",
        ]
    return "\n".join(lines)


def option_row(parameter: click.Parameter, context: click.Context) -> str:
    """A line of the table of options; nothing for one that is hidden."""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    names, meaning = record
    names = names.replace("|", r"\|")  # a bar ends a cell, even in code
    return f"| `{names}` | {escaped(meaning)} |".replace("\n", " ")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    for character in "\\`*_<>|[]":
        text = text.replace(character, f"\\{character}")
    return text


def write_page(app: Sphinx, config: Any) -> None:
    """Write the page where the table of contents expects it."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "command-line.md", page())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the page with Sphinx."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True}
