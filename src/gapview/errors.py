"""Errors and warnings of gapview.

Every error raised on purpose is a :class:`GapviewError` and also the built-in exception that callers expect:
``ValueError`` or ``TypeError`` for input and parameters, ``ImportError`` for an extra that is not installed,
``OSError`` for files and downloads.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

__all__ = [
    "DataFileError",
    "DownloadError",
    "GapviewError",
    "GapviewWarning",
    "InputError",
    "InputTypeError",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "ParameterTypeError",
    "SolutionError",
]


class GapviewError(Exception):
    """Any error that gapview raises on purpose.

    Examples
    --------
    >>> import gapview
    >>> from gapview.errors import GapviewError
    >>> try:
    ...     gapview.Views([])
    ... except GapviewError as error:
    ...     print(type(error).__name__)
    InputError
    """


class InputError(GapviewError, ValueError):
    """The data have an accepted type but invalid shapes, values or ids."""


class InputTypeError(GapviewError, TypeError):
    """The data have a type that cannot hold views."""


class ParameterError(GapviewError, ValueError):
    """A parameter has a value that is not allowed."""


class ParameterTypeError(GapviewError, TypeError):
    """A parameter has the wrong type."""


class SolutionError(GapviewError, ValueError):
    """The fit ended in a degenerate solution, such as codes that are all zero."""


class NotFittedError(GapviewError, _SklearnNotFittedError):  # type: ignore[misc]
    """The estimator was used before ``fit``."""


class MissingExtraError(GapviewError, ImportError):
    """An optional dependency is needed and not installed.

    Parameters
    ----------
    package : str
        The package to import.
    extra : str
        The extra that installs it.
    purpose : str
        What it is needed for.
    distribution : str, default="gapview"
        The distribution that has the extra.
    """

    def __init__(self, package: str, extra: str, purpose: str, distribution: str = "gapview") -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install '{distribution}[{extra}]'"
        )


class DataFileError(GapviewError, OSError, ValueError):
    """A data file cannot be read or written, or does not hold views."""


class DownloadError(GapviewError, OSError):
    """A data set could not be downloaded."""


class GapviewWarning(UserWarning):
    """A problem that the user should know of, while the result remains valid."""


def extra(module: str, package_extra: str, purpose: str) -> Any:
    """Import an optional package, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(module.split(".")[0], package_extra, purpose) from None


def some(items: Iterable[Any], limit: int = 5) -> str:
    """Return the first few items for a message: ``'a', 'b', 'c' and 12 more``."""
    listed = list(items)
    text = ", ".join(repr(getattr(item, "item", lambda item=item: item)()) for item in listed[:limit])
    rest = len(listed) - limit
    return text + (f" and {rest} more" if rest > 0 else "")


def described(value: Any) -> str:
    """Return what a value is, for a message: ``a list`` or ``the class GRMF``."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
