"""Nearest neighbours by one function: exact up to a stated size, by cells beyond it, on the device of tensors."""

from .array_search import nearest
from .distances import distance_to_distinct, without_last
from .search import Search, SearchReport

__all__ = ["Search", "SearchReport", "distance_to_distinct", "nearest", "without_last"]
