"""Warnings that point at the user's own line."""

from __future__ import annotations

import os
import sys
import warnings

import sklearn

# Python 3.12 can skip these by itself (skip_file_prefixes); 3.11 cannot.
_INSIDE = tuple(os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, sklearn.__file__))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, and name the first caller outside gapview and scikit-learn, however many of their methods lie between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
