"""What a fit on a cluster gives back: Dask arrays, whose blocks stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import BlockedViews
from .tasks import Tasks

__all__ = ["as_array", "as_arrays"]


def as_array(tasks: Tasks, blocks: list[Any], shapes: list[tuple[int, ...]], dtype: Any) -> Any:
    """Make one Dask array of blocks of rows."""
    import dask.array as da
    from dask import delayed

    parts = [
        da.from_array(np.asarray(block), chunks=-1)
        if tasks.client is None
        else da.from_delayed(delayed(block), shape, dtype=dtype)
        for block, shape in zip(blocks, shapes, strict=True)
    ]
    return da.concatenate(parts)


def as_arrays(
    tasks: Tasks,
    views: BlockedViews,
    ids: list[Any],
    codes: list[Any],
    embeddings: list[Any],
    labels: list[Any],
    trusted: list[Any],
) -> dict[str, Any]:
    """Make the attributes of a fitted model that have a row for each sample."""
    sizes = views.sizes
    told = tasks.gather(tasks.submit("describe", _kinds, ids[0], codes[0], embeddings[0], labels[0], trusted[0]))
    width, n_rows = told["width"], tasks.gather(tasks.map("describe", _lengths, codes))
    kinds = told["kinds"]
    of_views = []
    for k in range(views.n_views):
        blocks = tasks.map("codes", _item, codes, [k] * len(codes))
        of_views.append(as_array(tasks, blocks, [(counts[k], width) for counts in n_rows], kinds[2]))
    return {
        "sample_ids_": as_array(tasks, ids, [(size,) for size in sizes], kinds[0]),
        "codes_": of_views,
        "embedding_": as_array(tasks, embeddings, [(size, width) for size in sizes], kinds[2]),
        "labels_": as_array(tasks, labels, [(size,) for size in sizes], kinds[3]),
        "confidence_": as_array(tasks, trusted, [(size,) for size in sizes], kinds[4]),
    }


def _kinds(ids: Any, codes: Any, embedding: Any, labels: Any, trusted: Any) -> dict[str, Any]:
    kinds = [array.dtype for array in (ids, codes[0], embedding, labels, trusted)]
    return {"width": embedding.shape[1], "kinds": kinds}


def _lengths(codes: list[Any]) -> list[int]:
    return [len(own) for own in codes]


def _item(items: list[Any], place: int) -> Any:
    return items[place]
