"""Nearest neighbours behind one function: exact up to a stated size, by cells beyond it, on tensors where they are."""

from ._asking import without_last
from ._elsewhere import distance_elsewhere
from ._nearest import nearest
from .search import Search, SearchReport

__all__ = ["Search", "SearchReport", "distance_elsewhere", "nearest", "without_last"]
