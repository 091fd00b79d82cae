"""The closed-form steps of Algorithm 1, and its objective, for arrays of any kind."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from .problem import demand_finite
from .views import Array

__all__ = ["basis_step", "code_step", "objective_value"]


def basis_step(correlation: Array) -> Array:
    """Eq. (9): from HᵀP = BΣJᵀ the basis U = JBᵀ.

    A view with fewer features than components would need columns of zeros to have UUᵀ = I. The thin decomposition
    gives that basis without its zero columns: then UᵀU = I, and no other step changes.
    """
    xp = array_namespace(correlation)
    demand_finite(xp.all(xp.isfinite(correlation)), correlation.dtype)
    left, _, right = xp.linalg.svd(correlation, full_matrices=False)
    return (left @ right).T  # type: ignore[no-any-return]


def code_step(projected: Array, consensus: Array, mass: Array, tie: Array, sparsity_weight: float) -> Array:
    """Eq. (13): codes from UHᵀ and the consensus of their samples, each shrunk towards zero by λ2 / 2m.

    Codes stand in columns. ``tie`` is λ1 for tied codes and 0 for others, ``mass`` is m = d + tie.
    """
    xp = array_namespace(projected)
    target = (projected + tie * consensus) / mass
    threshold = sparsity_weight / (2 * mass)
    # x − clip(x, −t, t) is sign(x)·max(|x| − t, 0) in fewer passes
    return target - xp.maximum(xp.minimum(target, threshold), -threshold)  # type: ignore[no-any-return]


def objective_value(
    projected: Array, codes: Array, consensus: Array, degrees: Array, tie: Array, sparsity_weight: float
) -> Any:
    """Eq. (7) from UHᵀ, which the code step has needed anyway; codes stand in columns.

    The terms have the precision of the codes, their sum is double: what remains is the rounding of single terms.
    """
    xp = array_namespace(codes)
    gap = codes - consensus
    terms = codes * (degrees * codes - 2 * projected) + tie * (gap * gap) + sparsity_weight * xp.abs(codes)
    return xp.sum(terms, dtype=xp.float64)
