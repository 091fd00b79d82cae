"""Packages that gapview can do without."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import MissingExtraError

__all__ = ["extra"]


def extra(module: str, package_extra: str, purpose: str) -> Any:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(module.split(".")[0], package_extra, purpose) from None
