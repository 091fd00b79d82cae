"""Memory that is free, but has not gone back to the system."""

from __future__ import annotations

import ctypes

__all__ = ["return_freed_memory"]


def return_freed_memory() -> None:
    """Give back what was freed in small pieces, which the C library of Linux would keep for later; else do nothing."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return
    trim(0)
