"""Telling Dask collections from other views, without Dask."""

from __future__ import annotations

from typing import Any

from ...errors import InputTypeError
from ...views import Views
from ...views.containers import descends

__all__ = ["dask_kind"]


def dask_kind(data: Any) -> str | None:
    """Tell whether views are Dask arrays ("array") or Dask dataframes ("frame"), or neither (None)."""
    if isinstance(data, Views):
        return None
    single = _kind(data)
    if single is not None:
        return single
    views = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list | tuple) else []
    kinds = {_kind(view) for view in views}
    if kinds >= {"array", "frame"}:
        raise InputTypeError(
            "Some views are Dask arrays, whose rows have no ids, and some are Dask dataframes, which are joined by "
            "their index. Give all views as one or the other."
        )
    return next((kind for kind in kinds if kind), None)


def _kind(view: Any) -> str | None:
    if descends(view, "dask", "Array"):
        return "array"
    is_frame = any(c.__module__.startswith(("dask.dataframe", "dask_expr")) for c in type(view).__mro__)
    return "frame" if is_frame and hasattr(view, "npartitions") else None
