"""Fits on a Dask cluster: views, codes and H stay in blocks on the workers; only sums are sent to the client.

:class:`gapview.GRMF` and :class:`gapview.BridgedGRMF` use this package for Dask arrays and Dask dataframes. Blocks are
processed on the cluster of the user's ``distributed.Client``, with the formulas of the core. Importing this package
does not import Dask.
"""

from __future__ import annotations

from typing import Any

from ...errors import InputTypeError
from ...views import Views
from ...views.containers import descends
from ..support import unsupported

__all__ = ["dask_kind", "demand_in_memory", "is_for_cluster"]


def dask_kind(data: Any) -> str | None:
    """Return "array" if views are Dask arrays, "frame" if they are Dask dataframes, else None."""
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


def is_for_cluster(model: Any, views: Any) -> bool:
    """Return whether the views, or the data that the model was fitted to, are Dask collections."""
    return hasattr(model, "reference_") or dask_kind(views) is not None


def demand_in_memory(model: Any) -> None:
    """Raise an error if the model was fitted on a cluster: the caller needs all training samples in memory."""
    if hasattr(model, "reference_"):
        raise unsupported("training data on a cluster")
