"""A model of ordinary arrays beside the one on the cluster: some training samples, by which new ones find their place.

It has the bases, scalings and centres of the whole fit, and of the training samples a few thousand. What needs
neighbours among training samples looks for them there. It can do all that a model fitted in memory can, be saved too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ...scaling import Scaling
from ...utils.types import Array
from ...views import Views
from ...views.trial import N_OF_EVERY_VIEW, draw_samples
from .blocks import BlockedViews, gathered, ids_of
from .scale import scaled_views
from .tasks import Tasks

__all__ = ["N_REFERENCE", "Rows", "drawn_rows", "opened", "reference_of"]

N_REFERENCE = 5000


def opened(
    tasks: Tasks, views: BlockedViews, scale: Any
) -> tuple[Array, Views, list[Any], BlockedViews, list[Scaling]]:
    """Take from the views what the reference needs, scale them, and let them go.

    Gives which samples the reference has, these samples, the ids of all, the scaled views and how they were scaled.
    """
    rows = drawn_rows(tasks, views, N_REFERENCE, 0)
    sample, ids = gathered(tasks, views, rows), tasks.map("ids", ids_of, views.blocks)
    scaled, scalings = scaled_views(tasks, views, scale)
    tasks.wait([*ids, *scaled.blocks])
    views.blocks.clear()  # from here on the scaled ones are needed only
    return rows, sample, ids, scaled, scalings


def drawn_rows(tasks: Tasks, views: BlockedViews, n_rows: int, seed: int) -> Array:
    """Draw samples, some of them with each view, in ascending order; see :func:`draw_samples`."""

    def rare_rows(drawn: Array) -> list[Array]:
        places = _by_block(views, drawn)
        counts = sum(tasks.gather(tasks.map("sample", _n_having, views.blocks, places)))
        return [_all_rows(tasks, views, int(k)) for k in np.flatnonzero(counts < N_OF_EVERY_VIEW)]

    return draw_samples(views.n_samples, n_rows, seed, rare_rows)


def _by_block(views: BlockedViews, rows: Array) -> list[Array]:
    """Return for every block the places of these samples in it."""
    edges = np.searchsorted(rows, views.starts)
    bounds = zip(edges[:-1], edges[1:], views.starts[:-1], strict=True)
    return [rows[begin:stop] - start for begin, stop, start in bounds]


def _n_having(views: Views, places: Array) -> Array:
    return np.asarray(views.mask[places].sum(axis=0))


def _all_rows(tasks: Tasks, views: BlockedViews, view: int) -> Array:
    """Return all samples that have a view."""
    found = tasks.gather(tasks.map("sample", _having, views.blocks, view=view))
    return np.concatenate([rows + start for rows, start in zip(found, views.starts[:-1], strict=True)])


def _having(views: Views, *, view: int) -> Array:
    return views.rows(view)


class Rows:
    """Some samples, and what of every block belongs to them."""

    def __init__(self, tasks: Tasks, views: BlockedViews, rows: Array) -> None:
        self.tasks, self.views = tasks, views
        self.places = _by_block(views, rows)

    def of(self, codes: list[Any], *others: list[Any], codes_of_all: bool = False) -> tuple[list[Array], list[Array]]:
        """Bring codes, of those that have each view or of all, and other values of the samples to the client."""
        parts = self.tasks.gather(
            self.tasks.map("sample", _kept, self.views.blocks, self.places, codes, *others, codes_of_all=codes_of_all)
        )
        of_views, rest = zip(*parts, strict=True)
        return (
            [np.concatenate(own) for own in zip(*of_views, strict=True)],
            [np.concatenate(own) for own in zip(*rest, strict=True)],
        )


def _kept(
    views: Views, places: Array, codes: Sequence[Array], *others: Array, codes_of_all: bool
) -> tuple[list[Array], list[Array]]:
    chosen = np.zeros(views.n_samples, dtype=bool)
    chosen[places] = True
    of_views = [own[chosen if codes_of_all else chosen[views.rows(k)]] for k, own in enumerate(codes)]
    return of_views, [values[places] for values in others]


def reference_of(model: Any, sample: Views, shared: dict[str, Any], kept: tuple[list[Array], list[Array]]) -> Any:
    """Make an ordinary model of the samples; its graphs are those among them."""
    from ...graph.bridges import union_graph
    from ...graph.knn import knn_graph, resolve_n_neighbors

    reference = clone(model).set_params(**({"graph": None} if hasattr(model, "graph") else {}))
    if not isinstance(getattr(model, "init", "data"), str):
        reference.set_params(init="data")
    codes, (embedding, labels, trusted) = kept
    reference.__dict__.update(
        shared,
        codes_=codes,
        embedding_=embedding,
        labels_=labels,
        confidence_=trusted,
        views_=sample,
        sample_ids_=sample.sample_ids,
        n_features_in_=sum(sample.n_features),
    )
    scaled = reference._scaled(sample)
    if model.is_bridged:
        counts, weights = shared["setting_"].n_neighbors, shared["view_weights_"].tolist()
        counts = [min(count, n - 1) for count, n in zip(counts, sample.n_present, strict=True)]
        reference.graph_ = union_graph(scaled, sample, counts, weights)
    else:
        counts = resolve_n_neighbors("auto", sample, len(shared["cluster_centers_"]))
        reference.graphs_ = [knn_graph(matrix, count) for matrix, count in zip(scaled, counts, strict=True)]
    return reference
