"""Model files: a fitted model in one file of arrays and JSON, safe to load from anywhere.

Models are written by their method ``save``. The layout of the bytes is described in ``_container.py``, that of the
values in ``_values.py``.
"""

from .summary import ModelSummary, ViewSummary

__all__ = ["ModelSummary", "ViewSummary"]
