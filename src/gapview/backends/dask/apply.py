"""``predict``, ``transform`` and ``recover`` for Dask collections: lazy, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import GapviewWarning
from ...utils.messages import muted
from ...views.containers import named_views
from ..support import unsupported
from . import dask_kind
from .views import align_arrays


def apply_to_blocks(model: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    """Return the lazy result of a method of the model for a Dask collection.

    For a model fitted on a cluster, its reference model computes the result.
    """
    reference = getattr(model, "reference_", model)
    if views is None:
        raise unsupported("method without views on a cluster", method=method)
    kind = dask_kind(views)
    if kind is None:
        return getattr(reference, method)(views, **options)
    if method == "score":
        raise unsupported("score on a cluster")
    if method == "place":
        raise unsupported("place on a cluster")
    reference.check_fitted()
    if options.get("method") == "auto":  # compared once, not by every block
        reference.recovery_scores(n_neighbors=options["n_neighbors"])
    return (_apply_to_frame if kind == "frame" else _apply_to_arrays)(reference, method, views, options)


def _apply_to_arrays(model: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    import dask.array as da
    from dask import delayed

    pairs, _, outer = named_views(views)
    given = [name for name, view in pairs if view is not None]
    arrays = align_arrays(given, [view for _, view in pairs if view is not None], None)
    places = [None if view is None else given.index(name) for name, view in pairs]
    form = (outer, [name for name, _ in pairs], places)
    sent = delayed(model, pure=True)
    sizes = arrays[0].chunks[0]
    chunks = zip(*(array.to_delayed().ravel() for array in arrays), strict=True)
    blocks = [delayed(_apply_to_block, pure=True)(sent, method, form, list(own), options) for own in chunks]

    def joined(parts: Sequence[Any], like: Any) -> Any:
        pairs = zip(parts, sizes, strict=True)
        return da.concatenate([da.from_delayed(p, (size, *like.shape[1:]), dtype=like.dtype) for p, size in pairs])

    if method != "recover":
        return joined(blocks, _pattern(model, method))
    complete = [joined([block[k] for block in blocks], matrix) for k, matrix in enumerate(model.views_.matrices)]
    return dict(zip(model.views_.names, complete, strict=True)) if outer != "list" else complete


def _pattern(model: Any, method: str) -> Any:
    """Return an array without rows that has the other dimensions and the type of a result."""
    if method == "predict_proba":
        return np.empty((0, model.n_groups))
    return (model.labels_ if method == "predict" else model.embedding_)[:0]


def _apply_to_block(model: Any, method: str, form: Any, chunks: Sequence[Any], options: dict[str, Any]) -> Any:
    outer, names, places = form
    given = [None if place is None else np.asarray(chunks[place]) for place in places]
    views: Any = {"list": given, "dict": dict(zip(names, given, strict=True)), "single": given[0]}[outer]
    found = _apply_quietly(model, method, views, options)
    if method != "recover":
        return found
    complete = list(found.values()) if isinstance(found, dict) else found if isinstance(found, list) else [found]
    return [np.asarray(view) for view in complete]


def _apply_quietly(model: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    """Apply a method without warnings: a block is no sample of all rows, and every block would repeat them."""
    with muted(GapviewWarning):
        return getattr(model, method)(views, **options)


def _apply_to_frame(model: Any, method: str, views: Any, options: dict[str, Any]) -> Any:
    pairs, _, _ = named_views(views)
    given = [(name, view) for name, view in pairs if view is not None]
    if len(given) != 1 or method == "recover":
        raise unsupported("frames to a method", method=method)
    name, frame = given[0]
    nothing = _as_frame(model, method, None, None)
    return frame.map_partitions(_apply_to_partition, model, method, name, options, meta=nothing)


def _apply_to_partition(frame: Any, model: Any, method: str, name: str, options: dict[str, Any]) -> Any:
    if not len(frame):
        return _as_frame(model, method, None, None)
    keyed = frame.set_axis(frame.index.astype(object), axis=0)
    return _as_frame(model, method, _apply_quietly(model, method, {name: keyed}, options), frame.index)


def _as_frame(model: Any, method: str, values: Any, index: Any) -> Any:
    """Return labels as a series, and codes and shares as frames; empty ones without values."""
    import pandas as pd

    if method == "predict":
        return pd.Series([] if values is None else values, index=index, dtype=model.labels_.dtype, name="cluster")
    return pd.DataFrame(_pattern(model, method) if values is None else values, index=index)
