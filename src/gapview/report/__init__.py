"""From findings to one HTML file: what a page is made of, how it is written, and how figures look.

Pages know nothing of what they show. Whoever has something to show builds a :class:`Page` out of the blocks below and
hands it to :func:`render`.
"""

from ..utils.words import NO_BREAK, counted, duration, joined, number, spelled
from ._blocks import (
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
from ._page import render
from .clustering import write_clustering_report
from .drawing import draw_frame, draw_weight_cells, fill_cells
from .style import GRID, INK, PAPER, SERIES, SOFT, figure_files, inline_svg, letters_on, load_matplotlib, new_figure

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
    "figure_files",
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
