"""What the non-negative factorisations X ≈ PU, P ≥ 0, U ≥ 0 share: their data, multiplicative steps and starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..errors import GapviewWarning, InputError, InputTypeError, SolutionError, some
from ..scaling import row_lengths, scale_views, unit_rows
from ..utils.types import Array, Matrix
from ..utils.warnings import warn_user
from ..views import Views, is_constant

NONNEGATIVE = ("raise", "shift", "clip")
FLOOR = 1e-12  # smallest denominator of a quotient, as a share of the largest
_COLLAPSED = 1e-12  # share of ‖X‖² that PU has to reach
_VANISHED = 1e-6  # share of the longest code that others have to reach; in sound fits they reach a hundredth and more
_FEW = 0.1  # share of samples without a code that is nothing to speak of


# -- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observed:
    """The rows of one view that a method factorises; row r speaks of the sample ``rows[r]``."""

    matrix: Matrix
    rows: Array
    energy: float  # ‖X‖²

    def project(self, basis: Array) -> Array:
        """Return XUᵀ."""
        return np.asarray(self.matrix @ basis.T)

    def correlate(self, codes: Array) -> Array:
        """Return PᵀX."""
        if sparse.issparse(self.matrix):
            return np.asarray(self.matrix.T @ codes).T
        return np.asarray(codes.T @ self.matrix)

    def squared_error(self, projected: Array, codes: Array, basis: Array) -> float:
        """Return ‖X − PU‖² from XUᵀ, which the steps have at hand, without forming PU."""
        gram = codes.T @ codes
        return max(self.energy - 2 * inner(projected, codes) + inner(gram, basis @ basis.T), 0.0)


def observe(matrix: Matrix, rows: Array) -> Observed:
    """Pair the present rows of a view with the samples they belong to."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    return Observed(matrix, rows, inner(values, values))


def inner(left: Array, right: Array) -> float:
    """Sum the products of all entries in double precision, whatever the type of the arrays."""
    return float(np.einsum("i,i->", np.ravel(left), np.ravel(right), dtype=np.float64))


def scaled_nonnegative(views: Views, scale: str | None, nonnegative: str | None) -> list[Observed]:
    """Scale the views and see to it that no value is negative (unless ``nonnegative`` is None)."""
    scaled, _ = scale_views(views, scale)
    dtype = np.result_type(*(matrix.dtype for matrix in scaled))
    scaled = [matrix.astype(dtype, copy=False) for matrix in scaled]
    if nonnegative is not None:
        unit = scale is not None and scale.endswith("unit")
        scaled = [_nonnegative(m, name, nonnegative, unit) for m, name in zip(scaled, views.names, strict=True)]
    parts = [observe(matrix, views.rows(k)) for k, matrix in enumerate(scaled)]
    for name, part in zip(views.names, parts, strict=True):
        _demand_products(name, part)
    return parts


def _demand_products(name: str, part: Observed) -> None:
    """Refuse values of which the steps cannot make products: their squares are not finite, or vanish."""
    limits = np.finfo(part.matrix.dtype)
    # Steps add up products, and do not divide by less than the root of the smallest number
    low, high = 1e3 * float(np.sqrt(limits.tiny)), 1e-6 * float(limits.max)
    if not low < part.energy < high:
        raise InputError(
            f"View '{name}' holds values that are too {'small' if part.energy <= low else 'large'} for products of "
            f"them to be numbers of {part.matrix.dtype}: their squares add up to {part.energy:.3g}, and should to "
            f"something between {low:.1g} and {high:.1g}. Divide the view by its largest value first, or use "
            "scale='unit'."
        )


