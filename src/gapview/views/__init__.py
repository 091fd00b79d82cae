"""Views: the entry point for data, where input is read, joined and checked."""

from .checks import SampleCounts, demand_enough, is_constant, new_views, training_views, warn_of_values
from .core import Views
from .description import Description, Finding, ViewDescription
from .units import compare

__all__ = [
    "Description",
    "Finding",
    "SampleCounts",
    "ViewDescription",
    "Views",
    "compare",
    "demand_enough",
    "is_constant",
    "new_views",
    "training_views",
    "warn_of_values",
]
