"""From findings to one HTML file: what a page is made of, how it is written, and how figures look.

Pages know nothing of what they show. Whoever has something to show builds a :class:`Page` out of the blocks below and
hands it to :func:`render`.
"""

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
from ._markdown import render_markdown
from ._page import render
from .clustering import write_clustering_report
from .style import GRID, INK, PAPER, SERIES, SOFT, figure_files, inline_svg, letters_on, new_figure

__all__ = [
    "GRID",
    "INK",
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
    "figure_files",
    "inline_svg",
    "letters_on",
    "new_figure",
    "render",
    "render_markdown",
    "write_clustering_report",
]
