"""The errors and warnings of gapview, in one place.

Every error raised on purpose is a :class:`GapviewError` and at the same time the built-in kind that
people already catch: ``ValueError`` or ``TypeError`` for input and settings, ``ImportError`` for an extra
that is not installed, ``OSError`` for files and downloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
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
    """The data have the right kind but wrong contents: shapes, values, ids."""


class InputTypeError(GapviewError, TypeError):
    """The data are of a kind that cannot hold views."""


class ParameterError(GapviewError, ValueError):
    """A setting is outside what is allowed."""


class ParameterTypeError(GapviewError, TypeError):
    """A setting is of the wrong type."""


class SolutionError(GapviewError, ValueError):
    """The fit ended in a useless state, such as codes that are all zero."""


class NotFittedError(GapviewError, _SklearnNotFittedError):  # type: ignore[misc]
    """The estimator is used before ``fit``."""


class MissingExtraError(GapviewError, ImportError):
    """An optional dependency is needed and not installed.

    Parameters
    ----------
    package : str
        What is to be imported.
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
    """A data file cannot be read, or does not hold views."""


class DownloadError(GapviewError, OSError):
    """A data set could not be downloaded."""


class GapviewWarning(UserWarning):
    """Something the user should know, though the result stands."""


def some(items: Iterable[Any] | Sized, limit: int = 5) -> str:
    """List the first few items for a message: ``'a', 'b', 'c' and 12 more``."""
    shown = list(items)  # type: ignore[arg-type]
    text = ", ".join(repr(getattr(item, "item", lambda item=item: item)()) for item in shown[:limit])
    rest = len(shown) - limit
    return text + (f" and {rest} more" if rest > 0 else "")
