"""Starting codes: random as in the paper, given by the user, or computed from the data.

A start from the data is the same for every call, and few iterations from convergence. The smoothed features of all
views make one covariance matrix, each block of it estimated from the samples that have both views. Its leading
eigenvectors, cut into views and made orthonormal, are bases whose components already match between the views, which
the iterations from a random start have to achieve first.

The bases are then improved without further passes over the data. Without the L1 penalty, the best codes for given bases
follow from a formula, and the objective becomes a quadratic form in the bases. Its matrix is collected in one pass; the
cost of iterations on it does not grow with the samples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, Protocol

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..compute.arrays import host, is_tensor, like, row_blocks
from ..compute.engine import engine_for
from ..errors import InputError
from ..utils.types import Array
from ..views import SampleCounts
from ..views.checks import one_per_view, real_matrix
from .loop import Weights
from .problem import Problem, demand_finite
from .steps import basis_step
from .sweep import Layout

MOST_FEATURES = 1024  # in all views together, up to which matrices of features by features are stored
ROWS_AT_A_TIME = 2000  # at most, of which several copies are made
_N_STRIPES = 8
_MOST_ITERATIONS = 100
_TOLERANCE, _SHARE = 1e-7, 0.01  # bases are improved up to this change, or share of the tolerance of the iterations
_NEARLY_SINGULAR = 1e-8
_N_MULTIPLICATIONS = 30
# When its Krylov space breaks down, the solver restarts from random numbers; recent versions of SciPy take a seed
_SEEDED: dict[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}


def random_start(problem: Problem, n_components: int, random_state: np.random.RandomState) -> list[Array]:
    """Return codes drawn uniformly from [0, 1), as the authors do."""
    xp, degrees = array_namespace(problem.degrees), problem.degrees
    sizes = [(len(problem.rows[term.part]), n_components) for term in problem.terms]
    return [xp.astype(like(random_state.uniform(size=size), degrees), degrees.dtype) for size in sizes]


def check_init(
    init: Any, views: SampleCounts, n_components: int, read: Callable[[Any], Any] = lambda codes: codes
) -> list[Any]:
    """Check the user's starting codes, and return them in the order of the views.

    Every view has codes for the samples that have it, or for all samples. ``read`` converts the codes of a view.
    """
    expected = (
        f"init must be 'random', 'data', or one array of starting codes for each of the {views.n_views} views, in a "
        "list or in a dict with the names of the views"
    )
    given, items = [], zip(views.names, one_per_view(init, views, expected), views.n_present, strict=True)
    for name, codes, n_present in items:
        array = read(codes if hasattr(codes, "shape") else real_matrix(codes, _starting_codes(name), np.float64))
        if tuple(array.shape) not in ((n_present, n_components), (views.n_samples, n_components)):
            raise InputError(
                f"{_starting_codes(name)} must be {n_present} × {n_components} (the samples that have the view) or "
                f"{views.n_samples} × {n_components} (all samples); got shape {tuple(array.shape)}."
            )
        given.append(array)
    return given


def given_start(problem: Problem, init: Sequence[Any], names: Sequence[str], mask: Array) -> list[Array]:
    """Return the user's starting codes of the samples that have codes in the problem; see :func:`check_init`.

    ``mask`` tells which samples have each view.
    """
    dtype, starts = host(problem.degrees[:0]).dtype, []
    for name, codes, term, present in zip(names, init, problem.terms, mask.T, strict=True):
        array = real_matrix(codes, _starting_codes(name), dtype)
        array = array.toarray() if sparse.issparse(array) else array
        if len(array) < len(mask):  # those of the samples that have the view
            whole = np.zeros((len(mask), array.shape[1]), dtype=array.dtype)
            whole[present], array = array, whole
        chosen = np.asarray(array[host(problem.rows[term.part])])
        if not np.isfinite(chosen).all():
            raise InputError(f"{_starting_codes(name)} must be finite as {chosen.dtype}; they hold NaN or infinity.")
        starts.append(like(chosen, problem.degrees))
    return starts


def _starting_codes(name: str) -> str:
    return f"The starting codes of view '{name}'"


# -- from the data ---------------------------------------------------------------------------------------------


class ProblemBlocks(Protocol):
    """A problem in one or more blocks of samples: a :class:`Problem` in arrays, or problems on a cluster."""

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of features of every view."""

    @property
    def is_dense(self) -> bool:
        """Whether H is stored for every view."""

    def total(self, compute: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum over the blocks of ``compute(problem, *arguments)``, an array or a tuple of arrays."""

    def of_blocks(self, compute: Callable[..., list[Array]], *arguments: Any) -> Any:
        """Return ``compute(problem, *arguments)`` of every block, where the block is."""

    def without_data(self) -> ProblemBlocks:
        """Return the problem without the smoothed features, to free their memory where that is possible."""


def data_start(problem: ProblemBlocks, n_components: int, weights: Weights, tol: float = 1e-5) -> Any:
    """Compute starting codes from the directions in which the views vary together.

    Parameters
    ----------
    problem : ProblemBlocks
        The data.
    n_components : int
        Number of components K.
    weights : Weights
        The penalties; the second is ignored.
    tol : float, default=1e-5
        Tolerance of the iterations that follow.

    Returns
    -------
    list of arrays of shape (n_codes, n_components)
        One for each view. For a problem on a cluster, handles of such lists.
    """
    columns = feature_columns(problem.n_features)
    shared = host(problem.total(shared_samples))
    n_directions = min(n_components, columns[-1].stop)
    if columns[-1].stop <= MOST_FEATURES and problem.is_dense:
        covariance, quadratic = problem.total(moments, weights.consensus)
        bases = _bases_from_moments(covariance, quadratic, shared, columns, n_directions, max(_TOLERANCE, _SHARE * tol))
    else:

        def times(vector: Array) -> Array:
            return np.asarray(problem.total(covariance_times, shared, np.ravel(vector)))

        directions = _leading_by_products(times, columns[-1].stop, n_directions)
        bases = [basis_step(directions[own]) for own in columns]
    return problem.of_blocks(best_codes, bases, weights, n_components)


def _bases_from_moments(
    covariance: Array, quadratic: Array, shared: Array, columns: list[slice], n_directions: int, tolerance: float
) -> list[Array]:
    """Compute bases from sums over the samples.

    Parameters
    ----------
    covariance : array of shape (n_features, n_features)
        Products of the mean features of neighbours, summed over the samples; divided in place.
    quadratic : array of shape (n_features, n_features)
        Matrix of the quadratic form in the bases.
    shared : array of shape (n_views, n_views)
        Numbers of samples in the sums of ``covariance``, see :func:`shared_samples`.
    columns : list of slices
        The features of every view.
    n_directions : int
        Number of rows of every basis.
    tolerance : float
        Relative change of the quadratic form at which it is maximal.
    """
    for k, rows in enumerate(columns):
        for j, others in enumerate(columns):
            covariance[rows, others] /= max(float(shared[k, j]), 1.0)
    directions = _leading(covariance, n_directions)
    return _improved([basis_step(directions[own]) for own in columns], quadratic, columns, tolerance)


def best_codes(problem: Problem, bases: list[Array], weights: Weights, n_components: int) -> list[Array]:
    """Return the codes that minimise the objective for given bases, without the L1 penalty.

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
        rows, own_mass = problem.rows[term.part], mass[term.part]
        for block in row_blocks(seen):
            total[rows[block]] += seen[block] / own_mass[block, None]
        share[rows] += problem.degrees[term.part] / own_mass
    total /= xp.where(share > 0, share, xp.ones_like(share))[:, None]  # the consensus
    codes = []
    for term, code in zip(problem.terms, projected, strict=True):
        rows, own_tie = problem.rows[term.part], tie[term.part]
        for block in row_blocks(code):
            code[block] += total[rows[block]] * own_tie[block, None]
        code /= mass[term.part, None]
        n_missing = n_components - code.shape[1]
        missing = xp.zeros((code.shape[0], n_missing), dtype=dtype, device=device)
        codes.append(xp.concat([code, missing], axis=1) if n_missing else code)
    return codes


def moments(problem: Problem, consensus_weight: float) -> tuple[Array, Array]:
    """Return sums over the samples for the covariance of the views, and the matrix of the quadratic form in the bases.

    With the best codes for bases U the objective is a constant minus Σ ‖HUᵀ‖²/m + λ1 ‖Σ HUᵀ/m‖² / Σ d/m, where the
    second term is for tied samples and its inner sums run over their views.
    """
    layout = Layout(problem, _N_STRIPES, None if is_tensor(problem.degrees) else ROWS_AT_A_TIME)
    n_operations = 6.0 * problem.n_samples * sum(term.n_features for term in problem.terms) ** 2
    total = _SumInOrder()
    with engine_for(problem.degrees).working(n_operations) as each:
        each(
            lambda place: total.add(place, _moments_of_stripe(layout, consensus_weight, layout.stripes[place])),
            range(len(layout.stripes)),
        )
    covariance, quadratic = map(host, total.parts)
    return covariance, quadratic


class _SumInOrder:
    """Sums of arrays that threads deliver in any order, added in the order of their numbers.

    So the rounding does not depend on the threads, and no more arrays wait than there are threads.
    """

    def __init__(self) -> None:
        self.parts: list[Array] = []
        self._waiting: dict[int, tuple[Array, ...]] = {}
        self._next, self._lock = 0, Lock()

    def add(self, place: int, arrays: tuple[Array, ...]) -> None:
        """Add the arrays with number ``place``, or store them until all before them are added."""
        with self._lock:
            self._waiting[place] = arrays
            while self._next in self._waiting:
                arrays = self._waiting.pop(self._next)
                self._next += 1
                for total, array in zip(self.parts, arrays, strict=False):
                    total += array
                self.parts = self.parts or list(arrays)


@np.errstate(over="ignore", invalid="ignore")  # demand_finite reports overflow in its results
def _moments_of_stripe(layout: Layout, consensus_weight: float, stripe: range) -> tuple[Array, Array]:
    """Return what the blocks of a stripe add to the matrices of :func:`_bases_from_moments`."""
    problem, columns = layout.problem, feature_columns(layout.problem.n_features)
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


def feature_columns(n_features: Sequence[int]) -> list[slice]:
    """Return the columns of every view in a matrix with the features of all views."""
    return [slice(*pair) for pair in pairwise(np.cumsum([0, *n_features]).tolist())]


def shared_samples(problem: Problem) -> Array:
    """Return the number of samples that have codes in both of two views, as a matrix of views by views."""
    xp = array_namespace(problem.degrees)
    present = xp.zeros((problem.n_samples, len(problem.terms)), dtype=xp.float64, device=problem.degrees.device)
    for k, term in enumerate(problem.terms):
        present[problem.rows[term.part], k] = 1.0
    return present.T @ present  # type: ignore[no-any-return]


def _leading(matrix: Array, n_directions: int) -> Array:
    """Return the eigenvectors of the largest eigenvalues, the largest first."""
    demand_finite(np.isfinite(matrix).all(), matrix.dtype)
    return np.asarray(np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1][:, :n_directions])


