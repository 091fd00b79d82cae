"""Reading views from tables, arrays and omics objects, and writing completed views in the same formats."""

from ._reading import read_table, read_view, read_views
from ._sources import LIMITS, Limits, reading_with
from ._view_file import SourceFormat, ViewFile, join_views, samples_of, summary_lines
from ._writing import WrittenView, write_like
from .tables import DUPLICATES

__all__ = [
    "DUPLICATES",
    "LIMITS",
    "Limits",
    "SourceFormat",
    "ViewFile",
    "WrittenView",
    "join_views",
    "read_table",
    "read_view",
    "read_views",
    "reading_with",
    "samples_of",
    "summary_lines",
    "write_like",
]
