"""The choice of the backend of a fit, by the training data and the parameters of the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..correction import batched
from ..persist.checkpoints import recording
from ..progress import phase
from ..views import training_views
from ..views.linking import warn_of_parts
from .base import Backend
from .dask import dask_kind
from .disk import backend as on_disk
from .memory import MemoryBackend
from .streamed import device_backend


@contextmanager
def open_backend(model: Any, data: Any, mask: Any, batch: Any, checkpoint: Any) -> Iterator[Backend]:
    """Read and check the training data of a fit, and open the backend for them.

    Parameters
    ----------
    model : GRMF or BridgedGRMF
        The model, with parameters that are checked.
    data, mask, batch, checkpoint
        As in ``fit``.
    """
    if dask_kind(data) is not None:
        from .dask import backend as on_cluster  # needs the extra "dask"

        with on_cluster.open_backend(model, data, mask, checkpoint) as backend:
            yield backend
        return
    if model.memory_budget is not None and model.device is None:
        with on_disk.open_backend(model, data, mask) as here, recording(checkpoint, model, here.training):
            warn_of_parts(here.training.names, here.training.mask)
            yield here
        return
    with phase("reading"):
        views = training_views(data, mask, model.partial_rows, model._least_samples(), model.kind)
    views = batched(views, batch, model.batch_correction)
    warn_of_parts(views.names, views.mask)
    with recording(checkpoint, model, views):
        if model.device is None:
            yield MemoryBackend(views, is_last=True)
        else:
            yield device_backend(views, model.device, model.memory_budget)