@np.errstate(over="ignore", invalid="ignore")  # demand_finite reports overflow in its results
def _improved(bases: list[Array], quadratic: Array, columns: list[slice], tolerance: float) -> list[Array]:
    """Return bases that increase the quadratic form, iterated until its relative change is small.

    The form is convex, so that its tangent lies below it: the bases that maximise the tangent, Eq. (9), do not decrease
    the form.
    """
    demand_finite(np.isfinite(quadratic).all(), quadratic.dtype)
    value = -np.inf
    for _ in range(_MOST_ITERATIONS):
        stacked = np.concatenate(bases, axis=1)  # K × all features
        slopes = stacked @ quadratic
        before, value = value, float(np.vdot(slopes, stacked))
        if not value - before > tolerance * abs(value):  # also if it is not finite
            break
        bases = [nearest_orthonormal(slopes[:, own]) for own in columns]
    demand_finite(np.isfinite(value), quadratic.dtype)
    return bases


def nearest_orthonormal(slopes: Array) -> Array:
    """Return the basis of Eq. (9): from the small matrix SSᵀ where it is far from singular, else from the SVD of S."""
    slopes = np.ldexp(slopes, -np.frexp(np.abs(slopes).max())[1])  # squares of huge slopes stay finite
    values, vectors = np.linalg.eigh(slopes @ slopes.T)
    if values[0] <= _NEARLY_SINGULAR * values[-1]:
        return basis_step(slopes.T)
    return np.asarray((vectors / np.sqrt(values)) @ (vectors.T @ slopes))


