"""Where the iterations start: random codes as in the paper, codes from the data, or the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ._own import one_per_view, real_matrix
from .errors import InputError
from .problem import Problem
from .steps import basis_step
from .views import Array, Views

__all__ = ["data_start", "own_start", "random_start"]

# Where its space breaks down, the solver starts anew from random numbers, which recent versions of SciPy take from here
_SEEDED: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
_N_MULTIPLICATIONS = 30


def random_start(problem: Problem, n_components: int, random_state: np.random.RandomState) -> list[Array]:
    """Draw codes uniformly from [0, 1), as the authors do."""
    dtype = problem.degrees.dtype
    return [
        random_state.uniform(size=(len(problem.rows[term.part]), n_components)).astype(dtype) for term in problem.terms
    ]


def data_start(problem: Problem, n_components: int) -> list[Array]:
    """Take codes from the directions in which the views vary together; the same for every call.

    The smoothed features of all views make one covariance matrix, each block of it estimated from the samples that have
    both views. Its leading eigenvectors, cut into views and made orthonormal, are bases that already speak of the same
    components in every view, which independent starts have to find out.
    """
    sizes = [term.n_features for term in problem.terms]
    ends = np.cumsum(sizes)
    directions = _leading_directions(problem, min(n_components, int(ends[-1])), ends)
    codes = []
    for term, block in zip(problem.terms, np.split(directions, ends[:-1], axis=0), strict=True):
        basis = basis_step(block.astype(problem.degrees.dtype))
        code = term.project(basis) / problem.degrees[term.part, None]
        codes.append(np.pad(code, ((0, 0), (0, n_components - code.shape[1]))))
    return codes


def _leading_directions(problem: Problem, n_directions: int, ends: Array) -> Array:
    present = np.zeros((problem.n_samples, len(problem.terms)))
    for k, term in enumerate(problem.terms):
        present[problem.rows[term.part], k] = 1.0
    shared = np.maximum(present.T @ present, 1.0)

    def covariance_times(vector: Array) -> Array:
        parts = np.split(np.ravel(vector), ends[:-1])
        # What every sample says of the vector through each of its views, spread to the views it shares them with
        scores = np.zeros_like(present)
        for k, (term, part) in enumerate(zip(problem.terms, parts, strict=True)):
            scores[problem.rows[term.part], k] = term.project(part[None, :])[:, 0] / problem.degrees[term.part]
        products = []
        for k, term in enumerate(problem.terms):
            weighted = (scores[problem.rows[term.part]] / shared[k]).sum(axis=1) / problem.degrees[term.part]
            products.append(term.correlate(weighted[:, None])[:, 0])
        return np.concatenate(products)

    size = int(ends[-1])
    if size <= max(2 * n_directions + 1, 50):  # too small for the iterative solver, small enough for the whole matrix
        matrix = np.column_stack([covariance_times(column) for column in np.eye(size)])
        return np.asarray(np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1][:, :n_directions])
    operator = LinearOperator((size, size), matvec=covariance_times, dtype=np.float64)
    try:
        values, vectors = eigsh(operator, k=n_directions, which="LA", v0=np.ones(size), tol=1e-4, **_SEEDED)
    except ArpackError:  # few distinct directions: the space it searches in breaks down
        return _by_subspace_iteration(covariance_times, size, n_directions)
    return np.asarray(vectors[:, np.argsort(-values)])


def _by_subspace_iteration(times: Callable[[Array], Array], size: int, n_directions: int) -> Array:
    """Find leading eigenvectors by multiplying a block and making it orthonormal, which no spectrum can break."""
    block = np.linalg.qr(np.random.RandomState(0).normal(size=(size, n_directions)))[0]
    for _ in range(_N_MULTIPLICATIONS):
        block = np.linalg.qr(np.column_stack([times(column) for column in block.T]))[0]
    values, vectors = np.linalg.eigh(block.T @ np.column_stack([times(column) for column in block.T]))
    return np.asarray(block @ vectors[:, np.argsort(-values)])


def own_start(init: Any, problem: Problem, views: Views, n_components: int) -> list[Array]:
    """Read starting codes: per view for its present samples, or for all samples."""
    expected = (
        f"init must be 'random', 'data', or one array of starting codes for each of the {views.n_views} views, in a "
        "list or in a dict with the names of the views"
    )
    given = one_per_view(init, views, expected)
    return [
        _own_codes(codes, problem, problem.rows[term.part], views, k, n_components)
        for k, (codes, term) in enumerate(zip(given, problem.terms, strict=True))
    ]


def _own_codes(codes: Any, problem: Problem, rows: Array, views: Views, view: int, n_components: int) -> Array:
    n_rows, what = int(views.mask[:, view].sum()), f"The starting codes of view '{views.names[view]}'"
    array = real_matrix(codes, what, problem.degrees.dtype)
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
