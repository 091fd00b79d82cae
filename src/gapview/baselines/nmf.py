"""Non-negative factorisations X ≈ PU, P ≥ 0, U ≥ 0: data, multiplicative steps, starts, and the loop with consensus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..clusters import cluster_rows
from ..errors import InputError, InputTypeError, SolutionError, some
from ..graph.knn import knn_graph, resolve_n_neighbors
from ..scaling import row_lengths, scale_views, unit_rows
from ..utils.messages import warn_user
from ..utils.types import Array, Matrix
from ..views import Views, is_constant
from .base import FactorBaseline, has_converged, read_factor

FLOOR = 1e-12  # smallest denominator of a quotient, as a share of the largest
COLLAPSED = 1e-12  # share of ‖X‖² that PU has to reach
_VANISHED = 1e-6  # codes shorter than this share of the longest count as 0; in good fits all are above 0.01
_FEW = 0.1  # share of samples with codes of 0 up to which there is no warning


@dataclass(kw_only=True, eq=False, repr=False)
class NonnegativeBaseline(FactorBaseline):
    """Base class of the non-negative factorisations."""

    nonnegative: str | None = "raise"
    max_iter: int = 30

    def _observed(self, views: Views) -> list[Observed]:
        """Return the scaled views without negative values (with them if ``nonnegative`` is None)."""
        scaled, _ = scale_views(views, self.scale)
        dtype = np.result_type(*(matrix.dtype for matrix in scaled))
        unit = self.scale is not None and self.scale.endswith("unit")
        parts = []
        for k, name in enumerate(views.names):
            matrix = scaled[k].astype(dtype, copy=False)
            if self.nonnegative is not None:
                matrix = _nonnegative(matrix, name, self.nonnegative, unit)
            parts.append(Observed(matrix, views.rows(k)))
            _check_magnitude(name, parts[-1])
        return parts

    def _start(
        self, views: Views, rows: Sequence[Array], dtype: Any, random_state: np.random.RandomState
    ) -> tuple[list[Array], list[Array]]:
        """Return codes of the samples ``rows`` of each set of codes, and bases: random ones, or those in ``init``.

        Given codes are one array for all samples, or one array for each set of codes: one set that all views share, or
        one for each view.
        """
        n_samples, n_components = views.n_samples, self._code_length
        if isinstance(self.init, str) and self.init in self._random_starts:
            shared, bases = random_factors(n_samples, views.n_features, n_components, random_state, dtype)
            return [shared[row] for row in rows], bases
        given_codes, given_bases = self._given_pair("(codes, bases) of starting factors")
        if not isinstance(given_codes, Mapping | list | tuple):
            given_codes = [given_codes] * len(rows)
        of_views = [f"view '{name}'" for name in views.names]
        of_codes = ["all views"] if len(rows) == 1 else of_views
        codes, bases = [], []
        for where, row, values in zip(of_codes, rows, _in_order(given_codes, views, len(rows), "codes"), strict=True):
            shapes = (len(row), n_components), (n_samples, n_components)
            array = _nonnegative_factor(values, f"codes of {where}", dtype, *shapes)
            codes.append(array if len(array) == len(row) else array[row])
        ordered = _in_order(given_bases, views, views.n_views, "bases")
        for where, m, values in zip(of_views, views.n_features, ordered, strict=True):
            bases.append(_nonnegative_factor(values, f"basis of {where}", dtype, (n_components, m)))
        return codes, bases

    def _store(
        self,
        embedding: Array,
        bases: list[Array],
        objective: list[float],
        random_state: np.random.RandomState,
        *,
        normalize: bool = True,
    ) -> None:
        """Set the fitted attributes; the labels come from k-means on the embedding."""
        self.embedding_, self.bases_ = embedding, bases
        self.objective_, self.n_iter_ = np.array(objective), len(objective)
        self.labels_ = cluster_rows(embedding, self.n_clusters, random_state, normalize=normalize).labels


@dataclass(kw_only=True, eq=False, repr=False)
class ConsensusBaseline(NonnegativeBaseline):
    """Base class of the non-negative factorisations with neighbour graphs and a consensus of blocks of codes."""

    consensus_weight: float = 0.1
    graph_weight: float = 0.1
    n_neighbors: int | str = 5

    def _linked(self, views: Views) -> tuple[list[Observed], list[sparse.csr_array], Array]:
        """Return the views, their neighbour graphs, and the weight of every sample's ties, 0 if it has one view."""
        warn_if_unlinked(views)
        parts = self._observed(views)
        counts = resolve_n_neighbors(self.n_neighbors, views, self.n_clusters)
        graphs = [knn_graph(part.matrix, count) for part, count in zip(parts, counts, strict=True)]
        return parts, graphs, self.consensus_weight * (views.mask.sum(axis=1) >= 2)

    def _alternate(
        self, blocks: Sequence[CodeBlock], codes: list[Array], flat: list[Array], n_samples: int, lag: int = 1
    ) -> tuple[Array, list[Array], list[float]]:
        """Alternate between the blocks, one for all views or one for each, and their consensus.

        Codes and bases are updated in place.

        Returns
        -------
        consensus, bases, objective
            The mean codes of every sample, and the objective after every round; it never rises.
        """
        bases = [flat] if len(blocks) == 1 else [[basis] for basis in flat]
        rows = [block.rows for block in blocks]
        consensus = mean_codes(codes, rows, n_samples)
        values = [np.inf] * len(blocks)  # objective of each block without its ties
        careful = [False] * len(blocks)
        objective: list[float] = []
        for _ in range(self.max_iter):
            for b, block in enumerate(blocks):
                target = consensus[block.rows]
                before = values[b] + _tie_value(block, codes[b], target)
                start = codes[b].copy(), [basis.copy() for basis in bases[b]]
                values[b] = block.advance(codes[b], bases[b], target, careful[b])
                if not careful[b] and values[b] + _tie_value(block, codes[b], target) > before:
                    careful[b] = True
                    codes[b], bases[b] = start
                    values[b] = block.advance(codes[b], bases[b], target, True)
            consensus = mean_codes(codes, rows, n_samples)
            ties = (_tie_value(block, code, consensus[block.rows]) for block, code in zip(blocks, codes, strict=True))
            objective.append(sum(values) + sum(ties))
            if has_converged(objective, self.tol, lag):
                break
        return consensus, [basis for own in bases for basis in own], objective


