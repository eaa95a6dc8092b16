"""Write docs/cli.md from the commands themselves.

Usage: python .ci/commands.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import click

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
HEAD = """# Command line

`hetrisk COMMAND --help` prints the same. This page is written from the commands by
`python .ci/commands.py`, and a test compares them.

```console
$ hetrisk demo --table economy.csv                                    # a table to try it on
$ hetrisk fit economy.csv --target psavert --time date --out m.hetrisk --report m.html
$ hetrisk check m.hetrisk later.csv                                   # exit code 0, 3 or 4
$ hetrisk predict m.hetrisk later.csv --interval --out predictions.csv
```
"""


def page() -> str:
    """The whole page, in Markdown."""
    from hetrisk.cli.app import COMMANDS, cli

    parent = click.Context(cli, info_name="hetrisk", **cli.context_settings)
    parts = [HEAD]
    for name in COMMANDS:
        command = cli.get_command(parent, name)
        assert command is not None
        vars(command)["_help_option"] = None  # click keeps the one it was first asked for
        parts.append(section(command, click.Context(command, info_name=name, parent=parent)))
    return "\n".join(parts).rstrip() + "\n"


def section(command: click.Command, context: click.Context) -> str:
    """One command: usage, explanation, options, examples."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text = inspect.cleandoc(command.help or "").split("\f")[0]
    rows = [option_row(p, context) for p in command.get_params(context)]
    lines = [f"## {command.name}", "", f"```text\n{usage}\n```", "", escaped(text), ""]
    lines += ["| option | meaning |", "| --- | --- |", *filter(None, rows), ""]
    if command.epilog:
        epilog = inspect.cleandoc(command.epilog).replace("\b\n", "").strip()
        lines += ["```text", epilog, "```", ""]
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
    """Text whose signs mean themselves in Markdown."""
    for sign in ("\\", "*", "_", "<", "|", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
