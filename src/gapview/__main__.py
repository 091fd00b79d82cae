"""``python -m gapview``."""

from .cli import main

main(prog_name="gapview")
