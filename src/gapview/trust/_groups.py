"""Checks of labels and graphs, and means within clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute.arrays import TensorGraph, coordinates, csr, divide_weights, weights_of
from ..errors import InputError
from ..utils.types import Array


def read_labels(labels: Any, n_samples: int | None = None) -> Array:
    """Return the labels as an integer array, checked to be whole numbers from 0 on."""
    read = np.asarray(labels)
    expected = "one" if n_samples is None else f"{n_samples} whole numbers, one"
    if read.ndim != 1 or not read.size or (n_samples is not None and len(read) != n_samples):
        raise InputError(f"labels must give {expected} for each sample; got an array of shape {read.shape}.")
    if read.dtype.kind not in "iu" or read.min() < 0:
        raise InputError(
            f"labels must be whole numbers from 0 on, as labels_ of a fitted model; got {read.dtype} from "
            f"{read.min()} on. Number the groups with numpy.unique(labels, return_inverse=True)[1]."
        )
    return read.astype(np.intp)


def mean_within(values: Array, groups: Array, n_groups: int, least: int) -> Array:
    """Return the mean value in every group, NaN for groups with fewer than ``least`` values."""
    counts = np.bincount(groups, minlength=n_groups)
    totals = np.bincount(groups, weights=values, minlength=n_groups)
    return np.where(counts >= least, totals / np.maximum(counts, 1), np.nan)


def row_shares(graph: Any) -> tuple[Any, Array]:
    """Return a graph without loops and with rows that sum to 1, and which samples have neighbours."""
    others = _without_loops(graph)
    weights = weights_of(others)
    xp = array_namespace(weights)
    ones = xp.ones(graph.shape[0], dtype=weights.dtype, device=weights.device)
    totals = others @ ones
    return divide_weights(others, totals, ones), totals > 0


def _without_loops(graph: Any) -> Any:
    if not isinstance(graph, TensorGraph) and not graph.diagonal().any() and (graph.data > 0).all():
        return graph
    origins, ends, weights = coordinates(graph)
    kept = (origins != ends) & (weights > 0)
    return csr(origins[kept], ends[kept], weights[kept], graph.shape)


def read_graph(graph: Any, n_rows: int, name: str) -> sparse.csr_array:
    """Return a graph between ``n_rows`` samples as a csr_array, checked to have finite weights of at least 0."""
    if not sparse.issparse(graph) or graph.shape != (n_rows, n_rows):
        found = f"a sparse matrix of shape {graph.shape}" if sparse.issparse(graph) else type(graph).__name__
        raise InputError(
            f"{name} must be a SciPy sparse matrix of {n_rows} × {n_rows} weights, as gapview.graph.knn_graph makes "
            f"it; got {found}."
        )
    weights = sparse.csr_array(graph)
    if not np.isfinite(weights.data).all() or (weights.data < 0).any():
        raise InputError(f"{name} must hold finite weights of at least 0; got negative, infinite or NaN ones.")
    return weights
