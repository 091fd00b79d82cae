"""The results of a fit on a cluster: Dask arrays, and a reference model of ordinary arrays.

The reference model has the bases, scalings and centres of the whole fit, and a few thousand of the training samples, in
which neighbours of new samples are searched. It has all methods of a model fitted in memory, and can be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, getitem
from typing import Any

import numpy as np
from sklearn.base import clone

from ...graph.bridges import union_graph
from ...graph.knn import knn_graph, resolve_n_neighbors
from ...scaling import Scaling
from ...utils.types import Array
from ...views import Views
from .tasks import Tasks, split_by_block
from .views import BlockedViews, collect_samples, draw_rows, scale_views

__all__ = ["N_REFERENCE", "PreparedViews", "fitted_attributes", "prepare_views"]

N_REFERENCE = 5000


@dataclass(frozen=True)
class PreparedViews:
    """The scaled views, and what the results need of the unscaled ones."""

    rows: Array  # samples of the reference model
    sample: Views  # these samples, unscaled
    ids: list[Any]  # for every block a handle of the ids of its samples
    scaled: BlockedViews
    scalings: list[Scaling]


def prepare_views(tasks: Tasks, views: BlockedViews, scale: Any) -> PreparedViews:
    """Scale the views, keep what the results need of the unscaled ones, and release these."""
    rows = draw_rows(tasks, views, N_REFERENCE, 0)
    sample, ids = collect_samples(tasks, views, rows), tasks.map("ids", attrgetter("sample_ids"), views.blocks)
    scaled, scalings = scale_views(tasks, views, scale)
    tasks.wait([*ids, *scaled.blocks])
    views.blocks.clear()
    return PreparedViews(rows, sample, ids, scaled, scalings)


def fitted_attributes(
    model: Any,
    tasks: Tasks,
    prepared: PreparedViews,
    fitted: dict[str, Any],
    codes: list[Any],
    *others: list[Any],
    codes_of_all: bool = False,
) -> dict[str, Any]:
    """Return the attributes of the fitted model.

    Parameters
    ----------
    model : GRMF or BridgedGRMF
        The model to fit.
    tasks : Tasks
        Runs the tasks.
    prepared : PreparedViews
        The views.
    fitted : dict
        Attributes that do not depend on the number of samples.
    codes : list of handles
        For every block one array of codes per view, of the samples that have it, or of all with ``codes_of_all``.
    *others : lists of handles
        For every block the embedding, the labels and the confidence of its samples.
    codes_of_all : bool
        See ``codes``.
    """
    fitted = fitted | {"scalings_": prepared.scalings}
    views, places = prepared.scaled, split_by_block(prepared.rows, prepared.scaled.starts)
    parts = tasks.collect("sample", _of_rows, views.blocks, places, codes, *others, codes_of_all=codes_of_all)
    of_views, rest = ([np.concatenate(own) for own in zip(*half, strict=True)] for half in zip(*parts, strict=True))
    reference = _reference(model, prepared.sample, fitted, of_views, *rest)
    names, of_blocks = ("sample_ids_", "embedding_", "labels_", "confidence_"), (prepared.ids, *others)
    arrays: dict[str, Any] = {
        name: _as_array(tasks, blocks, views.sizes) for name, blocks in zip(names, of_blocks, strict=True)
    }
    arrays["codes_"] = []
    for k in range(views.n_views):
        blocks = tasks.map("codes", getitem, codes, [k] * len(codes))
        arrays["codes_"].append(_as_array(tasks, blocks, views.sizes if codes_of_all else views.present[:, k].tolist()))
    return {**fitted, **arrays, "reference_": reference, "views_": reference.views_}


def _of_rows(
    views: Views, rows: Array, codes: Sequence[Array], *others: Array, codes_of_all: bool
) -> tuple[list[Array], list[Array]]:
    chosen = np.zeros(views.n_samples, dtype=bool)
    chosen[rows] = True
    of_views = [own[chosen if codes_of_all else chosen[views.rows(k)]] for k, own in enumerate(codes)]
    return of_views, [values[rows] for values in others]


def _as_array(tasks: Tasks, blocks: list[Any], sizes: list[int]) -> Any:
    """Return one Dask array of blocks of rows, which stay on the workers."""
    import dask.array as da
    from dask import delayed

    if tasks.client is None:
        return da.concatenate([da.from_array(np.asarray(block), chunks=-1) for block in blocks])
    (_, *width), dtype = tasks.gather(tasks.submit("describe", attrgetter("shape", "dtype"), blocks[0]))
    parts = zip(blocks, sizes, strict=True)
    return da.concatenate([da.from_delayed(delayed(block), (size, *width), dtype=dtype) for block, size in parts])


def _reference(
    model: Any,
    sample: Views,
    fitted: dict[str, Any],
    codes: list[Array],
    embedding: Array,
    labels: Array,
    confidence: Array,
) -> Any:
    """Return an ordinary model of the samples; its graphs link these samples only."""
    reference = clone(model).set_params(**({"graph": None} if hasattr(model, "graph") else {}))
    if not isinstance(getattr(model, "init", "data"), str):
        reference.set_params(init="data")
    reference.__dict__.update(
        fitted,
        codes_=codes,
        embedding_=embedding,
        labels_=labels,
        confidence_=confidence,
        views_=sample,
        sample_ids_=sample.sample_ids,
        n_features_in_=sum(sample.n_features),
    )
    scaled = reference.scaled(sample)
    if model.is_bridged:
        counts, weights = fitted["setting_"].n_neighbors, fitted["view_weights_"].tolist()
        counts = [min(count, n - 1) for count, n in zip(counts, sample.n_present, strict=True)]
        reference.graph_ = union_graph(scaled, sample, counts, weights)
    else:
        counts = resolve_n_neighbors("auto", sample, len(fitted["cluster_centers_"]))
        reference.graphs_ = [knn_graph(matrix, count) for matrix, count in zip(scaled, counts, strict=True)]
    return reference
