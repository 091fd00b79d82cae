"""The function that every search for neighbours goes through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compute.arrays import is_tensor
from ...errors import InputTypeError, MissingExtraError, ParameterError
from ...utils.messages import check_integer
from . import search as _search
from .exact import exact, exact_with_warning
from .faiss_search import approximate
from .search import Search, SearchReport

_FASTER = "With the package 'faiss-cpu' it would be many times faster: pip install 'gapview[fast]'"


def nearest(points: Any, n_neighbors: int, queries: Any = None, *, search: Search | None = None) -> tuple[Any, Any]:
    """Return the nearest points by Euclidean distance.

    Up to 20,000 points and queries the neighbours are exact but for rounding: distances below about 1e-8 of the extent
    of the points are inaccurate, and such neighbours come in any order. Beyond, at least 0.95 of the neighbours are the
    true ones, by an estimate on a sample; ``search`` changes this share. The distances returned are always those to the
    points returned.

    Parameters
    ----------
    points : array, csr_array or torch tensor of shape (n_points, n_features)
        The points.
    n_neighbors : int
        Number of neighbours.
    queries : array, csr_array or torch tensor of shape (n_queries, n_features), optional
        The queries; by default the points themselves, none of which is its own neighbour.
    search : Search, optional
        Settings; a report is appended to its ``done``.

    Returns
    -------
    distances, indices : arrays of shape (n_queries, n_neighbors)
        Nearest first. Tensors on the device of the points if these are tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from gapview.graph.neighbors import nearest
    >>> nearest(np.array([[0.0], [1.0], [3.0]]), 1)[1].ravel()
    array([1, 0, 1])
    """
    search = Search() if search is None else search
    _check(points, n_neighbors, queries)
    distances, indices, report = _dispatch(points, int(n_neighbors), queries, search)
    search.done.append(report)
    return distances, indices


def _dispatch(points: Any, n_neighbors: int, queries: Any, search: Search) -> tuple[Any, Any, SearchReport]:
    if is_tensor(points):
        from .torch_search import nearest_tensors  # imports torch

        return nearest_tensors(points, n_neighbors, queries, search)
    size = points.shape[0], points.shape[0] if queries is None else queries.shape[0]
    report = SearchReport("exact", "scikit-learn", *size, n_neighbors)
    if size[1] == 0:
        return np.empty((0, n_neighbors)), np.empty((0, n_neighbors), dtype=np.intp), report
    if search.is_exact(*size, _search.EXACT_PAIRS):
        return *exact(points, n_neighbors, queries), report
    try:
        import faiss  # noqa: F401
    except ImportError:
        if search.method == "approximate":
            raise MissingExtraError("faiss-cpu", "fast", "Approximate search for neighbours") from None
        return *exact_with_warning(points, n_neighbors, queries, _FASTER), report
    return approximate(points, n_neighbors, queries, search)


def _check(points: Any, n_neighbors: Any, queries: Any) -> None:
    check_integer("n_neighbors", n_neighbors, low=1)
    if queries is not None and is_tensor(points) != is_tensor(queries):
        kinds = f"{type(points).__name__} and {type(queries).__name__}"
        raise InputTypeError(f"points and queries must both be arrays or both be tensors; got {kinds}.")
    n_others = int(points.shape[0]) - (queries is None)
    if n_neighbors > n_others and (queries is None or queries.shape[0]):
        raise ParameterError(f"n_neighbors must be at most {n_others}, the number of points; got {n_neighbors}.")
