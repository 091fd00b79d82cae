"""The closed-form steps of Algorithm 1, and its objective, for arrays of any kind."""

from __future__ import annotations

from array_api_compat import array_namespace

from ..utils.types import Array
from .problem import demand_finite


def basis_step(correlation: Array) -> Array:
    """Return the basis U = JBᵀ from HᵀP = BΣJᵀ, Eq. (9).

    A view with fewer features than components needs added columns of zeros for UUᵀ = I. The thin decomposition gives
    that basis without its zero columns: then UᵀU = I, and no other step changes.
    """
    xp = array_namespace(correlation)
    demand_finite(xp.all(xp.isfinite(correlation)), correlation.dtype)
    left, _, right = xp.linalg.svd(correlation, full_matrices=False)
    return (left @ right).T  # type: ignore[no-any-return]


def code_step(drawn: Array, mass: Array, sparsity_weight: float) -> Array:
    """Compute new codes in place, Eq. (13): UHᵀ plus the consensus term, shrunk towards zero by λ2 / 2, over m.

    Codes are columns. The consensus term is λ1 times the consensus for tied codes and 0 for others; ``mass`` is
    m = d + λ1 for tied codes and d for others.
    """
    half = sparsity_weight / 2
    drawn -= drawn.clip(-half, half)  # sign(x)·max(|x| − t, 0) in fewer passes
    drawn /= mass
    return drawn


def codes_value(codes: Array, degrees: Array) -> Array:
    """Return what the codes of a view add to Eq. (7) directly after the code step, for every component.

    Every code p other than 0 then has (d + λ1)p = UHᵀ + λ1z' − (λ2 / 2) sign(p), with z' the consensus before. With it,
    Eq. (7) becomes Σ λ1 ((p − z)² − 2p(p − z')) − dp², the first part for tied codes: UHᵀ and the L1 penalty cancel.
    Since z is the mean of the codes p of a sample, that is −Σ dp² − λ1 Σ (p − z)², the second part for tied codes, and
    2λ1 Σ z(z' − z): differences of tied codes stay small however large λ1 is. This is the first part;
    :func:`ties_value` and :func:`consensus_value` give the others.
    """
    return -((codes * codes) @ degrees)


def ties_value(codes: Array, consensus: Array) -> Array:
    """Return what the tied codes of a view add to Eq. (7), divided by λ1, for every component: −Σ (p − z)²."""
    gap = codes - consensus
    return -array_namespace(gap).vecdot(gap, gap)  # type: ignore[no-any-return]


def consensus_value(before: Array, consensus: Array, n_codes: Array) -> Array:
    """Return what the consensus of tied samples adds to Eq. (7), divided by λ1: 2 Σ z(z' − z) over their codes."""
    change = before - consensus
    change *= consensus
    return 2 * (change @ n_codes)