# -- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observed:
    """The rows of one view that a method factorises; row r belongs to the sample ``rows[r]``."""

    matrix: Matrix
    rows: Array

    @cached_property
    def energy(self) -> float:
        """‖X‖²."""
        values = self.matrix.data if sparse.issparse(self.matrix) else self.matrix
        return inner(values, values)

    def project(self, basis: Array) -> Array:
        """Return XUᵀ."""
        return np.asarray(self.matrix @ basis.T)

    def correlate(self, codes: Array) -> Array:
        """Return PᵀX."""
        if sparse.issparse(self.matrix):
            return np.asarray(self.matrix.T @ codes).T
        return np.asarray(codes.T @ self.matrix)

    def squared_error(self, projected: Array, codes: Array, basis: Array) -> float:
        """Return ‖X − PU‖² from XUᵀ (``projected``), without forming PU."""
        gram = codes.T @ codes
        return max(self.energy - 2 * inner(projected, codes) + inner(gram, basis @ basis.T), 0.0)


@dataclass(frozen=True)
class PatternGroup:
    """Samples that have the same views."""

    samples: Array
    places: dict[int, Array]  # for each of their views the rows of these samples


def pattern_groups(parts: Sequence[Observed], n_samples: int) -> tuple[list[PatternGroup], list[PatternGroup]]:
    """Return the groups of samples with the same views: incomplete samples, and complete ones."""
    where = np.full((n_samples, len(parts)), -1)
    for v, part in enumerate(parts):
        where[part.rows, v] = np.arange(len(part.rows))
    patterns, member = np.unique(where >= 0, axis=0, return_inverse=True)
    gapped: list[PatternGroup] = []
    whole: list[PatternGroup] = []
    for g, pattern in enumerate(patterns):
        samples = np.flatnonzero(member.ravel() == g)
        group = PatternGroup(samples, {int(v): where[samples, v] for v in np.flatnonzero(pattern)})
        (whole if pattern.all() else gapped).append(group)
    return gapped, whole


def inner(left: Array, right: Array) -> float:
    """Return the sum of the products of all entries, computed in float64."""
    return float(np.einsum("i,i->", np.ravel(left), np.ravel(right), dtype=np.float64))