def _nonnegative(matrix: Matrix, name: str, nonnegative: str, unit: bool) -> Matrix:
    smallest = float(matrix.min())
    if smallest >= 0:
        return matrix
    if nonnegative == "raise":
        raise InputError(
            f"View '{name}' has negative values once scaled, the lowest is {smallest:.3g}; this method factorises "
            "values of at least 0. Use nonnegative='shift' or 'clip', or a scale that keeps signs (not 'standard')."
        )
    if nonnegative == "clip":
        fixed = matrix.maximum(0) if sparse.issparse(matrix) else np.maximum(matrix, 0)
    elif sparse.issparse(matrix):
        raise InputError(
            f"View '{name}' is sparse and has negative values; shifting would fill it with numbers. "
            "Use nonnegative='clip', or pass the view as a dense array (.toarray()) if it fits into memory."
        )
    else:
        fixed = matrix - matrix.min()
        fixed = unit_rows(fixed) if unit else fixed
    if is_constant(fixed):
        raise InputError(
            f"View '{name}' is constant once nonnegative={nonnegative!r} has dealt with its negative values: all its "
            "rows are the same. Use the other setting of nonnegative, or leave this view out."
        )
    return fixed


def warn_if_unlinked(views: Views) -> None:
    """Warn if some views share no sample with the others, not even through a third: nothing aligns their factors."""
    shared = views.mask.astype(np.intp)
    n_islands, island = connected_components(shared.T @ shared)
    if n_islands > 1:
        parts = [[n for n, i in zip(views.names, island, strict=True) if i == part] for part in range(n_islands)]
        warn_user(
            f"The views fall into {n_islands} parts that share no sample: {parts}. Nothing ties the factors of one "
            "part to those of another, so groups across them mean little. Add samples that have views of both.",
            GapviewWarning,
        )


# -- steps -----------------------------------------------------------------------------------------------------------


def multiply_quotient(factor: Array, numerator: Array, denominator: Array, *, root: bool = False) -> None:
    """Multiply a factor by numerator ⊘ denominator or its square root, in place.

    Numerator and denominator are used up as working space.
    """
    np.maximum(denominator, floor_of(denominator), out=denominator)
    np.divide(numerator, denominator, out=numerator)
    if root:
        np.sqrt(numerator, out=numerator)
    factor *= numerator


def floor_of(values: Array) -> float:
    """Return the smallest value to divide by: a share of the largest, so that the scale of the data does not matter.

    Where all values are next to nothing, it is as small as can be without quotients that overflow.
    """
    return max(FLOOR * float(values.max(initial=0)), float(np.sqrt(np.finfo(values.dtype).tiny)))


def basis_step(data: Observed, codes: Array, basis: Array) -> None:
    """U ← U ∘ (PᵀX) ⊘ (PᵀPU), in place."""
    multiply_quotient(basis, data.correlate(codes), (codes.T @ codes) @ basis)


def take_scale(bases: Sequence[Array], codes: Array, sizes: Array) -> None:
    """Divide the rows of bases by their sizes and give the sizes to the codes, in place; PU stays as it is.

    A component of size 0 is left alone.
    """
    sizes = np.where(sizes > 0, sizes, 1).astype(codes.dtype, copy=False)
    for basis in bases:
        basis /= sizes[:, None]
    codes *= sizes


def settled(objective: Sequence[float], tol: float, lag: int = 1) -> bool:
    """Tell whether the objective has changed by less than the share ``tol`` over the last ``lag`` values."""
    if len(objective) <= lag:
        return False
    before, now = objective[-1 - lag], objective[-1]
    return abs(before - now) < tol * abs(before) or now == 0


# -- results ---------------------------------------------------------------------------------------------------------


def demand_factors(
    parts: Sequence[Observed], codes: Sequence[Array], bases: Sequence[Array], embedding: Array, views: Views
) -> None:
    """Refuse factors that have collapsed to next to nothing of a view; warn if many samples have.

    The product PU is looked at, not the factors: either may be small while the other is large.
    """
    kept = [inner(p.T @ p, u @ u.T) > _COLLAPSED * part.energy for part, p, u in zip(parts, codes, bases, strict=True)]
    if not any(kept):
        raise SolutionError(
            "All codes have shrunk to zero: the penalty outweighs the data, or the data are mostly negative. Lower "
            "sparsity_weight (how much it takes depends on the number of features and on the scale of the data), or "
            "use nonnegative='shift'."
        )
    if not all(kept):
        lost = [name for name, there in zip(views.names, kept, strict=True) if not there]
        raise SolutionError(
            f"The factors of the view(s) {some(lost)} have shrunk to zero, so these views have no say in the result. "
            "Lower sparsity_weight, use nonnegative='shift' if their values are mostly negative, or leave them out."
        )
    lengths = row_lengths(embedding)
    vanished = lengths < _VANISHED * lengths.max()
    if vanished.any():
        has_data = np.zeros(views.n_samples, dtype=bool)  # a row of zeros has every right to a code of zeros
        for part in parts:
            has_data[part.rows] |= row_lengths(part.matrix) > 0
        n_vanished = int((vanished & has_data).sum())
        if n_vanished > _FEW * views.n_samples:
            warn_user(
                f"The codes of {n_vanished} of {views.n_samples} samples have all but vanished: the penalty outweighs "
                "their data. Lower sparsity_weight.",
                GapviewWarning,
            )


