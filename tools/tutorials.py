"""Run the tutorials on real data and store their figures in docs/images/tutorials.

    GAPVIEW_DATA=FOLDER python tools/tutorials.py [NAME]...

By default every tutorial that shows figures of its own. A tutorial that prints other than its page shows is an error.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib
from environments import ROOT
from page_runner import Reader, blocks_of, pictures_of, run_blocks

TUTORIALS = ROOT / "docs" / "tutorials"
FIGURES = ROOT / "docs" / "images" / "tutorials"


def with_figures() -> list[Path]:
    """Return the tutorials that show figures which their own code draws."""
    return [
        path for path in sorted(TUTORIALS.glob("*.md")) if any(p.parent.name == "tutorials" for p in pictures_of(path))
    ]


def run(path: Path) -> None:
    """Run a tutorial in a temporary folder and copy the figures that its page shows."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_blocks(Reader(path), blocks_of(path))
        for picture in pictures_of(path):
            shutil.copy(Path(folder) / picture.name, FIGURES / picture.name)


def main() -> None:
    """Run the tutorials of the command line."""
    matplotlib.use("Agg")
    FIGURES.mkdir(parents=True, exist_ok=True)
    names = sys.argv[1:]
    for path in with_figures():
        if not names or path.stem in names:
            run(path)
            print(f"{path.name}: {len(pictures_of(path))} figures")


if __name__ == "__main__":
    main()
