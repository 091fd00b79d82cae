"""Model files: a fitted model in one file of arrays and JSON, safe to load from any source.

Models are written by their method ``save``. :mod:`gapview.persist.model_file` describes the layout of the bytes,
:mod:`gapview.utils.packing` that of the values, and :mod:`gapview.persist.registry` what can be stored.
"""

from .model_file import ModelSummary, ViewSummary

__all__ = ["ModelSummary", "ViewSummary"]
