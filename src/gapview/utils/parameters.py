"""Checks of single parameters; every message names the parameter, the allowed values and the given value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..errors import ParameterError, ParameterTypeError


def check_integer(name: str, value: Any, *, low: int, also: Sequence[Any] = ()) -> None:
    """Raise an error unless the value is an integer of at least ``low``, or one of the values in ``also``."""
    _check_number(name, value, Integral, f"an integer of at least {low}", lambda number: bool(number >= low), also)


def check_real(
    name: str, value: Any, *, low: float, high: float = math.inf, open_low: bool = False, also: Sequence[Any] = ()
) -> None:
    """Raise an error unless the value is finite and between ``low`` and ``high``, or one of those in ``also``."""
    above = f"above {low:g}" if open_low else f"of at least {low:g}"
    below = "" if high == math.inf else f" and at most {high:g}"

    def is_inside(number: Any) -> bool:  # False for NaN
        return math.isfinite(number) and (number > low if open_low else number >= low) and bool(number <= high)

    _check_number(name, value, Real, f"a finite number {above}{below}", is_inside, also)


def _check_number(
    name: str, value: Any, kind: type, expected: str, is_inside: Callable[[Any], bool], also: Sequence[Any]
) -> None:
    if _is_one_of(value, also):
        return
    message = f"{name} must be {' or '.join([expected, *map(repr, also)])}; got {value!r}."
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ParameterTypeError(message)
    if not is_inside(value):
        raise ParameterError(message)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise an error unless the value is one of ``choices``."""
    if not _is_one_of(value, choices):
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterTypeError(f"{name} must be True or False; got {value!r}.")


def random_generator(random_state: Any) -> np.random.RandomState:
    """Return the random number generator for a seed, a RandomState or None."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError:
        raise ParameterError(
            f"random_state must be None, an integer seed from 0 to 2**32 - 1 or a RandomState; got {random_state!r}."
        ) from None
    return generator


def _is_one_of(value: Any, choices: Sequence[Any]) -> bool:
    # `in` would compare arrays element by element
    return (value is None or isinstance(value, str)) and value in choices
