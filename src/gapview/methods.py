"""All methods by name, and model files of all of them."""

from . import baselines, estimators  # noqa: F401, they register their methods
from .persist.model_file import describe, load
from .persist.registry import METHODS

__all__ = ["METHODS", "describe", "load"]
