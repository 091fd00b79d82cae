"""Run the tutorials on real data and the gallery, and store their figures in docs/images.

    GAPVIEW_DATA=FOLDER python tools/tutorials.py [NAME]...

By default every page that shows figures of its own. A page that prints other than it shows is an error.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib
from environments import ROOT
from page_runner import Reader, blocks_of, own_figures, run_blocks

DOCS = ROOT / "docs"


def with_figures() -> list[Path]:
    """Return the pages that show figures which their own code draws."""
    return [path for path in [*sorted((DOCS / "tutorials").glob("*.md")), DOCS / "gallery.md"] if own_figures(path)]


def run(path: Path) -> None:
    """Run a page in a temporary folder and copy the figures that it shows."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_blocks(Reader(path), blocks_of(path))
        for picture in own_figures(path):
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(folder) / picture.name, picture)


def main() -> None:
    """Run the pages named on the command line."""
    matplotlib.use("Agg")
    names = sys.argv[1:]
    for path in with_figures():
        if not names or path.stem in names:
            run(path)
            print(f"{path.name}: {len(own_figures(path))} figures")


if __name__ == "__main__":
    main()
