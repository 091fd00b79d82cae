"""All methods by name, and functions that read their model files."""

from . import baselines, estimators  # noqa: F401, they register their methods
from .persist.model_file import describe, load
from .persist.registry import METHODS

__all__ = ["METHODS", "describe", "load"]
