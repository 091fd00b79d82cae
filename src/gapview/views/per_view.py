"""Reading what users bring of their own, one matrix for each view: graphs, starting codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError, InputTypeError, some
from ..utils.types import Matrix
from .core import Views


def one_per_view(given: Any, views: Views, expected: str) -> list[Any]:
    """Put what the user gave into the order of the views; ``expected`` begins the message if that is not possible."""
    if isinstance(given, Mapping):
        missing = [name for name in views.names if given.get(name) is None]
        if missing:
            raise InputTypeError(f"{expected}; the dict has none for the view(s) {some(missing)}.")
        return [given[name] for name in views.names]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputTypeError(f"{expected}; got {repr(given) if isinstance(given, str) else type(given).__name__}.")
    if len(given) != views.n_views or any(item is None for item in given):
        n_given = sum(item is not None for item in given)
        raise InputTypeError(f"{expected}; got {n_given} in a list.")
    return list(given)


def real_matrix(given: Any, what: str, dtype: Any) -> Matrix:
    """Read a matrix of real numbers, dense or sparse; numbers too large for the type become infinite."""
    try:
        matrix = given if sparse.issparse(given) else np.asarray(given)
        is_complex = np.iscomplexobj(matrix)
        with np.errstate(over="ignore"):  # the caller refuses infinity with words of its own
            matrix = matrix if is_complex else matrix.astype(dtype)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{what} cannot be read as a matrix of numbers: {str(error).rstrip('.')}.") from None
    if is_complex:
        raise InputTypeError(f"{what} must hold real numbers; got complex ones. Take their real part or their size.")
    if matrix.ndim != 2:
        raise InputError(f"{what} must be a matrix of 2 dimensions; got shape {matrix.shape}.")
    return matrix
