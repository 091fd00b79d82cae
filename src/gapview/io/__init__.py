"""Files in and out: views from tables, arrays and omics objects, and completed views in the same formats."""

from ._joining import join_views, samples_of, summary_lines
from ._limits import LIMITS, Limits
from ._read_table import read_table
from ._reading import read_view, read_views
from ._view_file import SourceFormat, ViewFile
from ._writing import WrittenView, write_like
from .ids import DUPLICATES
from .isolated import reading_with

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
