"""The command line: arguments in, sentences and files out. One file a command."""

from hetrisk.cli.app import cli


def main() -> None:
    """Run the ``hetrisk`` command."""
    cli(prog_name="hetrisk")


__all__ = ["cli", "main"]
