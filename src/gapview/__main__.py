"""``python -m gapview``."""

from .commands.cli import main

main(prog_name="gapview")
