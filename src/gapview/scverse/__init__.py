"""Results in AnnData and MuData."""

from .annotation import annotate

__all__ = ["annotate"]
