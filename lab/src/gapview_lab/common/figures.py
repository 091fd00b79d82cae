"""Figures as files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gapview.report.style import figure_bytes
from gapview.utils.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_files"]


def figure_files(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as ``stem``.png and ``stem``.svg, each completely or not at all; return the two files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from gapview.report.style import new_figure
    >>> from gapview_lab.common.figures import figure_files
    >>> with new_figure(4, 3) as figure:
    ...     lines = figure.subplots().plot([0, 1], [1, 0])
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in figure_files(figure, Path(folder) / "line")]
    ['line.png', 'line.svg']
    """
    png, svg = (stem.parent / f"{stem.name}.{ending}" for ending in ("png", "svg"))
    write_whole(png, figure_bytes(figure, "png", dpi=200))
    # Any sans-serif font: without the long list of fonts that matplotlib writes
    drawn = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", figure_bytes(figure, "svg").decode())
    write_whole(svg, drawn.encode())
    return [png, svg]