def _check_magnitude(name: str, part: Observed) -> None:
    """Raise an error if squares of the values overflow or underflow."""
    limits = np.finfo(part.matrix.dtype)
    # Steps add products, and divide by at least the square root of the smallest number
    low, high = 1e3 * float(np.sqrt(limits.tiny)), 1e-6 * float(limits.max)
    if not low < part.energy < high:
        raise InputError(
            f"The values of view '{name}' are too {'small' if part.energy <= low else 'large'} for products in "
            f"{part.matrix.dtype}: the sum of their squares must be between {low:.1g} and {high:.1g}; got "
            f"{part.energy:.3g}. Divide the view by its largest value first, or use scale='unit'."
        )


def _nonnegative(matrix: Matrix, name: str, nonnegative: str, unit: bool) -> Matrix:
    smallest = float(matrix.min())
    if smallest >= 0:
        return matrix
    if nonnegative == "raise":
        raise InputError(
            f"View '{name}' has negative values after scaling, the lowest is {smallest:.3g}; this method needs values "
            "of at least 0. Use nonnegative='shift' or 'clip', or a scale that keeps signs (not 'standard')."
        )
    if nonnegative == "clip":
        fixed = matrix.maximum(0) if sparse.issparse(matrix) else np.maximum(matrix, 0)
    elif sparse.issparse(matrix):
        raise InputError(
            f"View '{name}' is sparse and has negative values; shifting would make it dense. "
            "Use nonnegative='clip', or pass the view as a dense array (.toarray()) if it fits into memory."
        )
    else:
        fixed = matrix - matrix.min()
        fixed = unit_rows(fixed) if unit else fixed
    if is_constant(fixed):
        raise InputError(
            f"View '{name}' is constant once nonnegative={nonnegative!r} has removed its negative values: all its "
            "rows are the same. Use the other setting of nonnegative, or leave this view out."
        )
    return fixed


def warn_if_unlinked(views: Views) -> None:
    """Warn if the views form several connected components, linked by shared samples."""
    shared = views.mask.astype(np.intp)
    n_islands, island = connected_components(shared.T @ shared)
    if n_islands > 1:
        parts = [[n for n, i in zip(views.names, island, strict=True) if i == part] for part in range(n_islands)]
        warn_user(
            f"The views fall into {n_islands} parts that share no sample: {parts}. The factors of one part are not "
            "aligned with those of another, so groups across parts are arbitrary. Add samples with views of both."
        )


# -- steps -----------------------------------------------------------------------------------------------------------


def multiply_quotient(factor: Array, numerator: Array, denominator: Array, *, root: bool = False) -> None:
    """Multiply a factor by numerator ⊘ denominator or its square root, in place.

    Numerator and denominator are overwritten.
    """
    np.maximum(denominator, floor_of(denominator), out=denominator)
    np.divide(numerator, denominator, out=numerator)
    if root:
        np.sqrt(numerator, out=numerator)
    factor *= numerator


def floor_of(values: Array) -> float:
    """Return the smallest value to divide by: a share of the largest value, but large enough to avoid overflow."""
    return max(FLOOR * float(values.max(initial=0)), float(np.sqrt(np.finfo(values.dtype).tiny)))


def basis_step(data: Observed, codes: Array, basis: Array) -> None:
    """Update U ← U ∘ (PᵀX) ⊘ (PᵀPU), in place."""
    multiply_quotient(basis, data.correlate(codes), (codes.T @ codes) @ basis)


def move_scale(bases: Sequence[Array], codes: Array, sizes: Array) -> None:
    """Divide the rows of the bases by their sizes and multiply the codes by them, in place; PU does not change.

    A component of size 0 stays as it is.
    """
    sizes = np.where(sizes > 0, sizes, 1).astype(codes.dtype, copy=False)
    for basis in bases:
        basis /= sizes[:, None]
    codes *= sizes


# -- results ---------------------------------------------------------------------------------------------------------


