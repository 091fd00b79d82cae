"""The same estimators on a Dask cluster: views, codes and H stay in blocks on the workers, sums of them travel.

Dask arrays and Dask dataframes given to :class:`gapview.GRMF` or :class:`gapview.BridgedGRMF` lead here. The work is
done by the cluster of the user's ``distributed.Client``, with the formulas of the core applied to blocks.
"""

from __future__ import annotations

from typing import Any

from ..errors import NotFittedError
from ._kinds import dask_kind

__all__ = ["apply_to_blocks", "dask_kind", "demand_in_memory", "fit_on_cluster", "is_for_cluster"]


def is_for_cluster(model: Any, views: Any) -> bool:
    """Tell whether views, or what the model was fitted to, are Dask collections."""
    return hasattr(model, "reference_") or dask_kind(views) is not None


def fit_on_cluster(model: Any, views: Any, mask: Any, checkpoint: Any) -> None:
    """Fit a model to Dask collections."""
    from ._fit import fit_on_cluster as fit  # which needs the estimators

    fit(model, views, mask, checkpoint)


def apply_to_blocks(model: Any, name: str, views: Any, **options: Any) -> Any:
    """Do with Dask collections, or with a model fitted to such, what a method does."""
    from ._apply import apply_to_blocks as apply

    return apply(model, name, views, options)


def demand_in_memory(model: Any) -> None:
    """Refuse what needs all training samples in memory of a model that was fitted on a cluster."""
    if hasattr(model, "reference_"):
        raise NotFittedError(
            "This model was fitted on a cluster, where its training data are. Ask model.reference_, an ordinary model "
            "with the same bases and groups and a sample of the training data; it can be saved, too."
        )