# -- starts ----------------------------------------------------------------------------------------------------------


def random_factors(
    n_rows: int, n_features: Sequence[int], n_components: int, random_state: np.random.RandomState, dtype: Any
) -> tuple[Array, list[Array]]:
    """Draw codes and one basis per view uniformly from [0, 1)."""
    codes = random_state.uniform(size=(n_rows, n_components)).astype(dtype)
    return codes, [random_state.uniform(size=(n_components, m)).astype(dtype) for m in n_features]


def own_factors(
    init: Any, words: str, views: Views, rows: Sequence[Array], n_components: int, dtype: Any
) -> tuple[list[Array], list[Array]]:
    """Read the start a user brings, ``(codes, bases)``.

    Parameters
    ----------
    init : pair of codes and bases
        Codes for all samples in one array, or one array for each set of codes; one basis for each view.
    words : str
        What else init could have been, for messages.
    views : Views
        The data.
    rows : sequence of arrays
        The samples in each set of codes: one set that all views share, or one for each view.
    n_components : int
        Length of the codes.
    dtype : data type
        Type of the factors.
    """
    if isinstance(init, str) or not isinstance(init, Sequence) or len(init) != 2:
        raise InputTypeError(f"init must be {words} or a pair (codes, bases) of starting factors; got {init!r}.")
    given_codes, given_bases = init
    if not isinstance(given_codes, Mapping | list | tuple):
        given_codes = [given_codes] * len(rows)
    sets = ["all views"] if len(rows) == 1 else [f"view '{name}'" for name in views.names]
    codes = []
    for where, row, values in zip(sets, rows, _in_order(given_codes, views, len(rows), "codes"), strict=True):
        code = _own(values, f"codes of {where}", dtype)
        code = code[row] if code.shape == (views.n_samples, n_components) else code
        codes.append(_of_shape(code, (len(row), n_components), f"codes of {where}"))
    bases = []
    for name, m, values in zip(
        views.names, views.n_features, _in_order(given_bases, views, views.n_views, "bases"), strict=True
    ):
        basis = _own(values, f"basis of view '{name}'", dtype)
        bases.append(_of_shape(basis, (n_components, m), f"basis of view '{name}'"))
    return codes, bases


def _in_order(given: Any, views: Views, count: int, what: str) -> Sequence[Any]:
    if isinstance(given, Mapping) and count == views.n_views and set(given) == set(views.names):
        return [given[name] for name in views.names]
    if isinstance(given, Sequence) and len(given) == count:
        return given
    wanted = (
        "one array" if count == 1 else f"one array for each of the {count} views, in a list or a dict with their names"
    )
    raise InputTypeError(f"The {what} in init must be {wanted}; got {type(given).__name__} of other contents.")


def _own(values: Any, what: str, dtype: Any) -> Array:
    try:
        array = np.array(values, dtype=dtype)  # a copy, since the steps write into it
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"The starting {what} must be an array of numbers: {error}.") from None
    if not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise InputError(f"The starting {what} must be finite and at least 0, and not all of them 0.")
    return array


def _of_shape(array: Array, shape: tuple[int, int], what: str) -> Array:
    if array.shape != shape:
        raise InputError(f"The starting {what} must have shape {shape}; got {array.shape}.")
    return array