def check_factors(
    parts: Sequence[Observed], codes: Sequence[Array], bases: Sequence[Array], embedding: Array, views: Views
) -> None:
    """Raise an error if the product PU of a view is nearly 0; warn if the codes of many samples are.

    The product PU is checked, not the factors: one factor may be small while the other is large.
    """
    kept = [inner(p.T @ p, u @ u.T) > COLLAPSED * part.energy for part, p, u in zip(parts, codes, bases, strict=True)]
    if not any(kept):
        raise SolutionError(
            "All codes have shrunk to zero: the penalty outweighs the data, or the data are mostly negative. Lower "
            "sparsity_weight (how much it takes depends on the number of features and on the scale of the data), or "
            "use nonnegative='shift'."
        )
    if not all(kept):
        lost = [name for name, there in zip(views.names, kept, strict=True) if not there]
        raise SolutionError(
            f"The factors of the view(s) {some(lost)} have shrunk to zero: these views have no effect on the result. "
            "Lower sparsity_weight, use nonnegative='shift' if their values are mostly negative, or leave them out."
        )
    lengths = row_lengths(embedding)
    vanished = lengths < _VANISHED * lengths.max()
    if vanished.any():
        has_data = np.zeros(views.n_samples, dtype=bool)  # for rows of zeros, codes of zeros are right
        for part in parts:
            has_data[part.rows] |= row_lengths(part.matrix) > 0
        n_vanished = int((vanished & has_data).sum())
        if n_vanished > _FEW * views.n_samples:
            warn_user(
                f"The codes of {n_vanished} of {views.n_samples} samples have nearly shrunk to zero: the penalty "
                "outweighs their data. Lower sparsity_weight."
            )


# -- starts ----------------------------------------------------------------------------------------------------------


def random_factors(
    n_rows: int, n_features: Sequence[int], n_components: int, random_state: np.random.RandomState, dtype: Any
) -> tuple[Array, list[Array]]:
    """Return codes and one basis per view, drawn uniformly from [0, 1)."""
    codes = random_state.uniform(size=(n_rows, n_components)).astype(dtype)
    return codes, [random_state.uniform(size=(n_components, m)).astype(dtype) for m in n_features]


def _in_order(given: Any, views: Views, count: int, what: str) -> Sequence[Any]:
    if isinstance(given, Mapping) and count == views.n_views and set(given) == set(views.names):
        return [given[name] for name in views.names]
    if isinstance(given, Sequence) and len(given) == count:
        return given
    each = "" if count == 1 else f" for each of the {count} views, in a list or a dict with their names"
    raise InputTypeError(
        f"The {what} in init must be one array{each}; got a {type(given).__name__} with other contents."
    )


def _nonnegative_factor(values: Any, what: str, dtype: Any, *shapes: tuple[int, int]) -> Array:
    """Return a checked copy of a given factor, since the steps write into it."""
    array = read_factor(values, what, dtype, *shapes)
    if (array < 0).any() or not array.any():
        raise InputError(f"The starting {what} must be at least 0, and not all of them 0.")
    return array.copy()


# -- consensus -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CodeBlock:
    """Samples with codes, a graph of them, and ties that draw their codes to the consensus of all blocks."""

    rows: Array  # the samples
    graph: sparse.csr_array  # W, times the weight of the graph penalty
    ties: Array  # the weight that ties the code of each sample to the consensus

    @cached_property
    def degrees(self) -> Array:
        """Row sums of the graph."""
        return np.asarray(self.graph.sum(axis=1)).ravel()

    def advance(self, codes: Array, bases: list[Array], target: Array, careful: bool) -> float:
        """Update the factors in place towards ``target``; return the objective of the block without its ties.

        The published step (``careful=False``) may raise the objective; the careful step never does.
        """
        raise NotImplementedError


def mean_codes(
    codes: Sequence[Array], rows: Sequence[Array], n_samples: int, weights: Sequence[Array] | None = None
) -> Array:
    """Return for every sample the mean of its codes over the sets it is in, weighted if weights are given."""
    dtype = codes[0].dtype
    total, sums = np.zeros((n_samples, codes[0].shape[1]), dtype=dtype), np.zeros(n_samples, dtype=dtype)
    weights = [np.ones(len(row), dtype=dtype) for row in rows] if weights is None else weights
    for code, row, weight in zip(codes, rows, weights, strict=True):
        total[row] += weight[:, None] * code
        sums[row] += weight
    return np.asarray(total / sums[:, None])


def _tie_value(block: CodeBlock, codes: Array, target: Array) -> float:
    apart = codes - target
    return inner(block.ties[:, None] * apart, apart)


def roughness(graph: sparse.csr_array, degrees: Array, codes: Array) -> float:
    """Return tr(PᵀLP), L = diag(degrees) − W, which is large if the codes of neighbours differ."""
    return max(inner(degrees[:, None] * codes - graph @ codes, codes), 0.0)
