"""What the loaders return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, InputTypeError, some
from ..utils.types import Array
from ..views import Views


@dataclass(frozen=True)
class Dataset:
    """Views, and where they are known the true groups.

    Unpacks into ``views, target``.
    """

    name: str  # as it is called in tables
    views: Views  # the data
    target: Array | None  # the true group of every sample, None if nobody knows
    description: str  # in a sentence
    folds: Array | None = None  # permutations of the samples published with the data, one per row

    def __iter__(self) -> Iterator[Any]:
        return iter((self.views, self.target))


def chosen_views(views: Any, name_of: Callable[[Any], str]) -> list[str]:
    """Return the names of the views that a loader is asked for; ``name_of`` knows one view, or raises."""
    if isinstance(views, str | bytes) or not isinstance(views, Iterable):
        # Said here, since the letters of a text are a sequence too
        hint = f" For a single view write views=[{views!r}]." if isinstance(views, str | int) else ""
        raise InputTypeError(f"views must be a list of views, such as [0, 1] or ['pixels']; got {views!r}.{hint}")
    names = [name_of(view) for view in views]
    if not names:
        raise InputError("views must name some of the views; got an empty list.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"views must name every view once; {some(twice)} came more than once. Leave the repeats out.")
    return names
