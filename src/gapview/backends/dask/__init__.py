"""Fits on a Dask cluster: views, codes and H stay in blocks on the workers; only sums of them travel.

Dask arrays and Dask dataframes given to :class:`gapview.GRMF` or :class:`gapview.BridgedGRMF` are fitted here, on the
cluster of the user's ``distributed.Client``, with the formulas of the core applied to blocks. Importing this package
does not import Dask.
"""

from __future__ import annotations

from typing import Any

from ...errors import NotFittedError
from .kinds import dask_kind

__all__ = ["dask_kind", "demand_in_memory", "is_for_cluster"]


def is_for_cluster(model: Any, views: Any) -> bool:
    """Return whether the views, or the data that the model was fitted to, are Dask collections."""
    return hasattr(model, "reference_") or dask_kind(views) is not None


def demand_in_memory(model: Any) -> None:
    """Raise an error if the model was fitted on a cluster: the caller needs all training samples in memory."""
    if hasattr(model, "reference_"):
        raise NotFittedError(
            "This model was fitted on a cluster, and its training data are there. Use model.reference_, an ordinary "
            "model with the same bases and groups and a sample of the training data; it can be saved, too."
        )
