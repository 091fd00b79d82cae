"""Starting codes: random as in the paper, or given by the user. See also :mod:`gapview.factorization.data_start`."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from ..compute import host, like
from ..errors import InputError
from ..utils.types import Array
from ..views import Views
from ..views.checks import one_per_view, real_matrix
from .problem import Problem

__all__ = ["own_start", "random_start"]


def random_start(problem: Problem, n_components: int, random_state: np.random.RandomState) -> list[Array]:
    """Draw codes uniformly from [0, 1), as the authors do."""
    xp, degrees = array_namespace(problem.degrees), problem.degrees
    sizes = [(len(problem.rows[term.part]), n_components) for term in problem.terms]
    return [xp.astype(like(random_state.uniform(size=size), degrees), degrees.dtype) for size in sizes]


def own_start(init: Any, problem: Problem, views: Views, n_components: int) -> list[Array]:
    """Read starting codes: per view for its present samples, or for all samples."""
    expected = (
        f"init must be 'random', 'data', or one array of starting codes for each of the {views.n_views} views, in a "
        "list or in a dict with the names of the views"
    )
    given = one_per_view(init, views, expected)
    dtype = host(problem.degrees[:0]).dtype
    codes = [
        _own_codes(code, dtype, host(problem.rows[term.part]), views, k, n_components)
        for k, (code, term) in enumerate(zip(given, problem.terms, strict=True))
    ]
    return [like(code, problem.degrees) for code in codes]


def _own_codes(codes: Any, dtype: Any, rows: Array, views: Views, view: int, n_components: int) -> Array:
    n_rows, what = int(views.mask[:, view].sum()), f"The starting codes of view '{views.names[view]}'"
    array = real_matrix(codes, what, dtype)
    array = array.toarray() if sparse.issparse(array) else array
    if array.shape == (n_rows, n_components):
        everywhere = np.zeros((views.n_samples, n_components), dtype=array.dtype)
        everywhere[views.rows(view)] = array
        array = everywhere
    if array.shape != (views.n_samples, n_components):
        raise InputError(
            f"{what} must be {n_rows} × {n_components} (the samples that "
            f"have the view) or {views.n_samples} × {n_components} (all samples); got shape {array.shape}."
        )
    chosen = array[rows]
    if not np.isfinite(chosen).all():
        raise InputError(f"{what} must be finite as {chosen.dtype}; they hold NaN or infinity.")
    return np.asarray(chosen)