def covariance_times(problem: Problem, shared: Array, vector: Array) -> Array:
    """Return the covariance of the views times a vector; ``shared`` are the numbers of samples that views share."""
    parts = [vector[own] for own in feature_columns(problem.n_features)]
    scores = np.zeros((problem.n_samples, len(problem.terms)))
    for k, (term, part) in enumerate(zip(problem.terms, parts, strict=True)):
        scores[problem.rows[term.part], k] = term.project(part[None, :])[:, 0] / problem.degrees[term.part]
    products = []
    for k, term in enumerate(problem.terms):
        weighted = (scores[problem.rows[term.part]] / np.maximum(shared[k], 1.0)).sum(axis=1) / problem.degrees[
            term.part
        ]
        products.append(term.correlate(weighted[:, None])[:, 0])
    return np.concatenate(products)


def _leading_by_products(times: Callable[[Array], Array], size: int, n_directions: int) -> Array:
    """Return the leading eigenvectors of a matrix, given as a product with vectors, the largest first."""
    if size <= max(2 * n_directions + 1, 50):  # too small for the iterative solver, small enough for the whole matrix
        return _leading(np.column_stack([times(column) for column in np.eye(size)]), n_directions)
    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    try:
        values, vectors = eigsh(operator, k=n_directions, which="LA", v0=np.ones(size), tol=1e-4, **_SEEDED)
    except ArpackError:  # few distinct directions: its Krylov space breaks down
        return _by_subspace_iteration(times, size, n_directions)
    return np.asarray(vectors[:, np.argsort(-values)])


def _by_subspace_iteration(times: Callable[[Array], Array], size: int, n_directions: int) -> Array:
    """Return the leading eigenvectors by subspace iteration, which works for any spectrum."""
    block = np.linalg.qr(np.random.RandomState(0).normal(size=(size, n_directions)))[0]
    for _ in range(_N_MULTIPLICATIONS):
        block = np.linalg.qr(np.column_stack([times(column) for column in block.T]))[0]
    values, vectors = np.linalg.eigh(block.T @ np.column_stack([times(column) for column in block.T]))
    return np.asarray(block @ vectors[:, np.argsort(-values)])
