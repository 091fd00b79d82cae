"""HTML reports: blocks of pages, rendering, the style of figures, and the report on a clustering.

A :class:`Page` is built from the blocks below and rendered by :func:`render`, which does not depend on its contents.
"""

from ..utils.messages import NO_BREAK, counted, duration, joined, number, spelled
from .blocks import (
    Block,
    Cell,
    Code,
    Details,
    Drawing,
    Facet,
    Facts,
    Group,
    Items,
    Legend,
    Page,
    Row,
    Scatter,
    Section,
    Sign,
    Table,
    Text,
    Tone,
)
from .clustering import write_clustering_report
from .drawing import draw_frame, draw_weight_cells, fill_cells
from .page import render
from .style import GRID, INK, PAPER, SERIES, SOFT, figure_bytes, inline_svg, letters_on, load_matplotlib, new_figure

__all__ = [
    "GRID",
    "INK",
    "NO_BREAK",
    "PAPER",
    "SERIES",
    "SOFT",
    "Block",
    "Cell",
    "Code",
    "Details",
    "Drawing",
    "Facet",
    "Facts",
    "Group",
    "Items",
    "Legend",
    "Page",
    "Row",
    "Scatter",
    "Section",
    "Sign",
    "Table",
    "Text",
    "Tone",
    "counted",
    "draw_frame",
    "draw_weight_cells",
    "duration",
    "figure_bytes",
    "fill_cells",
    "inline_svg",
    "joined",
    "letters_on",
    "load_matplotlib",
    "new_figure",
    "number",
    "render",
    "spelled",
    "write_clustering_report",
]
