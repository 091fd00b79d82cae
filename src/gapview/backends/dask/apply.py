"""``predict``, ``transform`` and ``recover`` of Dask collections: block by block, and not before they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError, ParameterError
from ...views.containers import named_views
from .blocks import aligned
from .kinds import dask_kind

__all__ = ["apply_to_blocks"]


def apply_to_blocks(model: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    """Do with a collection what a method of the model does with arrays; nothing is computed yet.

    Of a model that was fitted on a cluster, its reference does the work.
    """
    worker = getattr(model, "reference_", model)
    if views is None:
        raise InputError(
            f"A model fitted on a cluster keeps a sample of its training data only: give the views, {method}(views), "
            "as Dask collections, or the model.reference_ to complete that sample."
        )
    kind = dask_kind(views)
    if kind is not None and method == "score":
        raise InputError(
            "score compares all samples with each other: give views in memory, such as a sample of the rows."
        )
    if kind is None:
        return getattr(worker, method)(views, **options)
    if options.get("return_distance"):
        raise ParameterError("return_distance=True gives two results; of Dask collections ask for labels only.")
    worker._demand_fitted()
    return _of_frame(worker, method, views, options) if kind == "frame" else _of_arrays(worker, method, views, options)


def _of_arrays(worker: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    import dask.array as da
    from dask import delayed

    pairs, _, outer = named_views(views)
    there = [(name, view) for name, view in pairs if view is not None]
    arrays = aligned([name for name, _ in there], [view for _, view in there], None)
    places = [None if view is None else [name for name, _ in there].index(name) for name, view in pairs]
    form = (outer, [name for name, _ in pairs], places)
    known = delayed(worker, pure=True)
    sizes = arrays[0].chunks[0]
    chunks = zip(*(array.to_delayed().ravel() for array in arrays), strict=True)
    blocks = [delayed(_of_block, pure=True)(known, method, form, list(own), options) for own in chunks]
    if method == "recover":
        widths, dtype = worker.views_.n_features, worker.embedding_.dtype
        complete = [
            da.concatenate(
                [da.from_delayed(b[k], (size, width), dtype=dtype) for b, size in zip(blocks, sizes, strict=True)]
            )
            for k, width in enumerate(widths)
        ]
        return dict(zip(worker.views_.names, complete, strict=True)) if outer != "list" else complete
    width = () if method == "predict" else (worker._n_features_out,)
    dtype = worker.labels_.dtype if method == "predict" else worker.embedding_.dtype
    return da.concatenate(
        [da.from_delayed(block, (size, *width), dtype=dtype) for block, size in zip(blocks, sizes, strict=True)]
    )


def _of_block(worker: Any, method: str, form: Any, chunks: Sequence[Any], options: dict[str, Any]) -> Any:
    outer, names, places = form
    given = [None if place is None else np.asarray(chunks[place]) for place in places]
    views: Any = given if outer == "list" else dict(zip(names, given, strict=True))
    views = given[0] if outer == "single" else views
    found = getattr(worker, method)(views, **options)
    if method != "recover":
        return found
    complete = list(found.values()) if isinstance(found, dict) else found if isinstance(found, list) else [found]
    return [np.asarray(view, dtype=worker.embedding_.dtype) for view in complete]


def _of_frame(worker: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    import pandas as pd

    pairs, _, _ = named_views(views)
    given = [(name, view) for name, view in pairs if view is not None]
    if len(given) != 1 or method == "recover":
        raise InputError(
            f"{method} takes Dask arrays, or for predict and transform one Dask dataframe: several would have to be "
            "joined by their ids first. Join them, or give arrays whose rows are the same samples."
        )
    name, frame = given[0]
    if method == "predict":
        meta: Any = pd.Series(dtype=worker.labels_.dtype, name="cluster")
    else:
        meta = pd.DataFrame(np.empty((0, worker._n_features_out), dtype=worker.embedding_.dtype))
    return frame.map_partitions(_of_partition, worker, method, name, options, meta=meta)


def _of_partition(frame: Any, worker: Any, method: str, name: str, options: dict[str, Any]) -> Any:
    import pandas as pd

    if not len(frame):
        empty = np.empty((0, worker._n_features_out), dtype=worker.embedding_.dtype)
        return pd.Series(dtype=worker.labels_.dtype, name="cluster") if method == "predict" else pd.DataFrame(empty)
    keyed = frame.set_axis(frame.index.astype(object), axis=0)
    found = getattr(worker, method)({name: keyed}, **options)
    if method == "predict":
        return pd.Series(found, index=frame.index, name="cluster")
    return pd.DataFrame(found, index=frame.index)
