"""Refusing files that are too large, in the library and in the process that reads files for it.

This module imports nothing of gapview, so that the process starts quickly.
"""

from __future__ import annotations

BYTES_PER_CELL = 16  # the value and, in a sparse matrix, its position


class Refused(Exception):
    """A file that is not read; carries the complete message for the user."""


def too_large(file: str, size: int, what: str, limit: int, name: str = "cells") -> str:
    """Return the message that something in a file exceeds a limit, which has a ``name`` in ``gapview.io.Limits``."""
    return (
        f"{file!r} is too large: {size:,} {what}; at most {limit:,} are read. Leave out columns or rows that are not "
        f"needed, split the view into several, or raise the limit '{name}' with gapview.io.reading_with or the "
        f"environment variable GAPVIEW_LIMITS, as in GAPVIEW_LIMITS={name}=1e11."
    )


def check_size(file: str, size: int, what: str, limit: int, name: str = "cells") -> None:
    """Refuse a file if something in it exceeds a limit."""
    if size > limit:
        raise Refused(too_large(file, size, what, limit, name))
