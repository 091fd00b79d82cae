"""Messages for users: checks of single parameters, warnings, and text with numbers, counts, times and lists."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from itertools import count
from numbers import Real
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import check_random_state

from ..errors import GapviewWarning, ParameterError, ParameterTypeError

# -- parameters: every message names the parameter, the allowed values and the given value ---------------------

LARGEST = 2**31 - 1  # of integer parameters
MOST_COMPONENTS = 10**5
MOST_REPEATS = 10**4  # of whole computations
_MOST_EXACT = 2**53  # up to it a float holds every integer
_LONGEST_VALUE = 200  # characters of a value in a message


def check_integer(name: str, value: Any, *, low: int, high: int = LARGEST, also: Sequence[Any] = ()) -> None:
    """Raise an error unless the value is an integer from ``low`` to ``high``, or one of the values in ``also``."""
    expected = f"an integer of at least {low}"
    if isinstance(value, int | np.integer) and value > high:
        expected += f" and at most {high}"
    _check_number(name, value, (int, np.integer), expected, lambda number: bool(low <= number <= high), also)


def check_real(
    name: str,
    value: Any,
    *,
    low: float,
    high: float = math.inf,
    open_low: bool = False,
    also: Sequence[Any] = (),
    kinds: tuple[type, ...] = (Real,),
) -> None:
    """Raise an error unless the value is finite and between ``low`` and ``high``, or one of those in ``also``."""
    above = f"above {low:g}" if open_low else f"of at least {low:g}"
    below = "" if high == math.inf else f" and at most {high:g}"
    if isinstance(value, int) and abs(value) > _MOST_EXACT:  # arrays do not take it
        below += ", and a float (such as 1e30) beyond 2**53"

    def is_inside(number: Any) -> bool:  # False for NaN
        if isinstance(number, int | Fraction) and not -_MOST_EXACT <= number <= _MOST_EXACT:
            return False
        return math.isfinite(number) and (number > low if open_low else number >= low) and bool(number <= high)

    _check_number(name, value, kinds, f"a finite number {above}{below}", is_inside, also)


def _check_number(
    name: str,
    value: Any,
    kinds: tuple[type, ...],
    expected: str,
    is_inside: Callable[[Any], bool],
    also: Sequence[Any],
) -> None:
    if _is_one_of(value, also):
        return
    message = f"{name} must be {' or '.join([expected, *map(repr, also)])}; got {shown(value)}."
    # NumPy counts durations as integers, and computes in single precision with float but not with longdouble
    if not isinstance(value, kinds) or isinstance(value, bool | np.timedelta64 | np.longdouble):
        raise ParameterTypeError(message)
    if not is_inside(value):
        raise ParameterError(message)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise an error unless the value is one of ``choices``."""
    if not _is_one_of(value, choices):
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, choices))}; got {shown(value)}.")


def check_flag(name: str, value: Any) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterTypeError(f"{name} must be True or False; got {shown(value)}.")


def random_generator(random_state: Any) -> np.random.RandomState:
    """Return the random number generator for a seed, a RandomState or None."""
    try:
        if isinstance(random_state, np.timedelta64):  # an integer for scikit-learn
            raise ValueError
        generator: np.random.RandomState = check_random_state(random_state)
    except Exception:  # of the checks, or of the representation of an odd object
        raise ParameterError(
            "random_state must be None, an integer seed from 0 to 2**32 - 1 or a RandomState; "
            f"got {shown(random_state)}."
        ) from None
    return generator


def shown(value: Any) -> str:
    """Return a value as Python writes it, shortened, for a message.

    >>> shown([1, 2]), shown(10**9999)
    ('[1, 2]', 'an object of type int')
    """
    try:
        return shorten(repr(value), _LONGEST_VALUE)
    except Exception:  # integers of too many digits, objects of the user
        return f"an object of type {type(value).__name__}"


def _is_one_of(value: Any, choices: Sequence[Any]) -> bool:
    # `in` would compare arrays element by element
    return (value is None or isinstance(value, str)) and value in choices


# -- warnings --------------------------------------------------------------------------------------------------
#
# warnings.catch_warnings replaces the filters of the whole process and restores them later: two of them at once, in
# threads, leave filters behind and lose each other's warnings. Fits use the functions below instead.

# Python 3.12 can skip these by itself (skip_file_prefixes); 3.11 cannot.
_FOLDERS = (Path(__file__).absolute().parents[1], Path(sklearn.__file__).absolute().parent)
_INSIDE = tuple(str(folder) + os.sep for folder in _FOLDERS)
_muted: ContextVar[tuple[type[Warning], ...]] = ContextVar("muted", default=())
_lock = Lock()
# Set for a moment by check_array, with catch_warnings
_LEFTOVERS: tuple[Any, ...] = (("error", None, np.exceptions.ComplexWarning, None, 0),)


def warn_user(message: str, category: type[Warning] = GapviewWarning) -> None:
    """Issue a warning that names the first caller outside gapview and scikit-learn."""
    if is_muted(category):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def muted(*categories: type[Warning]) -> Iterator[None]:
    """Suppress warnings of :func:`warn_user` in this thread only: of trials whose results are not returned."""
    before = _muted.set((*_muted.get(), *categories))
    try:
        yield
    finally:
        _muted.reset(before)


def is_muted(category: type[Warning]) -> bool:
    """Return whether warnings of :func:`warn_user` are suppressed in this thread, so that none need be computed."""
    return issubclass(category, _muted.get())


