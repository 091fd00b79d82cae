"""Names for what has none, or has one that is taken."""

from __future__ import annotations

__all__ = ["free_name", "numbered"]


def numbered(count: int) -> list[str]:
    """Name columns that have no names, counted from 1 as people do."""
    return [f"column_{number}" for number in range(1, count + 1)]


def free_name(name: str, taken: set[str]) -> str:
    """Return the name, or the name with the first number that makes it new."""
    number = 2
    new = name
    while new in taken:
        new = f"{name}_{number}"
        number += 1
    return new
