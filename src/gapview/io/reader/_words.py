"""What the reading process says in words of gapview's own: files that are whole, but not to be read."""

from __future__ import annotations

__all__ = ["Refused", "demand", "too_large"]


class Refused(Exception):
    """A file that is not read, with the whole message."""


def too_large(file: str, size: int, what: str, limit: int) -> str:
    """Say that something in a file is larger than the limits."""
    return (
        f"{file!r} is too large: {size:,} {what}; at most {limit:,} are read. Leave out columns or rows that are not "
        "needed, or cut the view into several."
    )


def demand(file: str, size: int, what: str, limit: int) -> None:
    """Refuse what is larger than the limits."""
    if size > limit:
        raise Refused(too_large(file, size, what, limit))
