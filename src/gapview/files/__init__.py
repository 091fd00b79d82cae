"""Files in and out: views from tables, arrays and omics objects, and completed views in the same formats."""

from ._joining import join_views, summary_lines
from ._limits import LIMITS, Limits
from ._reading import read_view, read_views
from ._view_file import SourceFormat, ViewFile
from ._writing import WrittenView, write_like

__all__ = [
    "LIMITS",
    "Limits",
    "SourceFormat",
    "ViewFile",
    "WrittenView",
    "join_views",
    "read_view",
    "read_views",
    "summary_lines",
    "write_like",
]
