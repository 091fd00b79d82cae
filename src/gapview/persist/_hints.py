"""Comparing values with the annotations of our own classes: what a file says must be of the kind the code expects."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

# Of a class; finding them out takes longer than using them
hints_of: Callable[[Any], dict[str, Any]] = cache(get_type_hints)

_NUMBERS = {int: Integral, float: Real}


def fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is of the annotated kind, as far as annotations of these forms can tell.

    Examples
    --------
    >>> from gapview.persist._hints import fits
    >>> fits((1, 2), tuple[int, ...]), fits(["a", 3], list[str]), fits(None, str | None)
    (True, False, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is list:
        return isinstance(value, list) and all(fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if origin is tuple:
        return isinstance(value, tuple) and _fits_tuple(value, inner)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    return hint is Any or not isinstance(hint, type) or isinstance(value, hint)


def _fits_tuple(value: tuple[Any, ...], inner: tuple[Any, ...]) -> bool:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return all(fits(each, inner[0]) for each in value)
    return len(value) == len(inner) and all(fits(each, kind) for each, kind in zip(value, inner, strict=True))
