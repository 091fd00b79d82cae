"""Warnings about a fit: parameters without effect, and iterations that stopped before they converged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..errors import GapviewWarning
from ..factorization import Solution
from ..utils.warnings import warn_user

__all__ = ["NoEffect", "warn_no_effect", "warn_unless_converged", "warn_unused_parameters"]


@dataclass(frozen=True)
class NoEffect:
    """A rule of an estimator: when one of its parameters has no effect.

    An estimator lists its rules in ``_no_effect``; those of its parent classes apply too.

    Examples
    --------
    >>> from gapview.estimators.fit_warnings import NoEffect
    >>> rule = NoEffect("search", lambda model, views: model.graph is not None, "graph is given", "leave out graph")
    >>> rule.parameter
    'search'
    """

    parameter: str
    applies: Callable[[Any, Any], bool]  # of the model and its training data, Views or BlockedViews
    reason: str  # names the parameter or the property of the data that overrides this parameter
    remedy: str  # what to change for the parameter to have an effect


def warn_unused_parameters(model: Any, views: Any) -> None:
    """Warn of each parameter of a model that is not at its default and has no effect on the fit to these views."""
    for kind in type(model).__mro__:
        for rule in vars(kind).get("_no_effect", ()):
            if rule.applies(model, views):
                value = getattr(model, rule.parameter)
                warn_no_effect(type(model).__init__, rule.parameter, value, rule.reason, rule.remedy)


def warn_no_effect(function: Callable[..., Any], parameter: str, value: Any, reason: str, remedy: str) -> None:
    """Warn that a parameter of a function has no effect, unless its value is the default."""
    known = inspect.signature(function).parameters.get(parameter)
    is_plain = value is None or isinstance(value, str | Number)
    if known is None or (is_plain and value == known.default):
        return
    given = f"{parameter}={value!r}" if is_plain else parameter
    warn_user(f"{given} has no effect, since {reason}. Leave out {parameter}, or {remedy}.", GapviewWarning)


def warn_unless_converged(model: Any, solution: Solution) -> None:
    """Warn if ``max_iter`` was reached before the objective changed by less than ``tol``."""
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