def absent_leftovers() -> list[Any]:
    """Return the filters that threads in scikit-learn may leave behind and that are not set now."""
    return [each for each in _LEFTOVERS if each not in warnings.filters]


def drop_leftovers(leftovers: list[Any]) -> None:
    """Remove filters that were left behind."""
    for each in leftovers:
        if each in warnings.filters:
            warnings.filters.remove(each)  # type: ignore[attr-defined]


class _SharedFilter:
    """A filter of warnings by the start of their message, set as long as any thread is inside."""

    def __init__(self) -> None:
        self.n_users = 0
        self.places: list[list[Any]] = []  # lists with the filter: other code may replace the list in use
        self.filter: Any = None


_by_message: defaultdict[str, _SharedFilter] = defaultdict(_SharedFilter)


@contextmanager
def ignoring(message: str) -> Iterator[None]:
    """Ignore a warning of a library by the start of its message, in all threads."""
    if getattr(sys.flags, "context_aware_warnings", False):  # each thread has its own filters
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message)
            yield
        return
    shared = _by_message[message]
    with _lock:
        shared.n_users += 1
        if shared.filter not in warnings.filters:
            warnings.filterwarnings("ignore", message)
            shared.filter = warnings.filters[0]
            shared.places.append(warnings.filters)  # type: ignore[arg-type]
    try:
        yield
    finally:
        with _lock:
            shared.n_users -= 1
            if not shared.n_users:
                for place in (*shared.places, warnings.filters):
                    if shared.filter in place:
                        place.remove(shared.filter)  # type: ignore[attr-defined]
                shared.places.clear()


# -- text ------------------------------------------------------------------------------------------------------

NO_BREAK = "\u00a0"
_SMALLEST_P = 0.001  # smaller p-values are written as a bound
_SPELLED = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(n_items: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "category"), counted(3, "way"), counted(2, "batch")
    ('1 row', '1,200 rows', '2 categories', '3 ways', '2 batches')
    """
    changes = noun.endswith("y") and noun[-2:-1] not in "aeou"
    plural = noun[:-1] + "ies" if changes else noun + ("es" if noun.endswith("ch") else "s")
    return f"{n_items:,} {noun if n_items == 1 else plural}"


def spelled(integer: int) -> str:
    """Return a small number as a word.

    >>> spelled(3), spelled(30)
    ('three', '30')
    """
    return _SPELLED.get(integer, str(integer))


def joined(items: Sequence[str]) -> str:
    """Return a list in words.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def percent(share: float) -> str:
    """Return a share in per cent; a small share is not rounded to zero.

    >>> percent(0.256), percent(0.0001), percent(0.0)
    ('25.6 %', 'under 0.1 %', '0 %')
    """
    if 0 < share < 0.0005:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share else "0 %"


def shorten(text: str, longest: int = 80) -> str:
    """Return a long name with its middle replaced by an ellipsis.

    >>> shorten("a very long name", 9)
    'a ve…name'
    """
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[len(text) - half :]}"


def printable(text: str) -> str:
    r"""Return a text with control characters escaped: names from files could change the terminal.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(7.2), duration(95), duration(3 * 3600 + 120)
    ('7 s', '1 min 35 s', '3 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def p_value(value: float) -> str:
    """Return a p-value with its name, as an upper bound if it is very small.

    >>> p_value(0.00001), p_value(0.0123), p_value(0.5)
    ('p < 0.001', 'p = 0.012', 'p = 0.50')
    """
    return f"p {bare_p(value)}" if value < _SMALLEST_P else f"p = {bare_p(value)}"


def bare_p(value: float) -> str:
    """Return a p-value for a column of a table, a dash for NaN.

    >>> bare_p(0.00001), bare_p(0.0123), bare_p(float("nan"))
    ('< 0.001', '0.012', '–')
    """
    if math.isnan(value):
        return "–"
    return f"< {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def number(value: float) -> str:
    """Return a number as text, with a power of ten if it is very small or large.

    >>> number(100.0), number(1e-05), number(0.003), number(3e-05), number(0.0)
    ('100', '10⁻⁵', '0.003', '3·10⁻⁵', '0')
    """
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:g}"
    digits, power = f"{value:.1e}".split("e")
    digits = digits.removesuffix(".0")
    raised = "10" + _superscript(int(power))
    return raised if digits == "1" else f"{digits}·{raised}".replace("-", "−")


def _superscript(power: int) -> str:
    return str(power).translate(_RAISED)


def powers(values: Sequence[float]) -> list[str]:
    """Return powers of ten with superscript digits, and other numbers as :func:`number` does.

    >>> powers([0.01, 1.0, 30.0])
    ['10⁻²', '10⁰', '30']
    """
    return [_power(value) for value in values]


def _power(value: float) -> str:
    power = math.log10(value) if value > 0 else 0.5
    return f"10{_superscript(round(power))}" if math.isclose(power, round(power), abs_tol=1e-9) else number(value)


def numbered(n_columns: int) -> list[str]:
    """Return ``column_1``, ``column_2`` and so on, as names for columns without names."""
    return [f"column_{number}" for number in range(1, n_columns + 1)]


def free_name(name: str, taken: set[str], mark: str = "_") -> str:
    """Return the name, or the name with a mark and the first number from 2 that makes it unique."""
    return next(free for k in count(1) if (free := f"{name}{mark}{k}" if k > 1 else name) not in taken)
