"""``python -m gapview_lab``."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="gapview-lab")
