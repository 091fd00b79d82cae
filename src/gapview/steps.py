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


def code_step(projected: Array, pull: Array | None, mass: Array, sparsity_weight: float) -> Array:
    """Eq. (13): codes from UHᵀ and the pull of the consensus, each shrunk towards zero by λ2 / 2m.

    Codes stand in columns. ``pull`` is λ1 times the consensus for tied codes and 0 for others, None if none is tied;
    ``mass`` is m = d + λ1 for tied codes and d for others.
    """
    xp = array_namespace(projected)
    target = (projected if pull is None else projected + pull) / mass
    threshold = sparsity_weight / (2 * mass)
    # x − clip(x, −t, t) is sign(x)·max(|x| − t, 0) in fewer passes
    return target - xp.maximum(xp.minimum(target, threshold), -threshold)  # type: ignore[no-any-return]


def objective_value(codes: Array, degrees: Array, tie: Array | None, before: Array, consensus: Array) -> Any:
    """Eq. (7) for codes fresh from the code step, with the consensus ``before`` it and after; all stand in columns.

    Every code p other than 0 then has (d + λ1)p = UHᵀ + λ1z' − (λ2 / 2) sign(p), with z' the consensus before. Put into
    Eq. (7), what is left is Σ λ1 ((p − z)² − 2p(p − z')) − dp², the first part for tied codes: neither UHᵀ nor the L1
    penalty is needed any more, and differences of tied codes stay small however large λ1 is. Terms of a sample have the
    precision of the codes, their sum is double.
    """
    xp = array_namespace(codes)
    value = -_weighted(xp.sum(codes * codes, axis=0), degrees)
    if tie is not None:
        gap = codes - consensus
        value = value + _weighted(xp.sum(gap * gap - 2 * codes * (codes - before), axis=0), tie)
    return value


def _weighted(values: Array, weights: Array) -> Any:
    xp = array_namespace(values)
    return xp.sum(values * weights, dtype=xp.float64)
