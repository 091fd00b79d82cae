"""Results in AnnData and MuData, in the places that the tools of scverse use, and functions in their style."""

from .annotation import annotate
from .files import write_annotated

__all__ = ["annotate", "write_annotated"]
