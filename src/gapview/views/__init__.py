"""Views: the entry point for data, where input is read, joined and checked."""

from .checks import SampleCounts, demand_enough, is_constant, new_views, training_views
from .core import Views

__all__ = ["SampleCounts", "Views", "demand_enough", "is_constant", "new_views", "training_views"]
