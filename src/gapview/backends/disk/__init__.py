"""Fits larger than memory: views are read from their files in blocks, H from scratch files, within a memory budget.

:class:`gapview.GRMF` and :class:`gapview.BridgedGRMF` use this package if ``memory_budget`` is set and the views are
memory maps of ``.npy`` files. :func:`plan_memory` computes the memory that a fit needs before the fit starts.
"""

from .backend import DiskBackend, open_backend
from .budget import FitSize, MemoryPlan, check_memory_for_parts, fit_size, format_bytes, plan_memory, read_budget
from .views import read_into_memory

__all__ = [
    "DiskBackend",
    "FitSize",
    "MemoryPlan",
    "check_memory_for_parts",
    "fit_size",
    "format_bytes",
    "open_backend",
    "plan_memory",
    "read_budget",
    "read_into_memory",
]
