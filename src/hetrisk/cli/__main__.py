"""``python -m hetrisk.cli``."""

from hetrisk.cli import main

main()
