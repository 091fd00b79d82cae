"""What the loaders return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..views import Array, Views


@dataclass(frozen=True)
class Dataset:
    """Views, and where they are known the true groups.

    Unpacks into ``views, target``.
    """

    name: str
    views: Views
    target: Array | None
    description: str
    folds: Array | None = None  # permutations of the samples published with the data, one per row

    def __iter__(self) -> Iterator[Any]:
        return iter((self.views, self.target))
