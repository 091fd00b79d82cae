"""A start from the data instead of random numbers: the same for every call, and few iterations from the end.

The smoothed features of all views make one covariance matrix, each block of it estimated from the samples that have
both views. Its leading eigenvectors, cut into views and made orthonormal, are bases that already speak of the same
components in every view, which independent starts have to find out.

From there on the data are not needed for a while. Without the L1 penalty, the codes that are best for given bases
follow from them by a formula, and what is left of the objective is a quadratic form in the bases. Its matrix is
collected in one pass over the data; the iterations on it cost nothing that grows with the samples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..compute import engine_for, host, is_tensor, like
from ..utils.types import Array
from .blocks import Layout
from .problem import Problem, demand_finite
from .runs import Weights
from .steps import basis_step

__all__ = ["MOST_FEATURES", "ROWS_AT_A_TIME", "data_start"]

MOST_FEATURES = 1024  # in all views together, up to which matrices of features by features are written out
_N_STRIPES = 8
ROWS_AT_A_TIME = 2000  # at most, of which several copies are made
_MOST_ITERATIONS = 100
_TOLERANCE = 1e-7
_NEARLY_SINGULAR = 1e-8

# Where its space breaks down, the solver starts anew from random numbers, which recent versions of SciPy take from here
_SEEDED: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
_N_MULTIPLICATIONS = 30


def data_start(problem: Problem, n_components: int, weights: Weights) -> list[Array]:
    """Take starting codes from the directions in which the views vary together.

    Parameters
    ----------
    problem : Problem
        The data.
    n_components : int
        Number of components K.
    weights : Weights
        The penalties; the second is left out of account.

    Returns
    -------
    list of arrays of shape (n_codes, n_components)
        One for each view.
    """
    columns = _columns(problem)
    n_directions = min(n_components, columns[-1].stop)
    if columns[-1].stop <= MOST_FEATURES and all(term.smoothed is not None for term in problem.terms):
        covariance, quadratic = _moments(problem, weights)
        directions = _leading(covariance, n_directions)
        bases = _settled([basis_step(directions[own]) for own in columns], quadratic, columns)
    else:
        directions = _iterated(problem, n_directions)
        bases = [basis_step(directions[own]) for own in columns]
    return _best_codes(problem, bases, weights, n_components)


def _best_codes(problem: Problem, bases: list[Array], weights: Weights, n_components: int) -> list[Array]:
    """Return the codes that are best for given bases without the L1 penalty.

    From P = (HUᵀ + λ1Z) / m and Z the mean of P follows Z = Σ HUᵀ/m / Σ d/m, sums over the views of a sample.
    """
    xp = array_namespace(problem.degrees)
    dtype, device = problem.degrees.dtype, problem.degrees.device
    tie = weights.consensus * xp.astype(problem.n_codes >= 2, dtype)[problem.rows]
    mass = problem.degrees + tie
    own = [xp.astype(like(np.ascontiguousarray(basis), problem.degrees), dtype) for basis in bases]
    projected = [term.project(basis) for term, basis in zip(problem.terms, own, strict=True)]
    total = xp.zeros((problem.n_samples, projected[0].shape[1]), dtype=dtype, device=device)
    share = xp.zeros(problem.n_samples, dtype=dtype, device=device)
    for term, seen in zip(problem.terms, projected, strict=True):
        rows = problem.rows[term.part]
        total[rows] += seen / mass[term.part, None]
        share[rows] += problem.degrees[term.part] / mass[term.part]
    consensus = total / xp.where(share > 0, share, xp.ones_like(share))[:, None]
    codes = []
    for term, code in zip(problem.terms, projected, strict=True):
        pull = consensus[problem.rows[term.part]]
        pull *= tie[term.part, None]
        code += pull
        code /= mass[term.part, None]
        n_missing = n_components - code.shape[1]
        missing = xp.zeros((code.shape[0], n_missing), dtype=dtype, device=device)
        codes.append(xp.concat([code, missing], axis=1) if n_missing else code)
    return codes


def _moments(problem: Problem, weights: Weights) -> tuple[Array, Array]:
    """Collect in one pass the covariance of the views, and the matrix of the quadratic form in the bases.

    With the best codes for bases U the objective is a constant minus Σ ‖HUᵀ‖²/m + λ1 ‖Σ HUᵀ/m‖² / Σ d/m, the second
    for tied samples and summed over their views.
    """
    layout = Layout(problem, _N_STRIPES, None if is_tensor(problem.degrees) else ROWS_AT_A_TIME)
    n_operations = 6.0 * problem.n_samples * sum(term.n_features for term in problem.terms) ** 2
    total = _SumInOrder()

    def work(place: int) -> None:
        total.add(place, _moments_of_stripe(layout, weights.consensus, layout.stripes[place]))

    with engine_for(problem.degrees).working(n_operations) as each:
        each(work, range(len(layout.stripes)))
    covariance, quadratic = (host(part) for part in total.parts)
    shared = host(_shared_samples(problem))
    columns = _columns(problem)
    for k, rows in enumerate(columns):
        for j, others in enumerate(columns):
            covariance[rows, others] /= max(float(shared[k, j]), 1.0)
    return covariance, quadratic


class _SumInOrder:
    """Sums of arrays that threads bring in any order, added up in their own order as they come.

    So the rounding does not depend on the threads, and no more arrays wait than there are threads.
    """

    def __init__(self) -> None:
        self.parts: list[Array] = []
        self._waiting: dict[int, tuple[Array, ...]] = {}
        self._next, self._lock = 0, Lock()

    def add(self, place: int, arrays: tuple[Array, ...]) -> None:
        with self._lock:
            self._waiting[place] = arrays
            while self._next in self._waiting:
                arrays = self._waiting.pop(self._next)
                self._next += 1
                for total, array in zip(self.parts, arrays, strict=False):
                    total += array
                self.parts = self.parts or list(arrays)


@np.errstate(over="ignore", invalid="ignore")  # found where its results arrive, and said in words
def _moments_of_stripe(layout: Layout, consensus_weight: float, stripe: range) -> tuple[Array, Array]:
    problem, columns = layout.problem, _columns(layout.problem)
    xp = array_namespace(problem.degrees)
    kind: dict[str, Any] = {"dtype": problem.degrees.dtype, "device": problem.degrees.device}
    n_features = columns[-1].stop
    covariance = xp.zeros((n_features, n_features), dtype=xp.float64, device=kind["device"])
    quadratic = xp.zeros_like(covariance)
    for block in stripe:
        n_rows = layout.blocks[block].stop - layout.blocks[block].start
        means, pulled = xp.zeros((n_rows, n_features), **kind), xp.zeros((n_rows, n_features), **kind)
        share = xp.zeros(n_rows, **kind)
        for term, piece, own in zip(problem.terms, layout.pieces(block)[0], columns, strict=True):
            smoothed = term.block(piece.part)
            mass = piece.degrees + consensus_weight * piece.tied
            weighted = smoothed / mass[:, None]
            means[piece.places, own] = smoothed / piece.degrees[:, None]
            pulled[piece.places, own] = weighted * piece.tied[:, None]
            share[piece.places] += piece.degrees / mass
            quadratic[own, own] += smoothed.T @ weighted
        pull = consensus_weight / xp.where(share > 0, share, xp.ones_like(share))
        covariance += means.T @ means
        quadratic += pulled.T @ (pulled * pull[:, None])
    return covariance, quadratic


def _columns(problem: Problem) -> list[slice]:
    """Return where the features of every view stand among all."""
    ends = np.cumsum([term.n_features for term in problem.terms]).tolist()
    return [slice(end - term.n_features, end) for term, end in zip(problem.terms, ends, strict=True)]


def _shared_samples(problem: Problem) -> Array:
    """Return for every two views how many samples have codes in both."""
    xp = array_namespace(problem.degrees)
    present = xp.zeros((problem.n_samples, len(problem.terms)), dtype=xp.float64, device=problem.degrees.device)
    for k, term in enumerate(problem.terms):
        present[problem.rows[term.part], k] = 1.0
    return present.T @ present  # type: ignore[no-any-return]


def _leading(matrix: Array, n_directions: int) -> Array:
    """Return the eigenvectors of the largest eigenvalues, the largest first."""
    demand_finite(np.isfinite(matrix).all(), matrix.dtype)
    return np.asarray(np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1][:, :n_directions])


@np.errstate(over="ignore", invalid="ignore")  # found where its results arrive, and said in words
def _settled(bases: list[Array], quadratic: Array, columns: list[slice]) -> list[Array]:
    """Raise the quadratic form step by step until it hardly changes.

    The form is convex, so that its tangent lies below it: the bases that are best for the tangent, Eq. (9), are at
    least as good for the form itself.
    """
    demand_finite(np.isfinite(quadratic).all(), quadratic.dtype)
    value = -np.inf
    for _ in range(_MOST_ITERATIONS):
        stacked = np.concatenate(bases, axis=1)  # K × all features
        slopes = stacked @ quadratic
        before, value = value, float(np.vdot(slopes, stacked))
        if value - before <= _TOLERANCE * abs(value):
            break
        bases = [_nearest_orthonormal(slopes[:, own]) for own in columns]
    return bases


def _nearest_orthonormal(slopes: Array) -> Array:
    """Eq. (9) by way of the small matrix SSᵀ, where it is far from singular; by the decomposition of S elsewhere."""
    demand_finite(np.isfinite(slopes).all(), slopes.dtype)
    slopes = np.ldexp(slopes, -np.frexp(np.abs(slopes).max())[1])  # squares of huge slopes stay finite
    values, vectors = np.linalg.eigh(slopes @ slopes.T)
    if values[0] <= _NEARLY_SINGULAR * values[-1]:
        return basis_step(slopes.T)
    return np.asarray((vectors / np.sqrt(values)) @ (vectors.T @ slopes))


def _iterated(problem: Problem, n_directions: int) -> Array:
    """Find the leading eigenvectors of the covariance of the views by products with it, without writing it out."""
    shared = np.maximum(_shared_samples(problem), 1.0)
    size = _columns(problem)[-1].stop
    return _leading_of(lambda vector: _covariance_times(problem, shared, vector), size, n_directions)


def _covariance_times(problem: Problem, shared: Array, vector: Array) -> Array:
    """Multiply the covariance of the views with a vector; ``shared`` says how many samples every two views share."""
    ends = [own.stop for own in _columns(problem)]
    parts = np.split(np.ravel(vector), ends[:-1])
    # What every sample says of the vector through each of its views, spread to the views it shares them with
    scores = np.zeros((problem.n_samples, len(problem.terms)))
    for k, (term, part) in enumerate(zip(problem.terms, parts, strict=True)):
        scores[problem.rows[term.part], k] = term.project(part[None, :])[:, 0] / problem.degrees[term.part]
    products = []
    for k, term in enumerate(problem.terms):
        weighted = (scores[problem.rows[term.part]] / shared[k]).sum(axis=1) / problem.degrees[term.part]
        products.append(term.correlate(weighted[:, None])[:, 0])
    return np.concatenate(products)


def _leading_of(covariance_times: Callable[[Array], Array], size: int, n_directions: int) -> Array:
    """Return the leading eigenvectors of a matrix that can be multiplied, the largest first."""
    if size <= max(2 * n_directions + 1, 50):  # too small for the iterative solver, small enough for the whole matrix
        return _leading(np.column_stack([covariance_times(column) for column in np.eye(size)]), n_directions)
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
