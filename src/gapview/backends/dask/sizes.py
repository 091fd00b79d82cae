"""How large our objects are: by that the cluster decides what to move, and what to keep in memory."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from dask.sizeof import sizeof
from scipy import sparse

__all__ = ["measured", "size_of"]

Kind = TypeVar("Kind", bound=type)
_LEAST = 100  # bytes of anything


def measured(kind: Kind) -> Kind:
    """Let Dask measure objects of a class by what they hold."""
    sizeof.register(kind)(size_of)
    return kind


def size_of(value: Any) -> int:
    """Add up the bytes of the arrays that an object holds.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview import Views
    >>> from gapview.backends.dask.sizes import size_of
    >>> size_of(Views([np.zeros((1000, 8))])) > 64_000
    True
    """
    if sparse.issparse(value):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes) + _LEAST
    if hasattr(value, "nbytes"):
        return int(value.nbytes) + _LEAST
    if isinstance(value, dict):
        return _LEAST + sum(size_of(item) for item in value.values())
    if isinstance(value, list | tuple):
        return _LEAST + sum(size_of(item) for item in value)
    if is_dataclass(value):
        return _LEAST + sum(size_of(getattr(value, field.name)) for field in fields(value))
    return _LEAST + sum(size_of(item) for item in getattr(value, "__dict__", {}).values())
