"""The command line: arguments in, sentences and files out. One file a command."""

import sys


def main() -> None:
    """Run the ``hetrisk`` command."""
    # Imported here: Ctrl-C while the libraries load ends as quietly as Ctrl-C later on.
    try:
        from hetrisk.cli.app import cli
        from hetrisk.cli.process import prepare_streams

        wrong = prepare_streams()
        if wrong is not None:
            if sys.stderr is not None:
                sys.stderr.write(f"Error: {wrong}\n")
            sys.exit(1)
        cli(prog_name="hetrisk")
    except KeyboardInterrupt:
        sys.stderr.write("Stopped. No file was changed.\n")
        sys.exit(130)
