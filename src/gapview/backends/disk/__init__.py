"""Fits larger than memory: views stay in their files, H in scratch files, and a budget is kept.

``memory_budget`` of :class:`gapview.GRMF` and :class:`gapview.BridgedGRMF` leads here. Views given as memory maps of
``.npy`` files are read in blocks; what has to be in memory is reckoned before the fit starts, see :func:`plan_memory`.
"""

from ._budget import in_words, read_budget
from ._graphs import united
from ._plan import FitSize, MemoryPlan, plan_memory
from ._views import DiskViews
from ._within import demand_memory_for_parts, fit_size, read_into_memory, within_budget
from ._workspace import DiskWorkspace

__all__ = [
    "DiskViews",
    "DiskWorkspace",
    "FitSize",
    "MemoryPlan",
    "demand_memory_for_parts",
    "fit_size",
    "in_words",
    "plan_memory",
    "read_budget",
    "read_into_memory",
    "united",
    "within_budget",
]
