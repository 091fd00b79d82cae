"""What estimators ask of views: enough to learn from, or the same views as in training."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._parameters import check_choice
from ..errors import InputError, some
from ._cells import PARTIAL_ROWS
from ._containers import Matrix
from ._views import Views


def as_views(data: Any, mask: Any = None, partial_rows: str = "raise", reference: Views | None = None) -> Views:
    """Make a ``Views`` of whatever the user gave; ``reference`` fills gaps in rows of new samples."""
    if isinstance(data, Views):
        return data if mask is None else data.hide(mask)
    check_choice("partial_rows", partial_rows, PARTIAL_ROWS)
    views = Views.__new__(Views)
    views._read(data, mask, None, None, None, partial_rows, reference)
    return views


def training_views(data: Any, mask: Any, partial_rows: str, n_clusters: int) -> Views:
    """Read views to learn ``n_clusters`` groups from."""
    views = as_views(data, mask, partial_rows)
    if views.n_samples < 2:
        raise InputError(f"Clustering needs at least 2 samples; got n_samples={views.n_samples}.")
    if n_clusters > views.n_samples:
        raise InputError(
            f"n_clusters={n_clusters} is more than the number of samples: n_samples={views.n_samples}. "
            "Ask for fewer clusters."
        )
    for name, matrix in zip(views.names, views.matrices, strict=True):
        if matrix.shape[0] < 2:
            raise InputError(
                f"View '{name}' is present for {matrix.shape[0]} sample(s); at least 2 are needed to compare them. "
                "Leave this view out."
            )
        if is_constant(matrix):
            raise InputError(
                f"View '{name}' is constant: all its {matrix.shape[0]} rows are the same, so it tells nothing about "
                "the samples. Leave this view out."
            )
    return views


def is_constant(matrix: Matrix) -> bool:
    """Tell whether all rows of a matrix are the same."""
    if sparse.issparse(matrix):
        return bool((abs(matrix.max(axis=0) - matrix.min(axis=0))).sum() == 0)
    return bool((matrix == matrix[:1]).all())


def new_views(data: Any, trained: Views, partial_rows: str = "raise") -> Views:
    """Read views of new samples, of which any subset of the trained views may be given, in the trained order."""
    views = as_views(data, None, partial_rows, trained)
    places = _match(views, trained)
    matrices: list[Matrix] = []
    mask = np.zeros((views.n_samples, trained.n_views), dtype=bool)
    for k, place in enumerate(places):
        if place is None or (views.n_features[place] == 0 and not views.mask[:, place].any()):
            matrices.append(trained.matrices[k][:0])
            continue
        matrices.append(_same_features(views, place, trained, k))
        mask[:, k] = views.mask[:, place]
    aligned = trained._like(tuple(matrices), mask, views.sample_ids)
    aligned._outer = views._outer
    aligned._inner = tuple("array" if p is None else views._inner[p] for p in places)
    return aligned


def _match(views: Views, trained: Views) -> list[int | None]:
    """Find the given view for every trained one: by name where the user names them, else by position."""
    if set(views.names) <= set(trained.names) and (views._named or views.n_views == trained.n_views):
        return [views.names.index(name) if name in views.names else None for name in trained.names]
    if not views._named and views.n_views == trained.n_views:
        return list(range(trained.n_views))
    unknown = [name for name in views.names if name not in trained.names]
    what = f"the unknown view(s) {some(unknown)}" if views._named else f"{views.n_views} view(s) without names"
    raise InputError(
        f"The model knows the views {some(trained.names, 10)}; got {what}. "
        f"Give a dict with some of these names, or a list of {trained.n_views} with None for a view that is not there."
    )


def _same_features(views: Views, place: int, trained: Views, k: int) -> Matrix:
    matrix, known, given = views.matrices[place], trained.feature_names[k], views.feature_names[place]
    if matrix.shape[1] != trained.n_features[k]:
        raise InputError(
            f"View '{trained.names[k]}' had {trained.n_features[k]} features in training and has {matrix.shape[1]} "
            "now. Give the same features in the same order."
        )
    if known is None or given is None or np.array_equal(known, given):
        return matrix
    if set(known) != set(given):
        raise InputError(
            f"View '{trained.names[k]}' has other features than in training: "
            f"{some([name for name in given if name not in set(known)])} were not there. Give the same columns."
        )
    position = {name: column for column, name in enumerate(given)}
    return matrix[:, [position[name] for name in known]]
