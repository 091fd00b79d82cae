"""Warn when a fit has not converged."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..factorization import Solution
from ..utils.warnings import warn_user

__all__ = ["warn_unless_converged"]


def warn_unless_converged(model: Any, solution: Solution) -> None:
    """Tell the user of a fit that was cut off by ``max_iter``."""
    if model.tol > 0 and not solution.converged:
        if solution.n_iter == 1:
            state = "one iteration shows no change of it"
        else:
            before, last = solution.objective[-2:]
            state = f"its last relative change was {abs(before - last) / abs(before) if before else 0.0:.1e}"
        warn_user(
            f"{type(model).__name__} stopped at max_iter={model.max_iter} before the objective settled: {state}, "
            f"tol={float(model.tol):.1e}. Raise max_iter or tol.",
            ConvergenceWarning,
        )
